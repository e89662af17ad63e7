"""Nouns as JSON data and back, for columns. Shapes only; the spec has its own in domain/document.

Fields that a later version added are left to their defaults; fields that this version does not know are dropped.
"""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from datetime import timedelta
from typing import Any

from podwarden.domain.inventory import Device, DeviceHealth, Node
from podwarden.domain.placement import Placement, Slot
from podwarden.domain.reason import Code, Note, Reason

Data = dict[str, Any]


def placement_data(placement: Placement | None) -> Data | None:
    if placement is None:
        return None
    return {
        "workload": placement.workload,
        "slots": [[slot.node, list(slot.devices)] for slot in placement.slots],
        "ranking": list(placement.ranking),
        "bands": list(placement.bands),
    }


def placement_of(data: Data | None) -> Placement | None:
    if data is None:
        return None
    return Placement(
        workload=data["workload"],
        slots=tuple(Slot(node, tuple(devices)) for node, devices in data["slots"]),
        ranking=tuple(data["ranking"]),
        bands=tuple(data["bands"]),
    )


def reason_data(reason: Reason | None) -> Data | None:
    if reason is None:
        return None
    return {
        "code": reason.code.value,
        "text": reason.text,
        "remedy": reason.remedy,
        "notes": [[note.node, note.device, note.code.value, note.text] for note in reason.notes],
        "ahead": list(reason.ahead),
        "lines": list(reason.lines),
    }


def reason_of(data: Data | None) -> Reason | None:
    if data is None:
        return None
    return Reason(
        code=Code(data["code"]),
        text=data["text"],
        remedy=data["remedy"],
        notes=tuple(
            Note(node, device, Code(code), text) for node, device, code, text in data["notes"]
        ),
        ahead=tuple(data["ahead"]),
        lines=tuple(data.get("lines", ())),
    )


def pairs(data: list[list[Any]]) -> tuple[tuple[Any, Any], ...]:
    return tuple((key, value) for key, value in data)


def node_data(node: Node) -> Data:
    """What a node is, without what it does now: use, readiness, and its devices (kept one by one)."""
    still = replace(
        node,
        used_cpu_milli=0,
        used_memory_mib=0,
        used_pods=0,
        ready=True,
        changed_at=None,
        cordoned=False,
        agent_away=False,
        taints=(),
        devices=(),
    )
    return asdict(still)


def node_of(data: Data, devices: tuple[Device, ...]) -> Node:
    known = _only_fields(Node, data)
    known["taints"] = tuple(known.get("taints", ()))
    known["labels"] = pairs(known.get("labels", []))
    known["changed_at"] = None
    known["devices"] = devices
    return Node(**known)


def device_data(device: Device) -> Data:
    """What a GPU is; `present` has its own column, use by processes outside is not kept."""
    still = replace(device, present=True, outside_mib=0)
    return {**asdict(still), "health": device.health.value}


def device_of(data: Data, *, present: bool) -> Device:
    known = _only_fields(Device, data)
    known["health"] = DeviceHealth(known.get("health", DeviceHealth.OK.value))
    known["present"] = present
    return Device(**known)


def seconds(span: timedelta) -> float:
    return span.total_seconds()


def _only_fields(noun: type[Node | Device], data: Data) -> Data:
    names = {field.name for field in fields(noun)}
    return {key: value for key, value in data.items() if key in names}
