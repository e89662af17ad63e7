"""Builders of workloads, placements and GPUs for the tests of rendering."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from podwarden.domain.inventory import Capabilities, Device
from podwarden.domain.placement import Placement, Slot
from podwarden.domain.request import Request
from podwarden.domain.workload import Desire, JobSpec, Kind, Spec, State, Workload
from podwarden.kube.render import Rendered, render

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
GIB = 1024


def gpu(index: int = 0, vram_mib: int = 24 * GIB, **more: Any) -> Device:
    given: dict[str, Any] = {
        "node": "n3",
        "uuid": f"GPU-000{index}",
        "model": "NVIDIA GeForce RTX 3090",
        "memory_mib": vram_mib - 768,
    }
    return Device(index=index, vram_mib=vram_mib, **(given | more))


def spec_of(name: str = "web", gpu: Request | None = None, **more: Any) -> Spec:
    more.setdefault("kind", Kind.SERVICE)
    if more["kind"] is Kind.JOB:
        more.setdefault("job", JobSpec())
    return Spec(name=name, image="example.org/app:1", gpu=gpu, **more)


def workload_of(spec: Spec, **more: Any) -> Workload:
    given: dict[str, Any] = {
        "id": f"id-{spec.name}",
        "owner": "ann",
        "revision": 1,
        "queued_at": NOW,
        "created_at": NOW,
    }
    return Workload(
        name=spec.name,
        cluster="home",
        spec=spec,
        state=State.STARTING,
        desire=Desire.RUN,
        changed_at=NOW,
        **(given | more),
    )


def placed(*slots: Slot, ranking: tuple[str, ...] = (), bands: tuple[int, ...] = ()) -> Placement:
    return Placement("id-web", slots, ranking or tuple(slot.node for slot in slots), bands)


def rendered(spec: Spec, placement: Placement | None = None, **more: Any) -> Rendered:
    more.setdefault("secrets", {})
    more.setdefault("capabilities", Capabilities())
    workload = more.pop("workload", None) or workload_of(spec)
    return render(workload, placement or Placement(workload.id, ()), **more)


def only(result: Rendered, kind: str) -> dict[str, Any]:
    """The one object of a kind."""
    found = [obj for obj in result.objects if obj["kind"] == kind]
    assert len(found) == 1, f"{len(found)} objects of kind {kind}"
    return found[0]


def pod_of(result: Rendered) -> dict[str, Any]:
    """The spec of the pods that the last object starts."""
    return result.objects[-1]["spec"]["template"]["spec"]


def container_of(result: Rendered) -> dict[str, Any]:
    (container,) = pod_of(result)["containers"]
    return container


def env_of(result: Rendered) -> dict[str, Any]:
    entries = container_of(result)["env"]
    assert len({e["name"] for e in entries}) == len(entries), "a variable twice"
    return {e["name"]: e.get("value", e.get("valueFrom")) for e in entries}
