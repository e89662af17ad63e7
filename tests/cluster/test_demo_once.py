"""`podwarden demo --once`: right as shipped, wrong when something is broken on purpose, and it leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deadline import eventually
from rawapi import RawApi

from podwarden.cli.demo_once import once
from podwarden.cli.demo_once_cases import CASES, SOON, Case, Sees
from podwarden.cli.demo_once_wants import Runs
from podwarden.cli.printing import Format

PODWARDEN = Path(sys.executable).with_name("podwarden")
LONGEST = 240  # seconds; about 50 on two idle cores

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, because sockets lie in it."""
    with tempfile.TemporaryDirectory(prefix="pw-") as name:
        yield Path(name)


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """The command, with everything that it might leave in `folder`."""
    environ = {
        **os.environ,
        "TMPDIR": str(folder / "tmp"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_DATA_HOME": str(folder / "data"),
    }
    (folder / "tmp").mkdir()
    running: list[subprocess.Popen[str]] = []

    def call(*args: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        command = [PODWARDEN, "demo", "--once", *args]
        process = subprocess.Popen(command, env=environ, stdout=pipe, stderr=pipe, text=True)
        running.append(process)
        return process

    yield call
    for process in running:
        process.terminate()
        process.communicate(timeout=60)


def left_over(folder: Path) -> list[str]:
    """Files in the folder, and processes that were started with a path in it."""
    found = [str(path) for path in folder.rglob("*") if not path.is_dir()]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(folder) in words:
            found.append(f"process {process.name}: {words}")
    return found


def test_all_outcomes_are_right_and_nothing_is_left(start: Start, folder: Path) -> None:
    process = start("-o", "json")
    out, err = process.communicate(timeout=LONGEST)
    assert out.count("\n") == 1, err
    report = json.loads(out)
    assert [o for o in report["outcomes"] if not o["ok"]] == []
    assert (process.returncode, report["ok"]) == (0, True)
    assert (report["kubernetes"], report["simulated"]) == ("1.37.2", True)
    assert report["node_grace_seconds"] == 8
    outcomes = report["outcomes"]
    assert [o["workload"] for o in outcomes] == [case.workload for case in CASES]
    assert len({o["workload"] for o in outcomes}) == 14
    assert all(o["ok"] is True and o["seen"] and o["expected"] for o in outcomes)
    assert all(0 <= o["seconds"] <= report["seconds"] for o in outcomes)
    assert left_over(folder) == []


def _case(name: str) -> Case:
    return next(case for case in CASES if case.workload == name)


def _take_the_3060(kubeconfig: Path) -> None:
    """Work of somebody else, on the GPU that chat-2 is to get."""
    api = RawApi(kubeconfig)
    try:
        eventually(
            lambda: api.find("/api/v1/namespaces/default/serviceaccounts/default"), "an account"
        )
        api.create(
            "/api/v1/namespaces/default/pods",
            {
                "metadata": {"name": "stranger"},
                "spec": {
                    "nodeSelector": {"kubernetes.io/hostname": "n3"},
                    "containers": [
                        {
                            "name": "main",
                            "image": "example.org/other:1",
                            "resources": {"limits": {"nvidia.com/gpu": "1"}},
                        }
                    ],
                },
            },
        )
        eventually(lambda: _phase(api) == "Running", "the stranger has its GPU", 20)
    finally:
        api.close()


def _phase(api: RawApi) -> str:
    return api.get("/api/v1/namespaces/default/pods/stranger")["status"].get("phase", "")


def test_what_is_broken_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A GPU that a stranger took, and an expectation that is wrong; the others stay right."""
    chat, index = _case("chat"), _case("index")
    cases = (
        replace(chat, steps=chat.steps[:2]),
        _case("chat-2"),
        replace(index, steps=(index.steps[0], Sees((Runs(frozenset({"n1"})),), SOON / 3))),
    )

    def opened(text: str) -> None:
        file = tmp_path / "kubeconfig"
        file.write_text(text)
        _take_the_3060(file)

    code = once(Format.JSON, cases=cases, opened=opened)
    shown = capsys.readouterr()
    kept = re.search(r"kept in (\S+)\.", shown.err)
    assert kept, shown.err
    try:
        logs = {path.name for path in Path(kept[1]).glob("*.log")}
        assert {"podwarden.log", "nodes.log"} <= logs
    finally:
        shutil.rmtree(kept[1])
    assert code == 1
    report: dict[str, Any] = json.loads(shown.out)
    assert report["ok"] is False
    outcomes = {o["workload"]: o for o in report["outcomes"]}
    assert outcomes["chat"]["ok"], outcomes
    assert not outcomes["chat-2"]["ok"]
    assert re.search(r"runs on n[34], RTX (A4000|3090)", outcomes["chat-2"]["seen"])
    assert not outcomes["index"]["ok"]
    assert "runs on n2" in outcomes["index"]["seen"]
    assert left_over(Path(kept[1])) == []


@pytest.mark.parametrize(
    ("number", "sign"),
    [(signal.SIGINT, "are started in"), (signal.SIGTERM, ": right: ")],
    ids=["interrupted while it starts", "terminated in the middle"],
)
def test_stopped_it_leaves_nothing(
    start: Start, folder: Path, number: signal.Signals, sign: str
) -> None:
    process = start("-o", "json")
    assert process.stderr is not None
    for line in process.stderr:
        if sign in line:
            break
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "It was stopped before the end." in err
    assert "kept" not in err
    assert out == ""
    assert left_over(folder) == []
