"""Kubernetes objects as the API gives them, one builder a kind."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
T0 = "2026-11-30T12:00:00Z"


def node(
    name: str, *, ready: bool = True, cpu: str = "8", memory: str = "32Gi", **more: Any
) -> Json:
    labels = {"kubernetes.io/hostname": name, **more.pop("labels", {})}
    allocatable = {"cpu": cpu, "memory": memory, "pods": "110", **more.pop("allocatable", {})}
    condition = {
        "type": "Ready",
        "status": "True" if ready else "Unknown",
        "lastTransitionTime": T0,
        "lastHeartbeatTime": more.pop("beat", T0),
    }
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": more.pop("spec", {}),
        "status": {
            "allocatable": allocatable,
            "conditions": [condition],
            "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
            **more,
        },
    }


def container(cpu: str = "", memory: str = "", gpus: str = "", **more: Any) -> Json:
    asked = {"cpu": cpu, "memory": memory}
    limits = {"nvidia.com/gpu": gpus} if gpus else {}
    requests = {key: value for key, value in asked.items() if value}
    return {
        "name": "main",
        "image": "i",
        "resources": {"requests": requests, "limits": limits},
        **more,
    }


def pod(
    name: str, *, space: str = "other", on: str = "", phase: str = "Running", **more: Any
) -> Json:
    """own="<workload id>" makes it one of PodWarden's. Other keywords: meta, spec, status."""
    own = more.pop("own", "")
    labels = {"podwarden.io/workload": own, "podwarden.io/name": own.removeprefix("id-"), "podwarden.io/revision": "1"} if own else {}  # fmt: skip
    meta = {
        "name": name,
        "namespace": "podwarden" if own else space,
        "uid": f"uid-{name}",
        "creationTimestamp": T0,
        "labels": labels,
        **more.pop("meta", {}),
    }
    spec = {"containers": [container("100m", "64Mi")], "schedulerName": "default-scheduler"}
    if on:
        spec["nodeName"] = on
    return {
        "metadata": meta,
        "spec": {**spec, **more.pop("spec", {})},
        "status": {"phase": phase, **more.pop("status", {})},
    }


def slice_(
    node_: str, devices: list[Json], *, driver: str = "gpu.podwarden.io", generation: int = 1
) -> Json:
    return {
        "metadata": {"name": f"{node_}-{driver}-{generation}"},
        "spec": {
            "driver": driver,
            "nodeName": node_,
            "pool": {"name": node_, "generation": generation, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def card(uuid: str, gib: int, *, shares: bool = True, model: str = "RTX 3090") -> Json:
    """A device as PodWarden's node agent publishes it; shares False: as a driver of whole GPUs does."""
    out: Json = {
        "name": uuid,
        "attributes": {
            "uuid": {"string": uuid},
            "model": {"string": model},
            "vramMiB": {"int": gib * 1024},
        },
        "capacity": {"memory": {"value": f"{gib}Gi"}},
    }
    if shares:
        out["allowMultipleAllocations"] = True
        out["capacity"]["shares"] = {"value": "64"}
    return out


def claim(
    name: str,
    *,
    space: str = "other",
    device: str = "",
    pool: str = "n1",
    pods: list[str] | None = None,
    **more: Any,
) -> Json:
    """Allocated where a device is named. consumed: capacity; going: deleted already; driver."""
    result: Json = {
        "request": "gpu",
        "driver": more.pop("driver", "gpu.podwarden.io"),
        "pool": pool,
        "device": device,
    }
    consumed = more.pop("consumed", None)
    if consumed is not None:
        result["consumedCapacity"] = consumed
    status: Json = {}
    if device:
        status["allocation"] = {"devices": {"results": [result]}, "allocationTimestamp": T0}
        status["reservedFor"] = [
            {"resource": "pods", "name": pod_, "uid": f"uid-{pod_}"} for pod_ in pods or ()
        ]
    meta: Json = {
        "name": name,
        "namespace": space,
        "creationTimestamp": T0,
        "labels": more.pop("labels", {}),
    }
    if more.pop("going", False):
        meta["deletionTimestamp"] = T0
    if more.get("owner"):
        meta["ownerReferences"] = [
            {"kind": "Pod", "uid": f"uid-{more.pop('owner')}", "controller": True}
        ]
    assert not more, more
    return {"metadata": meta, "status": status}


def deployment(workload: str, *, replicas: int = 1, revision: int = 1, **status: Any) -> Json:
    return {
        "metadata": own_meta(workload, revision),
        "spec": {"replicas": replicas},
        "status": status,
    }


def own_meta(workload: str, revision: int = 1, name: str = "", **more: Any) -> Json:
    return {
        "name": name or workload.removeprefix("id-"),
        "namespace": "podwarden",
        "generation": 1,
        "labels": {
            "podwarden.io/workload": workload,
            "podwarden.io/name": workload.removeprefix("id-"),
            "podwarden.io/revision": str(revision),
        },
        **more,
    }
