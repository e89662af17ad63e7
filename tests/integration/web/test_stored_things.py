"""Storages and secrets by the API and by the command line: what is asked for, what is shown, what never is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

PODWARDEN = [str(Path(sys.executable).with_name("podwarden"))]
VALUE = "s3cr3t ü"


@pytest.fixture
def run(served, control, tmp_path):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PODWARDEN_")}
    env |= {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "PODWARDEN_SERVER": served.url,
        "PODWARDEN_TOKEN": control.token(),
    }

    def call(*args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*PODWARDEN, *args], input=stdin, capture_output=True, text=True, timeout=120, env=env, check=False
        )  # fmt: skip

    return call


async def test_a_storage_by_the_api(admin, control):
    made = await admin.post("/api/v1/storage", json={"name": "media", "nfs": "nas:/media"})
    assert made.status_code == 201, made.text
    shape = made.json()
    assert (shape["kind"], shape["place"], shape["server"]) == ("nfs", "nas:/media", "nas")
    assert (shape["node"], shape["cluster"], shape["checked"]) == (None, None, True)
    assert (shape["added_by"], shape["used_by"]) == ("admin", [])
    assert (await admin.get("/api/v1/storage")).json() == [shape]
    control.storage.views["media"] = replace(control.storage.views["media"], used_by=("jellyfin",))
    refused = await admin.delete("/api/v1/storage/media")
    assert (refused.status_code, refused.json()["code"]) == (409, "STORAGE_IN_USE")
    control.storage.views["media"] = replace(control.storage.views["media"], used_by=())
    assert (await admin.delete("/api/v1/storage/media")).status_code == 204
    assert (await admin.delete("/api/v1/storage/media")).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": "x" * 300}, "name"),
        ({"name": "x", "nfs": 5}, "nfs"),
        ({"name": "x", "nfs": "nas:/m", "mode": "rw"}, "mode"),
        ({"name": "x", "host": "a\0b"}, "host"),
        ({"name": "x", "nfs": "nas:/m", "check": "perhaps"}, "check"),
    ],
)
async def test_a_storage_that_is_no_storage(admin, control, body, field):
    answer = await admin.post("/api/v1/storage", json=body)
    assert answer.status_code == 422
    assert field in [p["field"] for p in answer.json()["problems"]]
    assert not control.storage.views


async def test_a_secret_goes_in_as_it_is_and_never_comes_out(admin, control):
    value = f"  {VALUE}\n"
    made = await admin.put("/api/v1/secrets/hf", json={"value": value})
    assert made.status_code == 200, made.text
    assert control.secrets.values["hf"] == value
    assert made.json().keys() == {"name", "owner", "changed_at", "registry", "used_by"}
    listed = await admin.get("/api/v1/secrets")
    assert VALUE not in made.text + listed.text
    refused = await admin.put("/api/v1/secrets/hf", json={"value": [VALUE]})
    assert refused.status_code == 422
    assert VALUE not in json.loads(refused.text)["detail"]
    assert "s3cr3t" not in refused.text
    assert (await admin.delete("/api/v1/secrets/hf")).status_code == 204
    assert (await admin.delete("/api/v1/secrets/hf")).status_code == 404


def test_storages_on_the_command_line(run):
    made = run("storage", "add", "media", "--nfs", "nas:/media")
    assert (made.returncode, made.stdout) == (
        0,
        "media: nas:/media, for workloads on every node.\n",
    )
    made = run("storage", "add", "renders", "--host", "gpu1:/srv/renders", "-o", "json")
    assert json.loads(made.stdout)["node"] == "gpu1"
    made = run("storage", "add", "far", "--nfs", "far:/x", "--no-check", "-o", "json")
    assert json.loads(made.stdout)["checked"] is False
    lines = run("storage", "list").stdout.splitlines()
    assert [line.split()[:4] for line in lines[1:]] == [
        ["media", "nfs", "nas:/media", "all"],
        ["renders", "host", "gpu1:/srv/renders", "home"],
        ["far", "nfs", "far:/x", "all"],
    ]
    gone = run("storage", "remove", "media")
    assert gone.stdout == "media is forgotten. What lies there was not touched.\n"
    again = run("storage", "remove", "media")
    assert (again.returncode, again.stdout) == (1, "")
    assert "There is no storage named media" in again.stderr


def test_secrets_on_the_command_line(run, control, tmp_path):
    empty = run("secret", "list")
    assert "podwarden secret set" in empty.stdout
    made = run("secret", "set", "hf", "--value-file", "-", stdin=f"{VALUE}\n")
    assert (made.returncode, made.stdout) == (0, "hf is stored.\n")
    assert control.secrets.values["hf"] == VALUE, "without the line end of the file"
    (tmp_path / "key").write_text("one\ntwo\n\n")
    run("secret", "set", "key", "--value-file", str(tmp_path / "key"))
    assert control.secrets.values["key"] == "one\ntwo\n"
    control.secrets.views["hf"] = replace(control.secrets.views["hf"], used_by=("vllm", "comfyui"))
    again = run("secret", "set", "hf", "--value-file", "-", stdin="other")
    assert "Used by vllm, comfyui: they get the new value at their next start" in again.stdout
    pull = run("secret", "set", "pull", "--registry", "r.home", "--user", "ann", "--value-file", "-", stdin=VALUE)  # fmt: skip
    assert pull.stdout == "pull is stored, r.home took the login.\n"
    listed = run("secret", "list").stdout
    assert VALUE not in listed
    assert "vllm, comfyui" in listed
    assert run("secret", "delete", "key").stdout == "key is deleted.\n"


@pytest.mark.parametrize(
    ("args", "stdin", "answer"),
    [
        (("secret", "set", "hf"), "", (2, "give --value-file FILE")),
        (("secret", "set", "hf", "--value-file", "-"), "\n", (2, "is empty")),
        (("secret", "set", "hf", "--value-file", "/absent"), "", (2, "cannot be read")),
        (("secret", "set", "hf", VALUE), "", (2, "")),
        (("secret", "delete", "absent"), "", (1, "no secret named absent")),
        (("storage", "add"), "", (2, "")),
    ],
)
def test_what_goes_wrong_on_the_command_line(run, control, args, stdin, answer):
    code, said = answer
    done = run(*args, stdin=stdin)
    assert done.returncode == code
    assert said in done.stderr
    assert not control.secrets.values
