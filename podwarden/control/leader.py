"""Who acts: a lease in the store with a fence, kept alive; while it holds, one room per cluster runs.

A leader stops acting before its lease runs out, by a clock that goes on while the process is stopped; the
store's transactions and the clusters refuse an older fence in any case.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator

from podwarden.control.clock import Clock
from podwarden.control.holder import is_dead
from podwarden.control.links import Links
from podwarden.control.loop import guarded
from podwarden.control.room import Room
from podwarden.errors import FenceLost, Unavailable
from podwarden.store import Store, Unit

log = logging.getLogger("podwarden.control")

MARGIN = 0.15  # of the lease, that is not acted in
STANDBY_LOOK = 1.0  # seconds between tries to become the leader
TAKEN_OVER = 30.0  # seconds before a cluster is looked at again that another PodWarden acts on
FIRST_PAUSE, LAST_PAUSE = (
    1.0,
    60.0,
)  # seconds before a room is tried again that broke by a fault of ours

MakeRoom = Callable[[str, Callable[[], int]], Room]


class NotLeading(FenceLost):
    """By this process's own clock; nobody else need have taken over."""


class Leader:
    """run() until cancelled. rooms: the clusters that this process acts on now."""

    def __init__(
        self,
        store: Store,
        links: Links,
        clock: Clock,
        make_room: MakeRoom,
        *,
        holder: str,
        seconds: float,
    ) -> None:
        self.holder = holder
        self.rooms: dict[str, Room] = {}
        self.taken_over: dict[str, float] = {}  # cluster -> when to look again
        self._store = store
        self._broken: dict[str, tuple[float, float]] = {}  # cluster -> when again, the next pause
        self._links = links
        self._clock = clock
        self._make_room = make_room
        self._seconds = seconds
        self._fence: int | None = None
        self._held: int | None = None  # to give back in the end
        self._until = 0.0
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._never = asyncio.Event()

    @property
    def leading(self) -> bool:
        return self._fence is not None and self._clock.monotonic() < self._until

    def fence(self) -> int:
        """The number to act with. NotLeading: this process may not act."""
        if self._fence is None or self._clock.monotonic() >= self._until:
            raise NotLeading("This PodWarden does not lead now.")
        return self._fence

    def trouble(self, cluster: str) -> str:
        """Why this process does not act on a cluster though it leads; "" when it does, or does not lead."""
        room = self.rooms.get(cluster)
        if room is not None:
            return room.trouble
        if self.leading and cluster in self._broken:
            return (
                f"PodWarden made a mistake on cluster {cluster} and tries again; its log says more."
            )
        if self.leading and cluster in self.taken_over:
            return f"Another PodWarden acts on cluster {cluster}; this one leaves it alone."
        return ""

    async def run(self) -> None:
        try:
            while True:
                if await guarded("leading", self._turn()) is not None:
                    await self._clock.wait(self._never, STANDBY_LOOK)
        finally:
            await self._release(self._held)

    async def _turn(self) -> None:
        """Leads for as long as it may; where it may not, looks again a little later."""
        if not await self._acquire():
            await self._clock.wait(self._never, STANDBY_LOOK)
            return
        log.info("leads with fence %s", self._fence)
        await self._lead()
        log.info("does not lead any more")

    async def _acquire(self) -> bool:
        began = self._clock.monotonic()
        try:
            fence = await self._store.write(self._take, urgent=True)
        except Unavailable as error:
            log.warning("lease: %s", error)
            return False
        if fence is None:
            return False
        self._fence = self._held = fence
        self._until = began + self._seconds * (1 - MARGIN)
        return True

    def _take(self, unit: Unit) -> int | None:
        """A leader that surely died is not waited for; its fence is behind us in any case."""
        holder, fence, _ = unit.lease.current()
        if holder and is_dead(holder):
            unit.lease.release(holder, fence)
        return unit.lease.acquire(self.holder, self._seconds)

    async def _lead(self) -> None:
        """Until the lease is lost."""
        renew_at = self._clock.monotonic() + self._seconds / 3
        try:
            while self.leading:
                self._sync_rooms()
                pause = renew_at - self._clock.monotonic()
                if pause > 0:
                    await self._wait(pause)
                    if not await self._tend():
                        return
                    continue
                if not await self._renew():
                    return
                renew_at = self._clock.monotonic() + self._seconds / 3
        except asyncio.CancelledError:
            await self._stop_rooms()  # still with a fence: what they hold is given back
            raise
        finally:
            self._fence = None
            await self._stop_rooms()

    async def _wait(self, seconds: float) -> None:
        """Until the time is over, clusters changed, or a room ended."""
        changed = asyncio.ensure_future(self._clock.wait(self._links.changed, seconds))
        await asyncio.wait([changed, *self._tasks.values()], return_when=asyncio.FIRST_COMPLETED)
        changed.cancel()
        self._links.changed.clear()

    async def _tend(self) -> bool:
        """Look after rooms that ended. False: the lease is lost."""
        for cluster in [c for c, task in self._tasks.items() if task.done()]:
            task = self._tasks.pop(cluster)
            self.rooms.pop(cluster, None)
            error = task.exception() if not task.cancelled() else None
            if error is None:
                continue
            lost = list(_fences_lost(error))
            if not lost:
                log.error("the room of %s broke", cluster, exc_info=error)
                _, pause = self._broken.get(cluster, (0.0, FIRST_PAUSE))
                again = self._clock.monotonic() + pause
                self._broken[cluster] = again, min(pause * 2, LAST_PAUSE)
            elif not await self._renew():
                return False
            elif all(isinstance(each, NotLeading) for each in lost):
                log.warning("the lease was renewed too late: cluster %s is acted on anew", cluster)
            else:
                log.warning("another PodWarden acts on cluster %s: it is left alone", cluster)
                self.taken_over[cluster] = self._clock.monotonic() + TAKEN_OVER
        return True

    async def _renew(self) -> bool:
        fence, began = self._fence, self._clock.monotonic()
        if fence is None:
            return False
        try:
            kept = await self._store.write(
                lambda unit: unit.lease.renew(self.holder, fence, self._seconds), urgent=True
            )
        except Unavailable as error:
            log.warning("lease: %s", error)
            return self.leading
        if kept:
            self._until = began + self._seconds * (1 - MARGIN)
        return kept

    def _sync_rooms(self) -> None:
        now = self._clock.monotonic()
        for cluster in self._links.clusters:
            again = max(self.taken_over.get(cluster, 0.0), self._broken.get(cluster, (0.0, 0.0))[0])
            if cluster in self._tasks or again > now:
                continue
            room = self._make_room(cluster, self.fence)
            self.rooms[cluster] = room
            self._tasks[cluster] = asyncio.create_task(room.run(), name=f"room {cluster}")
        for cluster in [c for c in self._tasks if not self._is_current(c)]:
            self._tasks[cluster].cancel()

    def _is_current(self, cluster: str) -> bool:
        """Not of a cluster that went, nor of one that was taken over anew under the same name."""
        known = cluster in self._links.clusters
        room = self.rooms.get(cluster)
        return known and (room is None or room.link is self._links.get(cluster))

    async def _stop_rooms(self) -> None:
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.rooms.clear()

    async def _release(self, fence: int | None) -> None:
        """So that the next one need not wait; where this fails the lease runs out by itself."""
        if fence is None:
            return
        try:
            await self._store.write(lambda unit: unit.lease.release(self.holder, fence))
        except Unavailable:
            return


def _fences_lost(error: BaseException) -> Iterator[FenceLost]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _fences_lost(inner)
    elif isinstance(error, FenceLost):
        yield error
