"""The command line starts fast because it imports little."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

import pytest

from podwarden.cli import lazy
from podwarden.cli.main import spread, wants_json

CLIENT = (
    "login",
    "token",
    "user",
    "cluster",
    "template",
    "deploy",
    "plan",
    "workload",
    "queue",
    "gpus",
    "snapshot",
)
ALLOWED = {"httpx", "typer", "rich", "podwarden"}
HEAVY = {
    "fastapi",
    "sqlalchemy",
    "pydantic",
    "lightkube",
    "uvicorn",
    "yaml",
    "cryptography",
    "starlette",
    "alembic",
    "jinja2",
}


@pytest.mark.parametrize("name", CLIENT)
def test_a_client_command_imports_no_heavy_library(name):
    code = (
        "import sys, json; from podwarden.cli import main, lazy; "
        f"lazy.command({name!r}); print(json.dumps(sorted(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = json.loads(out.stdout)
    assert not HEAVY & {m.partition(".")[0] for m in loaded}
    rooms = {m.split(".")[1] for m in loaded if m.startswith("podwarden.")}
    assert rooms <= {"cli", "domain", "errors"}


def test_the_start_is_quick():
    """By its own processor time: the wall clock belongs to whatever else runs here."""

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = "from podwarden.cli import main, lazy, client; lazy.command('gpus')"
        subprocess.run([sys.executable, "-c", command], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(once() for _ in range(5)) < 0.45, "0.2 s on a quiet machine"


def test_every_command_of_the_table_exists():
    for name in lazy.COMMANDS:
        assert lazy.command(name) is not None
    assert lazy.command("nothing") is None


@pytest.mark.parametrize(
    ("args", "spread_args"),
    [
        (["deploy", "x", "--wait"], ["deploy", "x", "--wait="]),
        (["deploy", "x", "--wait=5m"], ["deploy", "x", "--wait=5m"]),
        (["deploy", "--wait", "x"], ["deploy", "--wait=", "x"]),
        (["deploy", "--", "--wait"], ["deploy", "--", "--wait"]),
        ([], []),
    ],
)
def test_wait_may_stand_alone(args, spread_args):
    assert spread(args) == spread_args


@pytest.mark.parametrize(
    ("args", "json_wanted"),
    [(["-o", "json"], True), (["--output=json"], True), (["-ojson"], True), (["-o", "text"], False), (["json"], False), (["-o"], False)],
)  # fmt: skip
def test_whether_json_is_wanted(args, json_wanted):
    assert wants_json(args) is json_wanted
