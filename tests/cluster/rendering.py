"""Builders for the tests that give rendered objects to a real API server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from rawapi import Json, RawApi
from running import RunningEngine

from podwarden.domain.inventory import Capabilities, Device
from podwarden.domain.placement import Placement, Slot
from podwarden.domain.request import Request
from podwarden.domain.units import promisable
from podwarden.domain.workload import Desire, JobSpec, Kind, Spec, State, Workload
from podwarden.kube.devices import device_slice
from podwarden.kube.render import Rendered, render

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
FENCE = "podwarden.io/fence"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
PODS = "/api/v1/namespaces/podwarden/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/podwarden/resourceclaims"

PLURALS = {
    "ConfigMap": "configmaps", "Secret": "secrets", "Service": "services",
    "PersistentVolumeClaim": "persistentvolumeclaims", "ResourceClaimTemplate": "resourceclaimtemplates",
    "Deployment": "deployments", "Job": "jobs", "DeviceTaintRule": "devicetaintrules",
    "DeviceClass": "deviceclasses", "PriorityClass": "priorityclasses", "Namespace": "namespaces",
    "ServiceAccount": "serviceaccounts", "ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}  # fmt: skip


def path_of(obj: Json) -> str:
    group = "api" if obj["apiVersion"] == "v1" else "apis"
    space = obj["metadata"].get("namespace")
    place = f"namespaces/{space}/" if space else ""
    return f"/{group}/{obj['apiVersion']}/{place}{PLURALS[obj['kind']]}/{obj['metadata']['name']}"


def try_apply(
    api: RawApi, obj: Json, fence: int = 1, *, manager: str = "podwarden", dry_run: bool = False
) -> tuple[int, Json]:
    """(HTTP status, answer) of a server-side apply, with the fence stamped on the object."""
    stamped = json.loads(json.dumps(obj))
    stamped["metadata"].setdefault("annotations", {})[FENCE] = str(fence)
    query = {"fieldManager": manager, "force": "true", "fieldValidation": "Strict"} | (
        {"dryRun": "All"} if dry_run else {}
    )
    answer = api.http.patch(
        path_of(obj),
        params=query,
        content=json.dumps(stamped),
        headers={"Content-Type": "application/apply-patch+yaml"},
    )
    return answer.status_code, answer.json()


def apply_all(api: RawApi, objects: Iterable[Json], fence: int = 1) -> None:
    for obj in objects:
        status, answer = try_apply(api, obj, fence)
        assert status in {200, 201}, f"{obj['kind']} {obj['metadata']['name']}: {answer}"


def gpu(node: str, index: int, model: str, vram_mib: int, **more: Any) -> Device:
    uuid = f"gpu-{node}-{index}"
    compute = more.pop("compute_capability", "8.6")
    more.setdefault("memory_mib", promisable(vram_mib))
    return Device(
        node, index, uuid, model, vram_mib, compute_capability=compute,
        driver_version="580.95.05", cuda_version="13.0", pci_bus_id=f"0000:0{index}:00.0", **more,
    )  # fmt: skip


def publish(
    engine: RunningEngine, node: str, devices: Sequence[Device], generation: int = 1
) -> None:
    """The slice of a node, made or replaced."""
    uid = engine.api.get(f"/api/v1/nodes/{node}")["metadata"]["uid"]
    slice_ = device_slice(node, uid, devices, generation)
    found = engine.api.find(f"{SLICES}/{slice_['metadata']['name']}")
    if found is None:
        engine.api.create(SLICES, slice_)
        return
    slice_["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
    answer = engine.api.http.put(f"{SLICES}/{slice_['metadata']['name']}", json=slice_)
    assert answer.status_code == 200, answer.text


def spec_of(name: str, request: Request | None = None, **more: Any) -> Spec:
    more.setdefault("kind", Kind.SERVICE)
    if more["kind"] is Kind.JOB:
        more.setdefault("job", JobSpec())
    return Spec(
        name=name, image="example.org/app:1", gpu=request, cpu_milli=100, memory_mib=64, **more
    )


def workload_of(spec: Spec, **more: Any) -> Workload:
    more.setdefault("revision", 1)
    return Workload(
        id=f"id-{spec.name}", name=spec.name, owner="ann", cluster="home", spec=spec, state=State.STARTING,
        desire=Desire.RUN, created_at=NOW, changed_at=NOW, queued_at=NOW, **more,
    )  # fmt: skip


def placed(
    workload: Workload, *slots: Slot, bands: Sequence[int] = (), ranking: Sequence[str] = ()
) -> Placement:
    nodes = tuple(ranking) or tuple(dict.fromkeys(slot.node for slot in slots))
    return Placement(workload.id, slots, nodes, tuple(bands))


def rendered(workload: Workload, placement: Placement | None = None, **more: Any) -> Rendered:
    more.setdefault("secrets", {})
    more.setdefault("capabilities", Capabilities())
    return render(workload, placement or Placement(workload.id, ()), **more)


def pods_of(api: RawApi, workload: str) -> list[Json]:
    return api.items(PODS, labelSelector=f"podwarden.io/workload=id-{workload}")


def running(api: RawApi, workload: str, count: int = 1) -> list[Json] | None:
    """Its pods, once `count` of them run."""
    pods = [p for p in pods_of(api, workload) if p["status"].get("phase") == "Running"]
    return pods if len(pods) == count else None


def held_by(api: RawApi, workload: str) -> list[tuple[str, Json]]:
    """(device, consumed capacity) of every result of the workload's claims."""
    claims = api.items(CLAIMS, labelSelector=f"podwarden.io/workload=id-{workload}")
    return [
        (result["device"], result.get("consumedCapacity", {}))
        for claim in claims
        for result in claim.get("status", {})
        .get("allocation", {})
        .get("devices", {})
        .get("results", [])
    ]


def unschedulable(api: RawApi, workload: str) -> str:
    """The scheduler's words, "" until it spoke."""
    return next(
        (
            condition.get("message", "")
            for pod in pods_of(api, workload)
            for condition in pod["status"].get("conditions", [])
            if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable"
        ),
        "",
    )
