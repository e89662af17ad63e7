"""What the control plane is measured on: real engines with simulated nodes, PodWarden, and whose CPU time it was.

Every run gets an engine of its own on a copy of a folder that already holds the nodes and PodWarden's standing objects,
so that no run sees what an earlier one left.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from podwarden.domain.observation import Observation
from podwarden.kube.client import Client
from podwarden.kube.connect import read_kubeconfig
from podwarden.kube.link import Link
from podwarden.simulator.engine import Engine, EngineOptions
from podwarden.simulator.fleet import Fleet
from podwarden.simulator.fleet_file import read_node_file

GPUS = 4  # of each node
CORES = os.cpu_count() or 1
TICK = os.sysconf("SC_CLK_TCK")
OPTIONS = EngineOptions()
PASSWORD = "a password of the benchmark"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def until(done: Callable[[], bool], what: str, seconds: float, look: float = 0.05) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"Not within {seconds:.0f} s: {what}.")
        time.sleep(look)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


# --- CPU time ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """Seconds: `at` of the clock, the others of CPU time since the start of the machine and of each process."""

    at: float
    machine: float
    parts: Mapping[str, float]


@dataclass(frozen=True)
class Use:
    """Between two readings. parts: CPU seconds. noise: the machine's CPU time that was not ours, as a share of all."""

    seconds: float
    parts: Mapping[str, float]
    noise: float

    def ms_each(self, objects: int) -> dict[str, float]:
        """CPU milliseconds per object; `all` leaves out KWOK (it plays kubelets) and the client."""
        each = {name: round(spent * 1000 / objects, 1) for name, spent in self.parts.items()}
        counted = [spent for name, spent in self.parts.items() if name not in {"kwok", "client"}]
        return {**each, "all": round(sum(counted) * 1000 / objects, 1)}


def read(pids: Mapping[str, int]) -> Reading:
    columns = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _idle, _wait, irq, soft, steal = (int(column) for column in columns)
    machine = (user + nice + system + irq + soft + steal) / TICK
    return Reading(
        time.monotonic(), machine, {name: process_seconds(pid) for name, pid in pids.items()}
    )


def between(first: Reading, last: Reading) -> Use:
    parts = {name: max(0.0, last.parts[name] - first.parts[name]) for name in first.parts}
    seconds = last.at - first.at
    strange = last.machine - first.machine - sum(parts.values())
    return Use(seconds, parts, max(0.0, strange) / (seconds * CORES))


def process_seconds(pid: int) -> float:
    """User and system time, of ended children too."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(int(field) for field in fields[11:15]) / TICK


def memory_mb(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) // 1024
    return 0


def wait_for_quiet(share: float, seconds: float) -> None:
    """Until less than `share` of the machine is busy with others' work, or the time is over."""
    deadline = time.monotonic() + seconds
    calm = 0
    while calm < 3 and time.monotonic() < deadline:
        first = read({"client": os.getpid()})
        time.sleep(1)
        calm = calm + 1 if between(first, read({"client": os.getpid()})).noise < share else 0


# --- PodWarden -----------------------------------------------------------------------------------


@dataclass
class Warden:
    """One `podwarden up` on a folder of its own, with the defaults it ships with."""

    data: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PODWARDEN_")}
        with self.data.with_suffix(".log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "podwarden.cli", "up"),
                    *("--data", str(self.data), "--port", str(self.port)),
                ],
                env={**kept, "PODWARDEN_ADMIN_PASSWORD": PASSWORD},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until(self._answers, "podwarden up answers", 30)

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def _answers(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError(self.data.with_suffix(".log").read_text()[-2000:])
        asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            asked.request("GET", "/healthz")
            return asked.getresponse().status == 200
        except OSError:
            return False
        finally:
            asked.close()


# --- engines -------------------------------------------------------------------------------------


@dataclass
class Plant:
    """A running engine and the PodWarden beside it, if one was made. ready_s: how long the engine took to start."""

    folder: Path
    engine: Engine
    audit: Path
    ready_s: float
    warden: Warden

    def reading(self) -> Reading:
        pids = {name: part.pid for name, part in self.engine.status().components.items()}
        if self.warden.process is not None:
            pids["podwarden"] = self.warden.pid
        return read({**pids, "client": os.getpid()})

    def observe(self) -> Observation:
        """What PodWarden sees of the cluster."""
        return asyncio.run(self._observed())

    async def _observed(self) -> Observation:
        link = Link("bench", read_kubeconfig(self.engine.kubeconfig.read_text()))
        await link.start()
        try:
            return await link.ready(60)
        finally:
            await link.close()

    def nodes_ready(self) -> bool:
        return all(node.ready for node in self.observe().nodes)


class Ground:
    """Folders of engines below `root`: one for each number of nodes, and copies of them for the runs."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._bases: dict[int, Path] = {}
        self._runs = 0
        self.ready: list[float] = []  # seconds each engine took to start

    @contextmanager
    def plant(self, nodes: int) -> Iterator[Plant]:
        if nodes not in self._bases:
            self._bases[nodes] = self._make(nodes)
        self._runs += 1
        folder = self._root / f"r{self._runs}"
        shutil.copytree(self._bases[nodes], folder / "e", ignore=shutil.ignore_patterns("*.sock"))
        with self._running(folder) as made:
            until(made.nodes_ready, "all nodes are ready", 60, 0.3)
            yield made
        shutil.rmtree(folder)

    @contextmanager
    def _running(self, folder: Path) -> Iterator[Plant]:
        engine, audit = Engine(folder / "e"), folder / "audit.log"
        begun = time.monotonic()
        engine.start(EngineOptions(audit_log=audit))
        warden = Warden(folder / "control")
        try:
            engine.wait_ready()
            took = time.monotonic() - begun
            self.ready.append(took)
            yield Plant(folder, engine, audit, took, warden)
        finally:
            warden.stop()
            engine.stop()

    def _make(self, nodes: int) -> Path:
        folder = self._root / f"b{nodes}"
        with self._running(folder) as made:
            asyncio.run(_furnish(made.engine.kubeconfig.read_text(), nodes))
            until(made.nodes_ready, "the nodes come up", 60, 0.3)
        return folder / "e"


async def _furnish(kubeconfig: str, nodes: int) -> None:
    """Nodes as they publish themselves, and what a leading PodWarden puts into every cluster."""
    text = (
        f"nodes: [{{name: n, count: {nodes}, cpu: 32, memory: 256Gi, gpus: "
        f'[{{model: RTX 3090, vram: 24GB, compute: "8.6", count: {GPUS}}}]}}]'
    )
    access = read_kubeconfig(kubeconfig)
    client, link = Client(access), Link("bench", access)
    try:
        await Fleet(client, read_node_file(text)).start()
        await link.start()
        await link.ready(60)
        await link.raise_fence(1)
    finally:
        await link.close()
        await client.close()
