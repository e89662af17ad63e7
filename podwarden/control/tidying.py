"""What nobody looks at any more is taken away, by the leader, a little at a time: no writer waits for it."""

from __future__ import annotations

from datetime import timedelta

from podwarden.control.clock import Clock
from podwarden.control.leader import Leader
from podwarden.control.loop import Turn
from podwarden.errors import FenceLost
from podwarden.store import Store, Unit

BATCH = 2000  # rows per transaction
DELETED_KEPT = timedelta(days=30)  # rows of deleted workloads, for pages that point to them
BETWEEN, SOON = 3600.0, 1.0  # seconds; SOON while there is more


class Tidying:
    def __init__(self, store: Store, leader: Leader, clock: Clock) -> None:
        self._store = store
        self._leader = leader
        self._clock = clock

    async def turn(self) -> Turn:
        if not self._leader.leading:
            return Turn(again=60.0)
        before = self._clock.now() - DELETED_KEPT

        def work(unit: Unit) -> tuple[int, int]:
            return unit.events.prune(BATCH), unit.workloads.prune(before, BATCH)

        try:
            events, rows = await self._store.write(work, fence=self._leader.fence())
        except FenceLost:  # another one leads, and does it
            return Turn(again=60.0)
        said = f"{events} old events and {rows} deleted workloads were taken away"
        more = max(events, rows) >= BATCH
        return Turn(said if events or rows else "", SOON if more else BETWEEN)
