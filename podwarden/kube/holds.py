"""Free GPUs kept for the head of the queue: a taint rule that only the head's claims tolerate. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from podwarden.domain.placement import Hold
from podwarden.kube.devices import DRIVER
from podwarden.kube.labels import HOLD, PREFIX, WORKLOAD

UNTIL = f"{PREFIX}until"  # annotation: when the reserved start is expected


def hold_object(hold: Hold, *, driver: str = DRIVER) -> dict[str, Any]:
    """NoSchedule: what already runs on the device stays. The name follows from device and workload."""
    digest = hashlib.sha256(f"{hold.device}\0{hold.workload}".encode()).hexdigest()[:16]
    metadata: dict[str, Any] = {
        "name": f"podwarden-hold-{digest}",
        "labels": {WORKLOAD: hold.workload},
    }
    if hold.until is not None:
        metadata["annotations"] = {UNTIL: hold.until.isoformat()}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": metadata,
        "spec": {
            "deviceSelector": {"driver": driver, "pool": hold.node, "device": hold.device},
            "taint": {"key": HOLD, "value": hold.workload, "effect": "NoSchedule"},
        },
    }


def read_hold(rule: Mapping[str, Any]) -> tuple[str, str] | None:
    """(device uuid, workload id); None for a rule that is no hold of PodWarden."""
    spec = rule.get("spec") or {}
    taint = spec.get("taint") or {}
    device = (spec.get("deviceSelector") or {}).get("device")
    if taint.get("key") != HOLD or not device:
        return None
    return str(device), str(taint.get("value") or "")
