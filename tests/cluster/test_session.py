"""The session of a user with `podwarden demo`, as the README tells it, literally.

`test_demo` covers starting, stopping and crashes of the demo itself; this covers what is said along the way.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from deadline import eventually
from shell import Shell


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    with tempfile.TemporaryDirectory(prefix="pws-") as home:  # short: the engine has a socket in it
        user = Shell(Path(home))
        started = user.good("demo", seconds=180)
        assert re.match(
            r"PodWarden is running at http://127\.0\.0\.1:\d+ +\(real Kubernetes 1\.37\.\d+, simulated nodes\)",
            started,
        )
        assert "podwarden gpus" in started
        try:
            yield user
        finally:
            user.good("demo", "--stop")
            assert _processes(home) == []


def _processes(home: str) -> list[str]:
    """Command lines and working folders that still point into the home."""
    left = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if home in words:
            left.append(words)
    return left


def test_the_gpus_are_listed_with_their_holders(shell: Shell) -> None:
    lines = [re.split(r" {2,}", line.rstrip()) for line in shell.good("gpus").splitlines()]
    assert lines[0] == ["NODE", "GPU", "MODEL", "VRAM", "FREE", "HELD BY"]
    rows = {(row[0], row[1]): row[2:] for row in lines[1:]}
    assert rows["n3", "0"][:2] == ["RTX 3060", "12.0 GiB"]
    assert rows["n3", "1"] == ["RTX 3090", "24.0 GiB", "0", "vllm (dedicated)"]
    assert {key for key in rows if key[0] == "n4"} == {("n4", "0"), ("n4", "1")}
    assert rows["n5", "0"][0] == "GTX 1070"


def test_ollama_runs_where_it_fits_best(shell: Shell) -> None:
    said = shell.good("deploy", "ollama", "--wait")
    line = r"ollama: running on n5, GTX 1070 \(8 GB asked\), \d+(\.\d)? s( +http://[\d.]+:\d+)?\n"
    assert re.fullmatch(line, said), said


def test_a_second_model_waits_and_says_for_whom_and_what_would_help(shell: Shell) -> None:
    said = shell.good("deploy", "vllm", "--name", "vllm-code", "--vram", "20GB")
    assert said.startswith(
        "vllm-code: queued, 1st in line. WAITS_FOR_SERVICE: needs 1 GPU with 20 GB"
    ), said
    assert "n3 RTX 3090 is held by vllm, a service without an end" in said
    assert "n4 has 2 \N{MULTIPLICATION SIGN} RTX A4000, 16 GB each: too small" in said
    assert "Stop vllm, or ask for 16 GB to start now on n4." in said


def test_what_no_gpu_can_hold_is_refused_and_not_stored(shell: Shell) -> None:
    before = shell.json("workload", "list")
    said = shell.refused("deploy", "vllm", "--name", "vllm-huge", "--vram", "80GB")
    assert said.startswith("refused: NO_DEVICE_LARGE_ENOUGH: vram 80GB"), said
    assert "the largest GPU here has 24 GB (n3, RTX 3090)" in said
    assert [w["name"] for w in shell.json("workload", "list")] == [w["name"] for w in before]


def test_forty_frames_are_rendered(shell: Shell) -> None:
    said = shell.good("deploy", "blender-render", "--set", "frames=1-40", "--wait", seconds=240)
    assert said.startswith("blender-render: "), said
    found = shell.json("workload", "show", "blender-render")
    assert found["state"] == "succeeded"
    assert found["counts"] == {"done": 40, "running": 0, "failed": 0, "total": 40}


def test_the_queue_and_the_workload_tell_the_same(shell: Shell) -> None:
    lines = shell.good("queue").splitlines()
    assert any("vllm-code" in line and "WAITS_FOR_SERVICE" in line for line in lines), lines
    shown = shell.good("workload", "show", "vllm-code")
    assert "queued" in shown
    assert "n3 RTX 3090 is held by vllm" in " ".join(shown.split())
    kinds = [e["kind"] for e in shell.json("workload", "events", "ollama")]
    assert kinds[0] == "submitted"
    assert {"admitted", "state"} <= set(kinds)


def test_the_advice_is_right(shell: Shell) -> None:
    """Both halves of it: ask for less, then stop the one in the way."""
    shell.good("deploy", "vllm", "--name", "vllm-small", "--vram", "16GB", "--wait=60s")
    assert shell.json("workload", "show", "vllm-small")["nodes"] == ["n4"]
    shell.good("workload", "stop", "vllm")
    eventually(
        lambda: shell.json("workload", "show", "vllm-code")["state"] == "running", "it starts", 30
    )
    assert shell.json("workload", "show", "vllm-code")["nodes"] == ["n3"]
