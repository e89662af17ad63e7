"""VRAM bars: one scale for all of a page, promised pieces from the left, what is kept at the right end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from podwarden.control.answers import Gpu
from podwarden.domain.inventory import DeviceHealth, Holding
from podwarden.domain.units import GIB, show_gib
from podwarden.web.api.views import free_mib

LETTER = 0.75  # percent of the lane that one letter of a label takes, at the usual width
AIR = 2.1


@dataclass(frozen=True, slots=True)
class Cell:
    """kind: p promised, new, hold, out, keep. x, width: percent of the lane. href: "" for no link."""

    kind: str
    x: float
    width: float
    label: str
    text: str
    href: str = ""
    tight: bool = False

    @property
    def labelled(self) -> bool:
        return bool(self.label) and self.width >= len(self.label) * LETTER + AIR


@dataclass(frozen=True, slots=True)
class Bar:
    """width: percent of the lane that the whole GPU takes. gone: nothing of it can be given now."""

    width: float
    cells: tuple[Cell, ...]
    label: str
    gone: bool = False


def scale_of(gpus: Iterable[Gpu]) -> int:
    """The VRAM in MiB that a full lane stands for: the largest GPU of the page, at least 8 GiB."""
    return max((g.device.vram_mib for g in gpus), default=0) or 8 * GIB


def ticks(scale: int) -> tuple[tuple[float, str], ...]:
    """(percent, GiB) of the marks above the lanes: three or four round steps."""
    whole = scale / GIB
    step = next(s for s in (2, 4, 8, 12, 16, 24, 32, 48, 64, 128, 256, 4096) if whole / s <= 4)
    marks = [n * step for n in range(int(whole // step) + 1)]
    return tuple((mark / whole * 100, str(mark)) for mark in marks if whole - mark >= 0)


def charged(holding: Holding, gpu: Gpu) -> int:
    """What a holding takes of its GPU in MiB: all that can be promised when it is dedicated."""
    return gpu.device.memory_mib if holding.dedicated else holding.memory_mib


def usable(gpu: Gpu) -> bool:
    return gpu.device.present and gpu.device.health is DeviceHealth.OK


def bar(gpu: Gpu, scale: int, *, new: tuple[str, int] | None = None) -> Bar:
    """new: (name, MiB) of a workload that a preview would add."""
    device = gpu.device
    name = f"{device.node} GPU {device.index}"
    whole = _share(device.vram_mib, scale)
    if not usable(gpu):
        return Bar(whole, (), f"{name}: not available", gone=True)
    cells: list[Cell] = []
    at = 0
    for holding in gpu.holdings:
        mib = min(charged(holding, gpu), max(device.memory_mib - at, 0))
        cells.append(_held(holding, mib, at, scale))
        at += mib
    promised = at
    free = free_mib(device, gpu.holdings)
    if new is not None:
        mib = min(new[1], max(device.memory_mib - at, 0))
        text = f"{new[0]} would take {show_gib(mib)}"
        cells.append(Cell("new", _share(at, scale), _share(mib, scale), new[0], text))
        at += mib
    elif gpu.reserved_for and free:
        text = f"Reserved for {gpu.reserved_for}: {show_gib(free)}"
        cells.append(
            Cell(
                "hold", _share(at, scale), _share(free, scale), f"kept for {gpu.reserved_for}", text
            )
        )
    cells.extend(_ends(gpu, scale))
    label = f"{name}: {show_gib(promised)} of {show_gib(device.memory_mib)} promised"
    return Bar(whole, tuple(cells), label)


def _held(holding: Holding, mib: int, at: int, scale: int) -> Cell:
    holder = holding.holder
    how = "the whole GPU" if holding.dedicated else show_gib(mib)
    text = f"{holder.name}: {how}" + (", ending" if holder.terminating else "")
    href = f"/workloads/{holder.workload}" if holder.workload else ""
    width = _share(mib, scale)
    return Cell("p", _share(at, scale), width, holder.name, text, href, tight=width < 9)


def _ends(gpu: Gpu, scale: int) -> Iterable[Cell]:
    device = gpu.device
    kept = max(device.vram_mib - device.memory_mib - device.outside_mib, 0)
    if device.outside_mib:
        x = _share(device.vram_mib - kept - device.outside_mib, scale)
        text = f"Outside PodWarden: {show_gib(device.outside_mib)}"
        yield Cell("out", x, _share(device.outside_mib, scale), "", text)
    if kept:
        text = f"Kept for the driver: {show_gib(kept)}"
        yield Cell("keep", _share(device.vram_mib - kept, scale), _share(kept, scale), "", text)


def _share(mib: int, scale: int) -> float:
    return mib / scale * 100
