"""The fixed set of `demo --once`: 14 workloads on the demo's nodes, what is done with each, and what must come of it.

Each case goes on by itself, step by step; `After` ties it to another one. n1 and n2 have no GPU (8 and 16 cores); n3
has a 12 GB and a 24 GB GPU, n4 has two of 16 GB, n5 an old one of 8 GB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podwarden.cli.demo_once_wants import (
    Ended,
    Idle,
    MustSpill,
    NeverAway,
    NodeAway,
    Nothing,
    Restarted,
    Runs,
    SameGpu,
    TookOver,
    Want,
)

SOON = 20.0  # seconds for what needs no waiting
LATER = 45.0  # for what waits for others
NODE_LOST = 60.0  # until a node's silence is noticed and its work runs elsewhere


@dataclass(frozen=True, slots=True)
class Deploy:
    """order: as the API takes it, without the name."""

    order: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """Deployed, and refused with this reason code."""

    order: Mapping[str, Any]
    code: str


@dataclass(frozen=True, slots=True)
class Sees:
    """The cluster shows all of it, within `seconds`."""

    wants: tuple[Want, ...]
    seconds: float = SOON


@dataclass(frozen=True, slots=True)
class Waits:
    """PodWarden says that it waits, first in line, with one of these codes; the cluster has nothing of it."""

    codes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Ask:
    """`stop`, `start`, or `update` with a new order."""

    what: str
    order: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SwitchOff:
    node: str


@dataclass(frozen=True, slots=True)
class After:
    """Another case has done its first `steps`; 0 = all of them."""

    other: str
    steps: int = 0


Step = Deploy | Refused | Sees | Waits | Ask | SwitchOff | After


@dataclass(frozen=True, slots=True)
class Case:
    workload: str
    expected: str
    steps: tuple[Step, ...]


def _file(
    kind: str, gpu: str = "", *, cpu: str = "500m", more: str = "", **simulated: str
) -> Mapping[str, str]:
    """A workload file. simulated: how the simulator plays it."""
    lines = [
        f"kind: {kind}",
        "image: example.org/app:1",
        f"resources: {{cpu: {cpu}, memory: 256Mi}}",
        *([f"gpu: {{{gpu}}}", "shm: 64Mi"] if gpu else []),
        *([more] if more else []),
    ]
    if simulated:
        lines.append("annotations:")
        lines += [
            f'  simulator.podwarden.io/{name.replace("_", "-")}: "{value}"'
            for name, value in simulated.items()
        ]
    return {"file": "\n".join(lines) + "\n"}


def _on(*nodes: str) -> frozenset[str]:
    return frozenset(nodes)


CASES: tuple[Case, ...] = (
    Case(
        "too-big",
        "refused with NO_DEVICE_LARGE_ENOUGH, nothing is made of it",
        (
            Refused({"template": "vllm", "vram": "80GB"}, "NO_DEVICE_LARGE_ENOUGH"),
            After("frames"),
            Sees((Nothing(),)),
        ),
    ),
    Case(
        "site",
        "runs on a node without GPUs and is updated without an outage",
        (
            Deploy({"template": "web"}),
            Sees((Runs(_on("n1", "n2")),)),
            Ask("update", {"template": "web", "parameters": {"port": "8091"}}),
            Sees((Runs(_on("n1", "n2"), revision="2"), NeverAway())),
        ),
    ),
    Case(
        "index",
        "12 cores without a GPU: stays on n2, off the nodes with GPUs",
        (Deploy(_file("service", cpu="12")), Sees((Runs(_on("n2")),))),
    ),
    Case(
        "bulk",
        "10 cores without a GPU: spills over to a node with GPUs, as no other has them free",
        (
            After("index"),
            Deploy(_file("service", cpu="10")),
            Sees((Runs(_on("n3", "n4")), MustSpill())),
        ),
    ),
    Case(
        "chat",
        "runs on n5's GTX 1070; n5 is switched off, and it runs on n4's free RTX A4000",
        (
            Deploy({"template": "ollama"}),
            Sees((Runs(_on("n5"), "GTX 1070", 1),)),
            After("frames"),
            SwitchOff("n5"),
            Sees((NodeAway("n5"), Runs(_on("n4"), "RTX A4000", 1)), NODE_LOST),
        ),
    ),
    Case(
        "chat-2",
        "asks for 8 GB as chat does; n5 is full, so it runs on n3's RTX 3060",
        (
            After("chat", 2),
            Deploy(_file("service", "vram: 8GB")),
            Sees((Runs(_on("n3"), "RTX 3060", 1),)),
        ),
    ),
    Case(
        "pair",
        "a job with both GPUs of n4; when it ends, both are free",
        (
            Deploy(_file("job", "count: 2, vram: 16GB", more="job: {retries: 0}", run_seconds="4")),
            Sees((Runs(_on("n4"), "RTX A4000", 2),)),
            Sees((Ended(),)),
        ),
    ),
    Case(
        "pinned",
        "a job on n3's RTX 3090, the model it names though smaller ones are free; then that GPU is free",
        (
            Deploy(
                _file(
                    "job",
                    "vram: 8GB, model: [RTX 3090]",
                    more="job: {retries: 0, time_limit: 1m}",
                    run_seconds="8",
                )
            ),
            Sees((Runs(_on("n3"), "RTX 3090", 1),)),
            Sees((Ended(),)),
        ),
    ),
    Case(
        "wide",
        "waits for the 24 GB GPU of pinned, then runs on it",
        (
            After("pinned", 2),
            Deploy({"template": "vllm", "vram": "20GB"}),
            Waits(frozenset({"DEVICES_IN_USE"})),
            Sees((Runs(_on("n3"), "RTX 3090", 1), TookOver("pinned")), LATER),
        ),
    ),
    Case(
        "camera-1",
        "runs with 5 GB of a shared RTX A4000 of n4",
        (
            After("pair"),
            Deploy(_file("service", "vram: 5GB, sharing: shared")),
            Sees((Runs(_on("n4"), "RTX A4000", 1, memory_mib=5120),)),
        ),
    ),
    Case(
        "camera-2",
        "runs with 5 GB of the very GPU of camera-1",
        (
            After("camera-1"),
            Deploy(_file("service", "vram: 5GB, sharing: shared")),
            Sees((Runs(_on("n4"), "RTX A4000", 1, memory_mib=5120), SameGpu("camera-1"))),
        ),
    ),
    Case(
        "frames",
        "an array of 4 tasks: each runs once, then no GPU is held",
        (
            After("camera-2"),
            Deploy(
                _file("job", "count: 1", more="job: {array: 1-4, retries: 0}", run_seconds="0.5")
            ),
            Sees((Ended(4, frozenset("1234")),), LATER),
        ),
    ),
    Case(
        "crash",
        "crashes once with exit code 3, is started again and runs",
        (
            After("camera-2"),
            Deploy(
                _file(
                    "service",
                    "vram: 2GB, sharing: shared",
                    crash_after="1",
                    crash_times="1",
                    exit_code="3",
                    restart_after="1",
                )
            ),
            Sees((Restarted(1, 3), Runs(_on("n4"), "RTX A4000", 1, memory_mib=2048)), LATER),
        ),
    ),
    Case(
        "night",
        "is stopped, which frees its part of the GPU, and started again",
        (
            After("camera-2"),
            Deploy(_file("service", "vram: 2GB, sharing: shared")),
            Sees((Runs(_on("n4"), "RTX A4000", 1, memory_mib=2048), SameGpu("crash"))),
            Ask("stop"),
            Sees((Idle(),)),
            Ask("start"),
            Sees((Runs(_on("n4"), "RTX A4000", 1, memory_mib=2048),)),
        ),
    ),
)
