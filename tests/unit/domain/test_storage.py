"""Places for data as people type them: what is taken, and what is refused with its fix."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from podwarden.domain.storage import Storage, parse_host, parse_nfs
from podwarden.errors import Invalid

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("nas:/media", ("nas", "/media")),
        ("nas.home:/", ("nas.home", "/")),
        ("192.168.1.5:/volume1/films/", ("192.168.1.5", "/volume1/films")),
        ("[fd00::5]:/media", ("fd00::5", "/media")),
        ("nas:/with space:and colon", ("nas", "/with space:and colon")),
    ],
)
def test_nfs_exports(text: str, found: tuple[str, str]) -> None:
    assert parse_nfs(text) == found


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("", "nas:/media"),
        ("nas", "nas:/media"),
        ("/media", "nas:/media"),
        ("nas:media", "nas:/media"),
        (":/media", "nas:/media"),
        ("nas!:/media", "nas:/media"),
        ("-o:/media", "nas:/media"),
        ("fd00::5:/media", "nas:/media"),
        ("nas:/media/../etc", "without . and .."),
        ("nas:/..", "without . and .."),
        ("nas:/a/./b", "without . and .."),
        ("nas:/a//b", "without empty parts"),
        ("nas:/a\nb", "without control characters"),
        ("nas:/a\u202eb", "without control characters"),
        ("nas:/" + "a" * 2000, "at most 1,024"),
    ],
)
def test_refused_exports_name_the_field_and_the_fix(text: str, fix: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_nfs(text)
    (problem,) = caught.value.problems
    assert problem.field == "nfs"
    assert fix in problem.fix
    assert len(problem.value) <= 60


def test_folders_of_a_node() -> None:
    assert parse_host("gpu1:/srv/renders/") == ("gpu1", "/srv/renders")
    assert parse_host("gpu1.home:/mnt") == ("gpu1.home", "/mnt")
    assert parse_host("gpu1:/etcetera") == ("gpu1", "/etcetera")


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("gpu1", "gpu1:/srv/renders"),
        ("GPU1:/srv", "gpu1:/srv/renders"),
        ("gpu1:srv", "gpu1:/srv/renders"),
        ("gpu1:/srv/../etc", "without . and .."),
        ("gpu1:/", "belongs to the system"),
        ("gpu1:/etc", "belongs to the system"),
        ("gpu1:/etc/ssh/", "belongs to the system"),
        ("gpu1:/var/lib/rancher/k3s", "belongs to the system"),
        ("gpu1:/root/.ssh", "belongs to the system"),
    ],
)
def test_refused_folders(text: str, fix: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_host(text)
    (problem,) = caught.value.problems
    assert problem.field == "host"
    assert fix in problem.fix


def test_a_place_reads_as_it_was_typed() -> None:
    for text in ("nas:/media", "[fd00::5]:/media"):
        server, path = parse_nfs(text)
        assert Storage("m", path, NOW, "ada", server=server).place == text
    node, path = parse_host("gpu1:/srv/renders")
    held = Storage("r", path, NOW, "ada", cluster="home", node=node)
    assert held.place == "gpu1:/srv/renders"
    assert not held.nfs
