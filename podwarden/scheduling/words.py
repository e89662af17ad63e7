"""Phrases with numbers: how requests, GPUs and times are said."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from podwarden.domain.inventory import Device
from podwarden.domain.units import GIB, show_cpu, show_gb, show_gib, vram_floor
from podwarden.scheduling.need import Need

# What is printed on cards. A card of 24268 or 23028 MiB was sold as 24 GB.
_SIZES = (
    1, 2, 3, 4, 5, 6, 8, 10, 11, 12, 16, 18, 20, 22, 24, 32, 36, 40, 48, 64, 72, 80, 94, 96, 128, 141, 180,
    192, 288,
)  # fmt: skip
TIMES = "\N{MULTIPLICATION SIGN}"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def nominal_gb(vram_mib: int) -> int:
    """The size (GB) under which a card with this total is sold; an unusual one is rounded down to GiB."""
    if vram_mib < GIB // 2:
        return 0
    for size in _SIZES:
        if size * GIB >= vram_mib:
            return size if vram_floor(size * GIB) <= vram_mib else vram_mib // GIB
    return vram_mib // GIB


def card(vram_mib: int) -> str:
    """`24 GB`, as printed on the box; below one GB the measured size."""
    size = nominal_gb(vram_mib)
    return f"{size} GB" if size else f"{max(vram_mib, 0)} MiB"


def asked_gb(mib: int) -> str:
    """As people type it: `80GB`."""
    return show_gb(mib).replace(" ", "")


def cores(milli: int) -> str:
    return f"{show_cpu(milli)} CPU core" + ("" if milli == 1000 else "s")


def beside_words(need: Need) -> str:
    return f"{cores(need.cpu_milli)} and {show_gib(need.memory_mib) if need.memory_mib else '0 GiB'} of memory"


def gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"


def need_words(need: Need, at_once: int = 1) -> str:
    """`1 GPU with 20 GB`, `6 GB of a shared GPU`, `2 GPUs with 16 GB each on one node`."""
    if not need.count:
        text = beside_words(need)
    elif need.shared:
        budget = show_gb(need.vram_mib or need.budget_mib)
        text = (
            f"{budget} of a shared GPU"
            if need.count == 1
            else f"{budget} on each of {need.count} shared GPUs of one node"
        )
    else:
        text = gpus(need.count)
        if need.vram_mib is not None:
            text += f" with {show_gb(need.vram_mib)}" + (" each" if need.count > 1 else "")
        text += " on one node" if need.count > 1 else ""
    if need.model_names:
        text += f", model {either(need.model_names)}"
    if need.compute:
        text += f", compute capability {need.compute}"
    if need.encoders:
        text += f", {need.encoders} encoder session" + ("s" if need.encoders > 1 else "")
    return text if at_once == 1 else f"{at_once} {TIMES} {text} at the same time"


def either(names: Iterable[str]) -> str:
    """`a`, `a or b`, `a, b or c`; long lists are cut."""
    return _listed(names, "or")


def both(names: Iterable[str]) -> str:
    return _listed(names, "and")


def _listed(names: Iterable[str], word: str) -> str:
    parts = [short(name) for name in names]
    if len(parts) > 4:
        parts = [*parts[:3], f"{len(parts) - 3} more"]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def short(name: str, most: int = 40) -> str:
    """A name as a sentence can carry it: one line, printable, not endless."""
    if len(name) <= most and name.isprintable():
        return name
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    return text if len(text) <= most else text[: most - 1] + "…"


def clock(moment: datetime, now: datetime) -> str:
    """`14:20 UTC` today, `3 Dec 14:20 UTC` on another day: absolute, so that a text stays as it is."""
    time = f"{moment.hour:02}:{moment.minute:02} UTC"
    if moment.date() == now.date():
        return time
    return f"{moment.day} {_MONTHS[moment.month - 1]} {time}"


def gpu(device: Device, siblings: int = 1) -> str:
    """`n3 RTX 3090`; with its number where the node has several of the model: `n3 RTX 3090 #1`."""
    name = f"{short(device.node)} {short(device.model)}"
    return name if siblings == 1 else f"{name} #{device.index}"
