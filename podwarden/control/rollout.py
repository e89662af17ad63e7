"""Rollout: makes the cluster carry what the rows say. Idempotent, a few at a time, one step per workload.

A crash between commit and apply is repaired on the next turn: the step is computed from the row and from
what the cluster shows, never from what was meant before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from podwarden.control import made, needs
from podwarden.control.desk import Desk
from podwarden.control.gates import Gates
from podwarden.control.ledger import Entry
from podwarden.control.loop import Turn, guarded
from podwarden.control.needs import Needs
from podwarden.control.target import (
    REMOVED,
    UNSURE,
    Do,
    Step,
    Target,
    as_wanted,
    step,
    tasks_that_may_exist,
    wanted,
)
from podwarden.domain.event import EventKind
from podwarden.domain.observation import Instance, Observation, Presence
from podwarden.domain.placement import Hold
from podwarden.domain.reason import Code, Reason
from podwarden.domain.workload import ENDED, Desire, Revision, State, Workload
from podwarden.errors import Conflict, NotFound, PodWardenError, Refused, Unavailable
from podwarden.kube.errors import NoAccess
from podwarden.store import Unit

AT_ONCE = 16  # steps in flight
MOST_ENDED = 200  # ended workloads whose objects are kept for their logs
REST = 2.0  # seconds between two equal orders that the watch has not shown yet
FIRST_BACK_OFF, LAST_BACK_OFF = 0.25, 30.0
SAID_FROM = 1.0  # seconds of back-off: what fails that often is said, not only logged
CALM = 30.0  # seconds between turns without a hint

Renderer = Callable[[Workload, tuple[Revision, ...], Needs, Observation], Any]
HOLDS = "holds"


class Rollout:
    """The loop of one cluster. render: makes the objects; a failure of it counts as refused."""

    def __init__(self, desk: Desk, render: Renderer) -> None:
        self._desk = desk
        self._render = render
        self._given: dict[str, Target] = {}
        self._settled: set[str] = set()
        self._strangers: set[str] = set()
        self._calm: dict[str, tuple[Workload, Presence | None, tuple[Instance, ...] | None]] = {}
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._rest: dict[str, tuple[float, Do | None]] = {}
        self._delay: dict[str, float] = {}
        self._limit = asyncio.Semaphore(AT_ONCE)
        self._holds: tuple[Hold, ...] | None = None
        self._arrays = Gates(desk)
        self._told: dict[str, str] = {}
        self._broken: asyncio.Future[None] | None = None
        self.hint: Callable[[], None] = lambda: None

    async def turn(self) -> Turn:
        self._desk.fence()
        if self._broken is not None and self._broken.done():
            self._broken.result()
        seen = self._desk.link.observe()
        if not seen.reachable or not seen.complete:
            return Turn(seen.trouble and f"waits: {seen.trouble}", 2.0)
        await self._meet_strangers(seen)
        started = sum(self._consider(row, seen) for row in self._rows(seen))
        started += sum(self._gates(row, seen) for row in list(self._desk.books.holding.values()))
        self._set_holds(seen)
        self._forget_gone(seen)
        return Turn(f"{started} steps started" if started else "", self._next())

    def kick(self, workloads: Iterable[str]) -> None:
        """These were just committed: act now, without waiting for a turn."""
        for workload in workloads:
            self._start(workload, partial(self._carry_out, workload))

    def want_holds(self, holds: tuple[Hold, ...]) -> None:
        if holds != self._holds:
            self._holds = holds
            self._set_holds(self._desk.link.observe())

    async def idle(self) -> None:
        """Until no step is in flight. Raises FenceLost when one found that another leads."""
        while self._busy:
            await asyncio.wait(list(self._busy.values()))
        if self._broken is not None:
            self._broken.result()

    async def stop(self) -> None:
        tasks = list(self._busy.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # what to look at

    def _rows(self, seen: Observation) -> Iterable[Workload]:
        books = self._desk.books
        yield from list(books.holding.values())
        yield from list(books.others.values())
        for workload in seen.presences:
            if (row := books.queued.get(workload)) is not None:
                yield row

    async def _meet_strangers(self, seen: Observation) -> None:
        """Objects of ended workloads after a restart; those the store never knew are left alone."""
        books = self._desk.books
        new = [w for w in seen.presences if books.get(w) is None and w not in self._strangers]
        if new:
            self._strangers |= await self._desk.ledger.fetch(self._desk.cluster, new)

    def _forget_gone(self, seen: Observation) -> None:
        books = self._desk.books
        ended = sorted(
            (
                r
                for r in books.others.values()
                if r.state in ENDED and r.desire is not Desire.DELETE
            ),
            key=lambda r: r.ended_at or r.changed_at,
            reverse=True,
        )
        for place, row in enumerate(ended):
            if row.id not in seen.presences and not seen.instances.get(row.id):
                self._drop(row.id)
                books.drop(row.id)
            elif place >= MOST_ENDED and row.state is not State.STOPPED:
                self._start(row.id, partial(self._remove, row), Do.REMOVE)

    def _consider(self, row: Workload, seen: Observation) -> bool:
        """Whether a step was started. What did not change since it was last found as wanted is passed over."""
        presence, instances = seen.presences.get(row.id), seen.instances.get(row.id)
        known = self._calm.get(row.id)
        if (
            known is not None
            and known[0] is row
            and known[1] is presence
            and known[2] is instances
            and row.state not in ENDED
        ):
            return False
        if self._look(row, presence, seen):
            self._calm.pop(row.id, None)
            return True
        if row.id not in self._busy and row.id not in self._rest:
            self._calm[row.id] = (row, presence, instances)
        return False

    def _look(self, row: Workload, presence: Presence | None, seen: Observation) -> bool:
        if row.id not in self._given and as_wanted(row, presence):
            self._given[row.id] = wanted(row)
        if as_wanted(row, presence) and self._given.get(row.id) == wanted(row):
            self._settled.add(row.id)
        do = self._step(row, seen).do
        if do is Do.NOTHING:
            return False
        return self._start(row.id, lambda: self._carry_out(row.id), do)

    def _step(self, row: Workload, seen: Observation) -> Step:
        given = self._given.get(row.id)
        ran = given is None and row.state in (State.RUNNING, State.UNHEALTHY)
        return step(
            row,
            seen.presences.get(row.id),
            seen.instances.get(row.id, ()),
            given,
            self._desk.clock.now(),
            settled=row.id in self._settled or ran,
        )

    # carrying out

    def _start(self, key: str, work: Callable[[], Awaitable[None]], do: Do | None = None) -> bool:
        if key in self._busy:
            return False
        until, same = self._rest.get(key, (0.0, None))
        if until > self._desk.clock.monotonic() and same in (None, do):
            return False
        self._calm.pop(key, None)
        task = asyncio.create_task(self._run(key, work), name=f"rollout {key}")
        self._busy[key] = task
        return True

    async def _run(self, key: str, work: Callable[[], Awaitable[None]]) -> None:
        about = f"rollout of {self._name(key)}"
        try:
            async with self._limit:
                error = await guarded(about, work())
            if error is not None and self._delay.get(key, 0.0) >= SAID_FROM:
                await guarded(about, self._say_why(key, error))
        except BaseException as lost:
            self._break(lost)
            raise
        finally:
            self._busy.pop(key, None)
            self._calm.pop(key, None)
        clock = self._desk.clock
        if error is None:
            self._delay.pop(key, None)
        else:
            delay = self._delay.get(key, FIRST_BACK_OFF)
            self._delay[key] = min(delay * 2, LAST_BACK_OFF)
            self._rest[key] = (clock.monotonic() + delay, None)
        self.hint()

    def _break(self, error: BaseException) -> None:
        """The next turn raises it: a lost fence must stop every loop."""
        if isinstance(error, asyncio.CancelledError):
            return
        if self._broken is None:
            self._broken = asyncio.get_running_loop().create_future()
            self._broken.set_exception(error)
            self._broken.exception()
        self.hint()

    async def _carry_out(self, workload: str) -> None:
        row = self._desk.books.get(workload)
        if row is None:
            return
        seen = self._desk.link.observe()
        now = self._step(row, seen)
        if now.why and row.id in self._settled:
            await self._tell_changed(row, now.why)
        if now.do is Do.APPLY:
            await self._apply(row, seen)
            if now.why:  # whoever set it otherwise may do so again: no race of writes
                self._pause(row.id, Do.APPLY)
        elif now.do is Do.SCALE_DOWN:
            await self._desk.link.scale(row.id, 0, self._desk.fence())
            self._given[row.id] = Target(row.revision, None, running=False)
            self._settled.discard(row.id)
            self._pause(row.id, Do.SCALE_DOWN)
        elif now.do is Do.GROW:
            tasks = tasks_that_may_exist(row, seen.instances.get(row.id, ()))
            await self._desk.link.scale(row.id, tasks, self._desk.fence())
            self._pause(row.id, Do.GROW)
        elif now.do is Do.REMOVE:
            await self._remove(row)
        elif now.do is Do.FORGET:
            await self._forget(row)

    async def _apply(self, row: Workload, seen: Observation) -> None:
        target = wanted(row)
        self._settled.discard(row.id)
        self._given[row.id] = (
            UNSURE  # until it is done: what was given before need not be there any more
        )
        try:
            revisions, given = await self._desk.ledger.store.read(lambda unit: _needs(unit, row))
            rendered = self._render(row, revisions, given, seen)
            await self._desk.link.apply(rendered, self._desk.fence())
        except (Conflict, NotFound, NoAccess):  # not this workload's fault: it is tried again
            raise
        except Refused as refusal:
            await self._refused(row, refusal)
            return
        self._given[row.id] = target
        self._told.pop(row.id, None)

    async def _remove(self, row: Workload) -> None:
        keep = row.keep_volumes if row.desire is Desire.DELETE else True
        await self._desk.link.remove(row.id, keep_volumes=keep, fence=self._desk.fence())
        self._given[row.id] = REMOVED
        self._settled.discard(row.id)
        self._pause(row.id, Do.REMOVE)

    def _pause(self, key: str, do: Do | None = None) -> None:
        """The order was given: do not repeat it before the watch could show it. None: do nothing else either."""
        self._rest[key] = (self._desk.clock.monotonic() + REST, do)
        self._told.pop(key, None)

    async def _forget(self, row: Workload) -> None:
        def work(entry: Entry) -> None:
            kept = any(volume.size_mib for volume in row.spec.volumes) and row.keep_volumes
            what = " Its volumes are kept." if kept else ""
            entry.note(row, EventKind.DELETED, f"{row.name} is gone from the cluster.{what}")
            if not row.keep_volumes:
                made.forget(entry.unit, row)
            entry.forget(row)

        await self._desk.ledger.write(work, fence=self._desk.fence())
        self._drop(row.id)

    async def _say_why(self, key: str, error: Exception) -> None:
        """A step that keeps failing is a reason, once for each wording; it is tried on."""
        row = self._desk.books.get(key)
        if row is None:
            return
        said = error.message if isinstance(error, PodWardenError) else "PodWarden's log says more."
        reason = Reason(
            Code.CLUSTER_UNREACHABLE if isinstance(error, Unavailable) else Code.REFUSED_BY_CLUSTER,
            f"What the cluster was asked for did not work yet: {said}",
            "It is tried again by itself.",
        )
        if self._told.get(key) == reason.text:
            return

        def work(entry: Entry) -> None:
            saved = entry.save(replace(row, reason=reason))
            if saved is not None:
                entry.note(saved, EventKind.REASON, reason.text, code=reason.code)

        await self._desk.ledger.write(work, fence=self._desk.fence())
        self._told[key] = reason.text

    async def _refused(self, row: Workload, refusal: Refused) -> None:
        """The cluster will not have it: a first start ends as failed, a running one says so, once."""
        reason = Reason(Code.REFUSED_BY_CLUSTER, f"The cluster refused it: {refusal.message}")
        failed = row.state is State.STARTING
        if not failed:
            self._rest[row.id] = (self._desk.clock.monotonic() + LAST_BACK_OFF, None)
            if self._told.get(row.id) == reason.text:
                return

        def work(entry: Entry) -> None:
            saved = entry.save(
                replace(
                    row,
                    state=State.FAILED if failed else row.state,
                    ended_at=entry.now if failed else row.ended_at,
                    reason=reason,
                    changed_at=entry.now,
                )
            )
            if saved is not None:
                entry.note(saved, EventKind.STATE, reason.text, code=reason.code)

        await self._desk.ledger.write(work, fence=self._desk.fence())
        self._told[row.id] = reason.text

    async def _tell_changed(self, row: Workload, why: str) -> None:
        text = f"Changed outside PodWarden: {why}. It was set back."

        def work(entry: Entry) -> None:
            entry.note(row, EventKind.CHANGED_OUTSIDE, text, code=Code.CHANGED_OUTSIDE)

        await self._desk.ledger.write(work, fence=self._desk.fence())
        self._settled.discard(row.id)

    # gates and holds

    def _gates(self, row: Workload, seen: Observation) -> bool:
        pairs = self._arrays.due(row, seen)
        if not pairs:
            return False
        return self._start(f"{row.id}/gates", lambda: self._arrays.open(row.id, pairs))

    def _set_holds(self, seen: Observation) -> None:
        if self._holds is None or not seen.complete or not seen.capabilities.hold:
            return
        holds = self._holds
        if {(h.device, h.workload) for h in holds} != set(seen.holds):
            self._start(HOLDS, lambda: self._apply_holds(holds))

    async def _apply_holds(self, holds: tuple[Hold, ...]) -> None:
        await self._desk.link.set_holds(holds, self._desk.fence())
        if holds == self._holds:
            self._pause(HOLDS)

    # small things

    def _drop(self, workload: str) -> None:
        for memory in (self._given, self._rest, self._delay, self._calm, self._told):
            memory.pop(workload, None)
        self._delay.pop(f"{workload}/gates", None)
        self._settled.discard(workload)
        self._arrays.forget(workload)

    def _name(self, key: str) -> str:
        row = self._desk.books.get(key.split("/", maxsplit=1)[0])
        return row.name if row is not None else key

    def _next(self) -> float:
        """When a rested step may go on."""
        now = self._desk.clock.monotonic()
        self._rest = {key: rest for key, rest in self._rest.items() if rest[0] > now}
        waits = [until - now for until, _ in self._rest.values()]
        return min([*waits, CALM])


def _needs(unit: Unit, row: Workload) -> tuple[tuple[Revision, ...], Needs]:
    """Refused: a secret or a storage is gone."""
    return tuple(unit.workloads.revisions(row.id)), needs.read(unit, row.spec)
