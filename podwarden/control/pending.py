"""Updates that wait for room beside the old revision: begun when there is, dropped when none came in time."""

from __future__ import annotations

from dataclasses import replace

from podwarden.control import revising, snapshot, ways
from podwarden.control.desk import Desk
from podwarden.control.ledger import Entry
from podwarden.control.loop import Turn
from podwarden.control.revising import Pending
from podwarden.control.sight import Sight
from podwarden.domain.event import EventKind
from podwarden.domain.observation import Observation
from podwarden.domain.workload import Desire, Revision, State, Workload

LOOK = 2.0  # seconds between looks


class PendingUpdates:
    """The loop of one cluster. One is begun in each turn: the next is judged with it in place."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def turn(self) -> Turn:
        desk = self._desk
        waiting = [
            (row, order)
            for row in desk.books.holding.values()
            if (order := revising.pending(row)) is not None
        ]
        if not waiting:
            return Turn(again=LOOK)
        fence = desk.fence()
        seen = desk.link.observe()
        if not seen.reachable or not seen.complete:
            return Turn(again=LOOK)
        for row, order in waiting:
            said = await self._settle(row, order, seen, fence)
            if said:
                return Turn(said, 0.1)
        return Turn(f"{len(waiting)} updates wait for room", LOOK)

    async def _settle(self, row: Workload, order: Pending, seen: Observation, fence: int) -> str:
        """What became of it; "" while it waits on."""
        desk, now = self._desk, self._desk.clock.now()
        if row.desire is not Desire.RUN or row.state not in (State.RUNNING, State.UNHEALTHY):
            return await self._drop(row, f"the state is {row.state.value}", fence)
        view = snapshot.build(desk.books, seen, desk.known, desk.past, now.astimezone())
        sight = Sight(desk.books, desk.past, seen, desk.known)
        way, _ = ways.surge(view, sight, row, order.spec, now)
        if way is not None:
            return await self._begin(row, order, way, fence)
        if now >= order.until:
            why = "no room came in time; with --recreate it goes without, by a short downtime"
            return await self._drop(row, why, fence)
        return ""

    async def _begin(self, row: Workload, order: Pending, way: ways.Way, fence: int) -> str:
        number = row.revision + 1
        spec = replace(order.spec, priority=row.spec.priority)

        def work(entry: Entry) -> None:
            new = revising.begun(
                row, spec, way.placement, mode="surge", number=number, now=entry.now
            )
            saved = entry.save(new)
            if saved is not None:
                entry.unit.workloads.add_revision(
                    Revision(row.id, number, spec, entry.now, order.by, order.note)
                )
                entry.note(saved, EventKind.UPDATED, f"Room has come. {way.text}")

        await self._desk.ledger.write(work, fence=fence)
        return f"{row.name} goes on to revision {number}"

    async def _drop(self, row: Workload, why: str, fence: int) -> str:
        text = f"The update to revision {row.revision + 1} was dropped: {why}."

        def work(entry: Entry) -> None:
            saved = entry.save(revising.waiting(row, None))
            if saved is not None:
                entry.note(saved, EventKind.UPDATED, text)

        await self._desk.ledger.write(work, fence=fence)
        return f"{row.name}: {text}"
