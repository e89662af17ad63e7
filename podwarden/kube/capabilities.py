"""What a cluster can do for a request: one table, version x driver. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from podwarden.domain.inventory import Capabilities, Device
from podwarden.kube.devices import DRIVER

SHARES_FROM = (1, 36)  # consumable capacity is on by default
TARGET = (1, 37)


@dataclass(frozen=True, slots=True)
class _Row:
    dedicated: bool
    shared: bool
    vram_floor: bool
    hold: bool
    steer_device: bool
    why: str


_OURS = _Row(True, True, True, True, True, "")
_OTHER = _Row(
    True, True, True, False, True,
    "The GPUs are published by another driver: PodWarden cannot keep one free for the next in line.",
)  # fmt: skip
_CLASSIC = _Row(
    True, False, True, False, False,
    "The GPUs are offered by a device plugin: whole GPUs only, by number; their size is known from node labels.",
)  # fmt: skip
_CLASSIC_BLIND = _Row(
    True, False, False, False, False,
    "The GPUs are offered by a device plugin: whole GPUs only, by number, without a choice of size.",
)  # fmt: skip


def capabilities(
    devices: Iterable[Device], version: tuple[int, int], served: frozenset[str]
) -> Capabilities:
    """The least that all of the cluster's drivers can do.

    served: plurals of resource.k8s.io/v1. Without any GPU the answer is what PodWarden's own driver could do there.
    """
    seen = list(devices)
    drivers = {device.dra_driver for device in seen} or {DRIVER}
    sized = all(device.vram_mib > 0 for device in seen if not device.dra_driver)
    rows = [_row(driver, sized=sized) for driver in sorted(drivers)]
    why = [row.why for row in rows if row.why]
    shared = all(row.shared for row in rows)
    if shared and version < SHARES_FROM:
        shared = False
        why.append(f"Kubernetes {_show(version)} cannot share a GPU by VRAM; {_show(TARGET)} can.")
    elif shared and seen and all(device.whole_only for device in seen):
        shared = False
        why.append("The driver gives whole GPUs only: none can be shared.")
    hold = all(row.hold for row in rows)
    if hold and "devicetaintrules" not in served:
        hold = False
        why.append(
            f"Kubernetes {_show(version)} cannot keep a free GPU for the next in line; {_show(TARGET)} can."
        )
    return Capabilities(
        dedicated=all(row.dedicated for row in rows),
        shared=shared,
        vram_floor=all(row.vram_floor for row in rows),
        hold=hold,
        steer_device=all(row.steer_device for row in rows),
        why=tuple(dict.fromkeys(why)),
        driver=DRIVER if DRIVER in drivers else min(drivers),
    )


def _row(driver: str, *, sized: bool) -> _Row:
    """sized: of classic GPUs, whether every node says how large its own are."""
    if driver == DRIVER:
        return _OURS
    if driver:
        return _OTHER
    return _CLASSIC if sized else _CLASSIC_BLIND


def _show(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
