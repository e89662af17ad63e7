"""The work itself: workload files for PodWarden, and exactly the same objects, rendered beforehand, for a plain client."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from podwarden import scheduling
from podwarden.catalog import read_file
from podwarden.domain.observation import Observation
from podwarden.domain.placement import Claimant, Placement, Snapshot
from podwarden.domain.workload import Desire, State, Workload
from podwarden.kube.kinds import kind_of
from podwarden.kube.labels import NAMESPACE
from podwarden.kube.render import render

LEFT_OUT = {"ConfigMap"}  # PodWarden's own record: a plain client has none
Parts = list[tuple[str, bytes]]


def names(prefix: str, count: int, first: int = 0) -> list[str]:
    return [f"{prefix}-{number:05}" for number in range(first, first + count)]


def service_file(name: str) -> str:
    return (
        f"name: {name}\nkind: service\nimage: example.org/app:1\ngpu: {{vram: 16GB}}\n"
        "resources: {cpu: 500m, memory: 256Mi}\nshm: 64Mi\n"
    )


def job_file(name: str, seconds: float = 3600) -> str:
    return (
        f"name: {name}\nkind: job\nimage: example.org/app:1\ngpu: {{vram: 16GB}}\n"
        "resources: {cpu: 500m, memory: 256Mi}\nshm: 64Mi\njob: {retries: 0}\n"
        f'annotations: {{simulator.podwarden.io/run-seconds: "{seconds}"}}\n'
    )


def order(file: str) -> bytes:
    """The body of `POST /workloads`."""
    return json.dumps({"file": file}).encode()


def row(name: str, file: str, owner: str = "admin") -> Workload:
    now = datetime.now(UTC)
    spec = read_file(file, name)
    return Workload(
        id=name,
        name=name,
        owner=owner,
        cluster="bench",
        spec=spec,
        revision=1,
        state=State.QUEUED,
        desire=Desire.RUN,
        created_at=now,
        changed_at=now,
        queued_at=now,
    )


def rendered(files: dict[str, str], seen: Observation, *, steered: bool = True) -> list[Parts]:
    """For each name the objects as (path, body), the claim template first. steered: towards the GPU and node that
    the plan chose, as PodWarden does; else the same objects without a wish.
    """
    rows = [row(name, file) for name, file in files.items()]
    wanted = _planned(rows, seen)
    made = []
    for each in rows:
        placement = wanted[each.id]
        if not steered:
            placement = Placement(each.id, (), (), placement.bands)
        objects = render(each, placement, secrets={}, capabilities=seen.capabilities).objects
        made.append([_part(obj) for obj in objects if obj["kind"] not in LEFT_OUT])
    return made


def _planned(rows: Sequence[Workload], seen: Observation) -> dict[str, Placement]:
    """Each gets a GPU of its own, as one planning pass gives them out."""
    now = datetime.now(UTC)
    claimants = tuple(
        Claimant(
            workload=each.id,
            name=each.name,
            endless=each.spec.endless,
            priority=int(each.spec.priority),
            queued_at=now,
            request=each.spec.gpu,
            cpu_milli=each.spec.cpu_milli,
            memory_mib=each.spec.instance_memory_mib,
        )
        for each in rows
    )
    view = Snapshot(
        "bench",
        now,
        nodes=seen.nodes,
        holdings=seen.holdings,
        claimants=claimants,
        capabilities=seen.capabilities,
    )
    return {placement.workload: placement for placement in scheduling.plan(view, now).placements}


def _part(obj: dict[str, Any]) -> tuple[str, bytes]:
    return kind_of(obj).path(NAMESPACE), json.dumps(obj, separators=(",", ":")).encode()
