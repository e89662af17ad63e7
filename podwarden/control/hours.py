"""Opening hours of a workload (`22:00-07:00`), in the server's local time."""

from __future__ import annotations

from datetime import datetime, timedelta


def is_open(hours: str, local: datetime) -> bool:
    """local: the server's wall time. "" is always open; from == to is always open."""
    if not hours:
        return True
    start, end = _minutes(hours)
    now = local.hour * 60 + local.minute
    if start == end:
        return True
    return start <= now < end if start < end else now >= start or now < end


def next_change(hours: str, local: datetime) -> datetime | None:
    """When it next opens or closes; None for always open."""
    if not hours:
        return None
    start, end = _minutes(hours)
    if start == end:
        return None
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    moments = [
        midnight + timedelta(days=day, minutes=minute) for day in (0, 1) for minute in (start, end)
    ]
    return min(moment for moment in moments if moment > local)


def _minutes(hours: str) -> tuple[int, int]:
    start, end = hours.split("-")
    return _of_day(start), _of_day(end)


def _of_day(clock: str) -> int:
    hour, minute = clock.strip().split(":")
    return int(hour) * 60 + int(minute)
