"""Nouns for the tests of the store, complete in every field, so that a lost field is seen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from podwarden.domain.event import Event, EventKind
from podwarden.domain.inventory import Device, Node
from podwarden.domain.placement import Placement, Slot
from podwarden.domain.reason import Code, Note, Reason
from podwarden.domain.request import Request, Sharing
from podwarden.domain.workload import (
    Desire,
    Kind,
    Priority,
    Revision,
    Spec,
    State,
    Workload,
)

NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


def a_spec(name: str = "ollama", **changes: Any) -> Spec:
    fields: dict[str, Any] = {
        "name": name,
        "kind": Kind.SERVICE,
        "image": "ollama/ollama:0.9",
        "gpu": Request(vram_mib=8192, sharing=Sharing.SHARED, model=("RTX 3090", "A10")),
        "env": (("A", "1"), ("B", "two words")),
        "priority": Priority.HIGH,
    }
    return Spec(**{**fields, **changes})


def a_workload(id_: str = "w1", name: str = "ollama", **changes: Any) -> Workload:
    fields: dict[str, Any] = {
        "id": id_,
        "name": name,
        "owner": "bo",
        "cluster": "home",
        "spec": a_spec(name),
        "revision": 1,
        "state": State.QUEUED,
        "desire": Desire.RUN,
        "created_at": NOON,
        "changed_at": NOON,
        "queued_at": NOON,
    }
    return Workload(**{**fields, **changes})


def a_revision(workload: Workload, number: int = 1, **changes: Any) -> Revision:
    fields: dict[str, Any] = {
        "workload": workload.id,
        "number": number,
        "spec": workload.spec,
        "made_at": NOON,
        "made_by": "bo",
        "note": "first",
    }
    return Revision(**{**fields, **changes})


def a_placement(id_: str = "w1") -> Placement:
    return Placement(
        id_, (Slot("n3", ("gpu-a", "gpu-b")), Slot("n4")), ("n3", "n4", "n5"), (8192, 24576)
    )


def a_reason() -> Reason:
    return Reason(
        Code.DEVICES_IN_USE,
        'needs 1 GPU with 8 GB; "n3" is full — 0 of 2 free.',
        "Stop vllm.",
        (
            Note("n3", "gpu-a", Code.WAITS_FOR_SERVICE, "held by vllm"),
            Note("n4", "", Code.NODE_NOT_READY, "away"),
        ),
        ("vllm", "comfy"),
    )


def an_event(subject: str = "w1", text: str = "submitted", **changes: Any) -> Event:
    fields: dict[str, Any] = {
        "at": NOON,
        "subject": subject,
        "kind": EventKind.SUBMITTED,
        "text": text,
        "actor": "bo",
        "code": "DEVICES_IN_USE",
        "name": "ollama",
    }
    return Event(**{**fields, **changes})


def a_device(uuid: str, node: str = "n3", vram_mib: int = 24576, **changes: Any) -> Device:
    fields: dict[str, Any] = {
        "node": node,
        "index": 0,
        "uuid": uuid,
        "model": "RTX 3090",
        "vram_mib": vram_mib,
        "memory_mib": vram_mib - 1024,
        "compute_capability": "8.6",
        "encoders": 8,
    }
    return Device(**{**fields, **changes})


def a_node(name: str = "n3", *devices: Device, **changes: Any) -> Node:
    fields: dict[str, Any] = {
        "name": name,
        "cpu_milli": 16000,
        "memory_mib": 65536,
        "address": "10.0.0.3",
        "labels": (("a", "b"),),
        "devices": devices,
    }
    return Node(**{**fields, **changes})


def later(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)
