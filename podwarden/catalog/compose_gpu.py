"""The ways in which a Compose service asks for GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podwarden.catalog.compose_remarks import Place
from podwarden.catalog.compose_values import child, whole
from podwarden.domain.check import as_text

RESERVED = frozenset({"NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"})
_HERE = "PodWarden chooses the GPUs: their numbers are not carried over"


@dataclass(slots=True)
class Gpus:
    """count: GPUs asked for in numbers. wanted: some are, in words that say no number."""

    count: int = 0
    wanted: bool = False
    forbidden: bool = False

    def reservations(self, place: Place) -> None:
        """deploy.resources.reservations.devices"""
        for entry in place.entries():
            self._device(entry)

    def section(self, place: Place) -> None:
        """gpus: all, or a list of devices."""
        if place.value == "all":
            self._all(place)
            return
        if not isinstance(place.value, list):
            place.fault("all, or a list with count or device_ids")
            return
        for entry in place.entries():
            self._device(entry, plain=True)

    def runtime(self, place: Place) -> None:
        if place.value == "nvidia":
            self.wanted = True
        else:
            place.leave_out("PodWarden chooses the runtime", place.value)

    def device(self, place: Place, text: str) -> None:
        """devices: /dev/nvidia0, nvidia.com/gpu=all"""
        self.wanted = True
        place.note(_HERE, text)

    def variable(self, place: Place, name: str, value: str) -> None:
        if value in ("", "none", "void", "-1"):
            self.forbidden = True
        elif value != "all":
            place.note(_HERE, f"{name}={value}")

    def request(self, place: Place) -> dict[str, Any] | None:
        if self.forbidden and not self.count:
            return None
        if not self.count and not self.wanted:
            return None
        count = self.count or 1
        size = "give --vram for a size" + (", --shared for a part of one" if count == 1 else "")
        place.note(f"takes {count} whole GPU{'s' if count > 1 else ''} of any size: {size}")
        return {"count": count}

    def _all(self, place: Place) -> None:
        self.count += 1
        place.note("all GPUs of that machine are one GPU here: give --gpus for more", "all")

    def _device(self, entry: Place, *, plain: bool = False) -> None:
        if not isinstance(entry.value, dict):
            entry.fault("a section with driver, count and capabilities")
            return
        if not plain and not _is_gpu(entry):
            entry.leave_out("only NVIDIA GPUs are given out")
            return
        if child(entry, "options") is not None:
            entry.leave_out("options of a GPU are not carried over")
        ids, count = child(entry, "device_ids"), child(entry, "count")
        if ids is not None:
            self.count += max(len(ids.entries()), 1)
            ids.note(_HERE)
        elif count is None or count.value == "all":
            self._all(count or entry)
        else:
            self.count += whole(count) or 0


def _is_gpu(entry: Place) -> bool:
    driver, able = child(entry, "driver"), child(entry, "capabilities")
    if driver is not None and as_text(driver.value) not in ("nvidia", "cdi"):
        return False
    words = {as_text(one.value) for one in able.entries()} if able is not None else set()
    return bool({"gpu", "nvidia"} & words) or driver is not None
