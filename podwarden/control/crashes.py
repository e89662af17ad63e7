"""How often the instances of each service ended by themselves of late."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime

from podwarden.control.judge import CRASH_WINDOW
from podwarden.domain.observation import Instance


class Crashes:
    """Restarts are counted per instance; those of an instance made within the window count when it is first
    seen, so that a new leader knows them too.
    """

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, int]] = {}
        self._at: dict[str, deque[datetime]] = {}

    def count(self, workload: str, instances: Sequence[Instance], now: datetime) -> tuple[int, int]:
        """(crashes within the window, new ones since the last call)."""
        known = self._seen.get(workload, {})
        fresh = 0
        seen: dict[str, int] = {}
        for instance in instances:
            seen[instance.uid] = instance.restarts
            before = known.get(instance.uid)
            if before is not None:
                fresh += max(instance.restarts - before, 0)
            elif instance.created_at is not None and now - instance.created_at < CRASH_WINDOW:
                fresh += instance.restarts
        self._seen[workload] = seen
        moments = self._at.setdefault(workload, deque())
        moments.extend([now] * fresh)
        while moments and now - moments[0] > CRASH_WINDOW:
            moments.popleft()
        return len(moments), fresh

    def forget(self, workload: str) -> None:
        self._seen.pop(workload, None)
        self._at.pop(workload, None)
