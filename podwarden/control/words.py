"""Sentences that several modules say alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from podwarden.domain.inventory import Device, Node
from podwarden.domain.placement import Slot
from podwarden.domain.units import show_duration


def devices_by_uuid(nodes: Iterable[Node]) -> dict[str, Device]:
    return {device.uuid: device for node in nodes for device in node.devices}


def place(slots: Iterable[Slot], devices: Mapping[str, Device]) -> str:
    """`n3, RTX 3090`; `n4, 2 RTX A4000`; `n3, RTX 3090 and n5, GTX 1070`; `n2`; "" without slots."""
    parts: Counter[str] = Counter()
    for slot in slots:
        models = Counter(devices[d].model if d in devices else "GPU" for d in slot.devices)
        gpus = ", ".join(
            f"{n} \N{MULTIPLICATION SIGN} {m}" if n > 1 else m for m, n in sorted(models.items())
        )
        parts[f"{slot.node}, {gpus}" if gpus else slot.node] += 1
    said = [f"{part} ({count} times)" if count > 1 else part for part, count in parts.items()]
    if len(said) > 4:
        return f"{', '.join(said[:3])} and {len(said) - 3} more places"
    return " and ".join(said)


def ago(start: datetime | None, now: datetime) -> str:
    """A span as people say it; `0.0 s` when the start is not known."""
    return show_duration(max((now - start).total_seconds(), 0.0) if start is not None else 0.0)
