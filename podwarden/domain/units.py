"""Sizes, CPU and durations: what people write, what is stored, what is shown.

Stored: memory and VRAM in MiB (int), CPU in milli-cores (int), durations in seconds (int).
Every parser raises ValueError whose text is the fix ("a size such as 8Gi or 500Mi"), without the value:
the caller knows the field and the value.
"""

from __future__ import annotations

import math
import re

GIB = 1024  # MiB
MAX_MIB = 1 << 30  # 1 PiB in MiB: above this a size is a typing error

_VRAM = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s?(G|GB|Gi|GiB)?", re.ASCII)
_SIZE = re.compile(
    r"(\d{1,12}(?:\.\d{1,3})?)\s?(Ki|Mi|Gi|Ti|k|K|M|G|T|MB|GB|TB|MiB|GiB|TiB)?", re.ASCII
)
_CPU = re.compile(r"(\d{1,7})(m)?|(\d{1,4}\.\d{1,3})", re.ASCII)
_DURATION = re.compile(r"(?:(\d{1,5})d)?(?:(\d{1,6})h)?(?:(\d{1,7})m)?(?:(\d{1,9})s)?", re.ASCII)
_BYTES = {
    "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40,
    "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
    "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
    "MB": 10**6, "GB": 10**9, "TB": 10**12,
}  # fmt: skip

VRAM_FIX = "a VRAM size such as 16GB or 7.5GB, from 0.25GB up"
SIZE_FIX = "a size such as 8Gi or 500Mi"
CPU_FIX = "a number of CPU cores such as 2, 0.5 or 500m"
DURATION_FIX = "a duration such as 90s, 10m, 2h or 1h30m"

# A card sold as 24 GB may report 22.5 GiB: ECC takes 1/16, firmware a little more.
CARD_TOLERANCE = 0.065


def parse_vram(text: str | float) -> int:
    """`16`, `16G`, `16GB`, `16Gi`, `16GiB` all mean what is printed on a 16 GB card: 16384 MiB.

    MiB and MB are accepted for budgets below a gigabyte (`512Mi`).
    """
    if isinstance(text, bool):
        raise ValueError(VRAM_FIX)  # noqa: TRY004 - every parser raises ValueError
    raw = str(text).strip()
    match = _VRAM.fullmatch(raw)
    if match:
        mib = round(float(match[1]) * GIB)
    elif re.fullmatch(r"\d{1,10}\s?(Mi|MiB|MB|M)", raw, re.ASCII):
        mib = int(re.match(r"\d+", raw)[0])  # type: ignore[index]  # fullmatch above
    else:
        raise ValueError(VRAM_FIX)
    if not GIB // 4 <= mib <= MAX_MIB:
        raise ValueError(VRAM_FIX)
    return mib


def vram_floor(mib: int) -> int:
    """The smallest driver-reported total (MiB) that counts as a card of `mib`."""
    return math.floor(mib * (1 - CARD_TOLERANCE))


def driver_reserve(total_mib: int) -> int:
    """VRAM never promised: max(3 %, 256 MiB) of a card, for the driver and contexts."""
    return max(math.ceil(total_mib * 0.03), 256)


def promisable(total_mib: int, outside_mib: int = 0) -> int:
    """What may be promised of a card, in steps of 128 MiB, rounded down, never negative."""
    return max(total_mib - driver_reserve(total_mib) - outside_mib, 0) // 128 * 128


def promised_floor(mib: int) -> int:
    """The smallest promisable memory (MiB) with which a card of at least `mib` counts as whole:
    less than this means that processes outside hold a real part of it.
    """
    floor = vram_floor(mib)
    return max(floor - driver_reserve(floor), 0) // 128 * 128


def parse_size(text: str | float) -> int:
    """A strict size in MiB, rounded up; a bare number is bytes as in Kubernetes and is refused
    below 1 MiB, since it is always a forgotten unit.
    """
    if isinstance(text, bool):
        raise ValueError(SIZE_FIX)  # noqa: TRY004
    match = _SIZE.fullmatch(str(text).strip())
    if not match:
        raise ValueError(SIZE_FIX)
    size = float(match[1]) * _BYTES.get(match[2] or "", 1)
    mib = math.ceil(size / (1 << 20))
    if size < 1 << 20 or mib > MAX_MIB:
        raise ValueError(SIZE_FIX)
    return mib


def parse_cpu(text: str | float) -> int:
    if isinstance(text, bool):
        raise ValueError(CPU_FIX)  # noqa: TRY004
    match = _CPU.fullmatch(str(text).strip())
    if not match:
        raise ValueError(CPU_FIX)
    milli = round(float(match[3]) * 1000) if match[3] else int(match[1]) * (1 if match[2] else 1000)
    if not 1 <= milli <= 4096_000:
        raise ValueError(CPU_FIX)
    return milli


def parse_duration(text: str | int) -> int:
    """Seconds, from 1 s to 10 years."""
    raw = str(text).strip()
    match = _DURATION.fullmatch(raw)
    if isinstance(text, bool) or not raw or not match:
        raise ValueError(DURATION_FIX)
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if not 1 <= total <= 10 * 366 * 86400:
        raise ValueError(DURATION_FIX)
    return total


def show_gib(mib: int) -> str:
    """Measured memory, rounded down: `11.6 GiB`, `24.0 GiB`, `0`."""
    if mib == 0:
        return "0"
    return f"{math.floor(mib * 10 / GIB) / 10:.1f} GiB"


def show_gb(mib: int) -> str:
    """Asked VRAM as people buy it: `16 GB`, `7.5 GB`."""
    return (
        f"{mib / GIB:g} GB"
        if mib % GIB == 0
        else f"{mib / GIB:.2f}".rstrip("0").rstrip(".") + " GB"
    )


def show_cpu(milli: int) -> str:
    return f"{milli / 1000:g}"


def show_duration(seconds: float) -> str:
    """`1.4 s`, `42 s`, `10 min`, `2 h 5 min`, `3 d 4 h`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"
