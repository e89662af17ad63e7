"""`podwarden demo` as a user runs it: what it shows, twice, after a crash, with a port that is taken, its end.

Expensive (engine, control plane and nodes as real processes): it alone covers that the parts find each other.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from deadline import eventually

PODWARDEN = str(Path(sys.executable).with_name("podwarden"))


class Shell:
    """A user's shell with a home of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.data = home / "demo"
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PODWARDEN_")}
        # The engine that is built already is used; everything else is this home's.
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        self.environ = {
            **kept,
            "HOME": str(home),
            "XDG_CACHE_HOME": cache,
            "XDG_CONFIG_HOME": str(home / "config"),
            **({"PODWARDEN_ENGINE": e} if (e := os.environ.get("PODWARDEN_ENGINE")) else {}),
        }

    def __call__(self, *args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [PODWARDEN, *args], env=self.environ, cwd=self.home, timeout=180,
            capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        assert done.returncode == code, f"{args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def json(self, *args: str):
        return json.loads(self(*args, "-o", "json").stdout)

    def demo(self, *args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        return self("demo", "--data", str(self.data), *args, code=code)

    def processes(self) -> dict[int, str]:
        """Every process that has this demo's folder in its command line."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (
                    (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
                if str(self.data) in words and "demo --data" not in words:
                    found[int(folder.name)] = words
        return found


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    # A short path: the engine has a socket in it.
    with tempfile.TemporaryDirectory(prefix="pwd-") as home:
        made = Shell(Path(home))
        yield made
        made.demo("--stop")
        assert made.processes() == {}


@pytest.fixture(scope="module")
def taken() -> Iterator[int]:
    """A port that somebody else listens on."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


@pytest.fixture(scope="module")
def started(shell: Shell, taken: int) -> str:
    """Starts it and gives its address."""
    done = shell.demo("--port", str(taken))
    assert f"Port {taken} is taken" in done.stderr
    line = re.fullmatch(
        r"PodWarden is running at (http://127\.0\.0\.1:\d+)   "
        r"\(real Kubernetes 1\.37\.\d+, simulated nodes\)      next: (source \S+; )?podwarden gpus\n",
        done.stdout,
    )
    assert line, done.stdout
    assert not line[1].endswith(f":{taken}")
    return line[1]


def test_it_shows_gpus_and_something_that_runs(shell: Shell, started: str):
    rows = [re.split(r" {2,}", line) for line in shell("gpus").stdout.splitlines()]
    assert rows[0] == ["NODE", "GPU", "MODEL", "VRAM", "FREE", "HELD BY"]
    assert ["n3", "1", "RTX 3090", "24.0 GiB", "0", "vllm (dedicated)"] in rows
    assert ["n5", "0", "GTX 1070", "8.0 GiB", "7.7 GiB"] in rows
    states = {w["name"]: w["state"] for w in shell.json("workload", "list")}
    assert states["vllm"] == "running"


def test_a_deploy_runs_and_says_where(shell: Shell, started: str):
    done = shell("deploy", "ollama", "--wait=60s")
    assert re.fullmatch(
        r"ollama: running on n5, GTX 1070 \(8 GB asked\), \d+(\.\d)? s   http://\S+:3\d{4}\n",
        done.stdout,
    )
    events = shell("workload", "events", "ollama").stdout
    assert "admitted" in events
    assert "simulated" in shell("workload", "logs", "ollama").stdout


def test_what_it_keeps_is_private(shell: Shell, started: str):
    for file in (shell.data / "password", shell.home / "config" / "podwarden" / "client.json"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    assert stat.S_IMODE(shell.data.stat().st_mode) == 0o700
    secret = (shell.data / "password").read_text().strip()
    for words in shell.processes().values():
        assert secret not in words
    for log in shell.data.glob("*.log"):
        assert secret not in log.read_text()


def test_nothing_is_answered_without_a_login(shell: Shell, started: str):
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(started) as answer:
        assert answer.url.endswith("/login")
        assert "Log in to PodWarden" in answer.read().decode()


def test_a_second_start_says_that_it_is_running(shell: Shell, started: str):
    before = shell.processes()
    done = shell.demo()
    assert done.stdout.startswith(f"PodWarden is running already at {started} ")
    assert shell.processes() == before


def test_a_start_after_a_crash_brings_everything_back(shell: Shell, started: str):
    kept = {w["id"]: w["name"] for w in shell.json("workload", "list")}
    for pid, words in shell.processes().items():
        if "podwarden.cli" in words:
            os.kill(pid, signal.SIGKILL)
    shell("gpus", code=3)
    running = shell.json("demo", "--data", str(shell.data))
    assert running["already"] is False
    assert {w["id"]: w["name"] for w in shell.json("workload", "list")} == kept
    eventually(
        lambda: (
            {w["name"]: w["state"] for w in shell.json("workload", "list")}["ollama"] == "running"
        ),
        "ollama is seen running again",
        30,
    )


def test_a_faulty_node_file_starts_nothing(shell: Shell, tmp_path: Path):
    other = Shell(tmp_path)
    (tmp_path / "bad.yaml").write_text("nodes:\n  - {name: N 1, cpu: many}\n")
    done = other.demo("--nodes", "bad.yaml", code=1)
    assert "bad.yaml" in done.stderr
    assert "name" in done.stderr
    assert other.processes() == {}
    assert not other.data.exists()


def test_zz_stop_ends_all_of_it_and_twice_is_fine(shell: Shell, started: str):
    assert shell.demo("--stop").stdout == "The demo has stopped.\n"
    assert shell.processes() == {}
    assert shell.demo("--stop").stdout == "No demo is running.\n"
    shell("gpus", code=3)
