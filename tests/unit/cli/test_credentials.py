from __future__ import annotations

import stat

import pytest

from podwarden.cli import credentials
from podwarden.cli.failure import USAGE, Failure


@pytest.fixture
def env(tmp_path):
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def test_nothing_known(env):
    assert credentials.target(env) == credentials.Target("http://127.0.0.1:8080", "")


def test_what_login_wrote_is_found_and_private(env):
    path = credentials.remember("http://nas:8080/", "sam", "pw_1", env)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert credentials.target(env) == credentials.Target("http://nas:8080", "pw_1")
    assert [p.name for p in path.parent.iterdir()] == ["client.json"]


def test_a_stored_token_is_never_sent_to_another_server(env):
    credentials.remember("http://nas:8080", "sam", "pw_1", env)
    other = {**env, "PODWARDEN_SERVER": "http://evil:8080"}
    assert credentials.target(other) == credentials.Target("http://evil:8080", "")


def test_the_environment_wins(env, tmp_path):
    credentials.remember("http://nas:8080", "sam", "pw_1", env)
    assert credentials.target({**env, "PODWARDEN_TOKEN": "pw_2"}).token == "pw_2"
    (tmp_path / "t").write_text("pw_3\n")
    assert credentials.target({**env, "PODWARDEN_TOKEN_FILE": str(tmp_path / "t")}).token == "pw_3"


def test_several_servers_and_forgetting_one(env):
    credentials.remember("http://a", "sam", "pw_a", env)
    credentials.remember("http://b", "sam", "pw_b", env)
    assert credentials.target(env).token == "pw_b"
    credentials.forget("http://b", env)
    assert credentials.target(env) == credentials.Target("http://a", "pw_a")
    credentials.forget("http://never", env)
    credentials.forget("http://a", env)
    assert credentials.target(env).token == ""


def test_an_address_without_a_scheme(env):
    assert credentials.target({**env, "PODWARDEN_SERVER": "nas:8080"}).server == "http://nas:8080"


@pytest.mark.parametrize("address", ["ftp://x", "file:///etc/passwd"])
def test_other_schemes_are_no_servers(env, address):
    with pytest.raises(Failure) as caught:
        credentials.target({**env, "PODWARDEN_SERVER": address})
    assert caught.value.code == USAGE


@pytest.mark.parametrize("content", ["", "{", "\x00"])
def test_a_damaged_file_is_said(env, tmp_path, content):
    (tmp_path / "podwarden").mkdir()
    (tmp_path / "podwarden" / "client.json").write_text(content)
    with pytest.raises(Failure, match="log in again"):
        credentials.target(env)
