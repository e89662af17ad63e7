"""Nouns for the tests of the control plane, each with only what the test names."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from podwarden.domain.inventory import Device, Node
from podwarden.domain.observation import Instance, Presence
from podwarden.domain.placement import Placement, Slot
from podwarden.domain.request import Request
from podwarden.domain.workload import Desire, JobSpec, Kind, Spec, State, Workload

NOW = datetime(2030, 1, 2, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(seconds=30)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def service(**changes) -> Spec:
    base = Spec(name="web", kind=Kind.SERVICE, image="example/web:1", gpu=Request(vram_mib=8192))
    return replace(base, **changes)


def job(**changes) -> Spec:
    known = {"array", "parallelism", "gang", "retries", "time_limit_s"}
    own = {k: changes.pop(k) for k in list(changes) if k in known}
    base = Spec(
        name="render", kind=Kind.JOB, image="example/render:1", gpu=Request(), job=JobSpec(**own)
    )
    return replace(base, **changes)


def row(spec: Spec | None = None, state: State = State.RUNNING, **changes) -> Workload:
    spec = spec or service()
    placed = None
    if state not in (State.QUEUED, State.STOPPED):
        slots = tuple(Slot(f"n{i + 1}", (f"gpu-{i + 1}",)) for i in range(spec.replicas))
        placed = Placement("w1", slots)
    base = Workload(
        id="w1",
        name=spec.name,
        owner="ann",
        cluster="home",
        spec=replace(spec, cluster="home"),
        revision=1,
        state=state,
        desire=Desire.RUN,
        created_at=NOW,
        changed_at=NOW,
        queued_at=NOW,
        placement=placed,
    )
    return replace(base, **changes)


def instance(name: str = "web-1", **changes) -> Instance:
    base = Instance(
        workload="w1",
        name=name,
        uid=f"uid-{name}",
        revision=1,
        phase="running",
        node="n1",
        ready=True,
        allocated=True,
        created_at=NOW,
        started_at=at(1),
        devices=("gpu-1",),
    )
    return replace(base, **changes)


def waiting(name: str = "web-1", **changes) -> Instance:
    fresh = {"phase": "pending", "node": "", "ready": False, "allocated": False, "devices": ()}
    return instance(name, **{**fresh, "started_at": None, **changes})


def presence(kind: str = "Deployment", **changes) -> Presence:
    base = Presence("w1", "web", 1, objects=((kind, "web"),), desired=1)
    return replace(base, **changes)


def node(name: str, *devices: Device, **changes) -> Node:
    return replace(Node(name, 8000, 32768, devices=tuple(devices)), **changes)


def device(node_name: str, uuid: str, vram_mib: int = 8192, **changes) -> Device:
    return replace(Device(node_name, 0, uuid, "RTX 3060", vram_mib, vram_mib - 512), **changes)
