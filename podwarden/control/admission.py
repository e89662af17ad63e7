"""Admission: snapshot -> plan -> one guarded transaction -> hand over to the rollout."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from podwarden import scheduling
from podwarden.control import hours, revising, snapshot, words
from podwarden.control.charges import is_array
from podwarden.control.desk import Desk
from podwarden.control.ledger import Entry
from podwarden.control.loop import Turn
from podwarden.control.needs import storages_of
from podwarden.control.rollout import Rollout
from podwarden.domain.event import EventKind
from podwarden.domain.observation import Observation
from podwarden.domain.placement import Placement, Plan, Slot, Snapshot
from podwarden.domain.reason import Code, Reason
from podwarden.domain.workload import Desire, State, Workload

BATCH = 50  # admissions per transaction
MOST_REASONS = 100  # reason rows rewritten per pass
STALE_TEXT = timedelta(seconds=20)  # how often a text is rewritten whose code stays
BIG_QUEUE = 200  # claimants above which a plan is made in a thread, so that the API stays quick
LONGEST_SLEEP = 30.0  # seconds without a plan, at most


@dataclass(frozen=True, slots=True)
class Grant:
    """One placement to be stored. used: slots that a started array has already; None = a first start."""

    row: Workload
    placement: Placement
    where: str
    used: tuple[Slot, ...] | None = None


class Admission:
    """The loop of one cluster. plan: the last one, for questions about the queue and the GPUs."""

    def __init__(self, desk: Desk, rollout: Rollout) -> None:
        self._desk = desk
        self._rollout = rollout
        self._last = (-1, -1)
        self._grounds: tuple[object, ...] = ()
        self._deadline: datetime | None = None
        self._written: dict[str, datetime] = {}
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self.plan = Plan()

    async def planned(self, revision: int, seconds: float) -> bool:
        """Until a plan knew the books' `revision`; False when that took longer than `seconds`."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((revision, waiter))
        done, _ = await asyncio.wait([waiter], timeout=seconds)
        if not done:
            self._waiters.remove((revision, waiter))
        return bool(done)

    async def turn(self) -> Turn:
        desk = self._desk
        fence = desk.fence()
        seen = desk.link.observe()
        now = desk.clock.now()
        at = desk.books.revision
        if (at, seen.revision) == self._last and not self._is_due(now):
            return Turn(again=self._sleep(now))
        bound = (row for row in desk.books.holding.values() if storages_of(row.spec))
        await desk.past.know([*desk.books.queued.values(), *bound])
        view = snapshot.build(desk.books, seen, desk.known, desk.past, now.astimezone())
        grounds = _grounds(view, seen)
        if grounds == self._grounds and not self._is_due(now):
            self._last = (at, seen.revision)
            self._answer(at)
            return Turn(again=self._sleep(now))
        plan = await _think(view, now)
        desk.ledger.publish("gpus", desk.cluster)
        if plan.verdicts != self.plan.verdicts:
            desk.ledger.publish("queue", desk.cluster)
        self.plan, self._grounds = plan, ()
        self._deadline = self._next_deadline(plan, now)
        admitted = 0
        if seen.complete and seen.reachable:
            admitted = await self._commit(plan, view, fence)
            self._rollout.want_holds(plan.holds)
        books = desk.books
        books.verdicts = {v.workload: v for v in (*plan.verdicts, *plan.refusals)}
        changed = await self._write_reasons(plan, fence, now)
        # The plan already knows what this turn wrote; anything beyond that asks for another one, and so does
        # a row that another loop wrote meanwhile: its placement was not stored.
        if admitted == len(plan.placements):
            self._grounds = grounds
        self._last = (at + admitted + changed, seen.revision)
        self._answer(at)
        return Turn(_said(admitted, len(books.queued), changed), self._sleep(now))

    def _is_due(self, now: datetime) -> bool:
        return self._deadline is not None and now >= self._deadline

    def _answer(self, revision: int) -> None:
        for wanted, waiter in self._waiters:
            if wanted <= revision and not waiter.done():
                waiter.set_result(None)
        self._waiters = [(w, f) for w, f in self._waiters if w > revision]

    async def _commit(self, plan: Plan, view: Snapshot, fence: int) -> int:
        """Placements in batches, each handed to the rollout as soon as it is stored."""
        devices = words.devices_by_uuid(view.nodes)
        done = 0
        for start in range(0, len(plan.placements), BATCH):
            batch = [
                self._grant(placement, words.place(placement.slots, devices))
                for placement in plan.placements[start : start + BATCH]
            ]
            grants = [grant for grant in batch if grant is not None]

            def work(entry: Entry, grants: Sequence[Grant] = grants) -> list[Workload]:
                return [row for grant in grants if (row := _admit(entry, grant)) is not None]

            saved = await self._desk.ledger.write(work, fence=fence)
            new = {grant.row.id: grant.placement.slots for grant in grants}
            for row in saved:
                if is_array(row):
                    self._desk.books.grants.setdefault(row.id, []).extend(new[row.id])
            self._rollout.kick(row.id for row in saved)
            done += len(saved)
            await asyncio.sleep(0)  # let the first applies leave before the next batch is stored
        return done

    def _grant(self, placement: Placement, where: str) -> Grant | None:
        row = self._desk.books.get(placement.workload)
        if row is None or row.desire is not Desire.RUN:
            return None
        if row.state is State.QUEUED:
            return Grant(row, placement, where)
        seen = self._desk.link.observe()
        used = snapshot.owed_to(row, self._desk.books, seen, frozenset()).used
        return Grant(row, placement, where, used)

    async def _write_reasons(self, plan: Plan, fence: int, now: datetime) -> int:
        """Rows whose reason changed: codes first, texts at a calm pace. Positions are never stored."""
        due = list(self._changed(plan, now))
        if not due:
            return 0

        def work(entry: Entry) -> int:
            for row, reason in due:
                saved = entry.save(replace(row, reason=reason))
                if saved is not None and (row.reason is None or row.reason.code != reason.code):
                    entry.note(saved, EventKind.REASON, reason.text, code=reason.code)
            return len(entry.saved)

        changed = await self._desk.ledger.write(work, fence=fence)
        for row, _ in due:
            self._written[row.id] = now
        return changed

    def _changed(self, plan: Plan, now: datetime) -> Iterator[tuple[Workload, Reason]]:
        self._written = {k: v for k, v in self._written.items() if k in self._desk.books.queued}
        left = MOST_REASONS
        for verdict in (*plan.refusals, *plan.verdicts):
            row = self._desk.books.queued.get(verdict.workload)
            reason = verdict.reason
            if left == 0:
                return
            if row is None or reason is None or row.reason == reason:
                continue
            recently = self._written.get(row.id)
            same_code = row.reason is not None and row.reason.code == reason.code
            if same_code and recently is not None and now - recently < STALE_TEXT:
                continue
            left -= 1
            yield row, reason

    def _next_deadline(self, plan: Plan, now: datetime) -> datetime | None:
        """When the plan may change by time alone: a reserved start, an opening hour, a parking time."""
        moments = [v.starts_at for v in plan.verdicts if v.starts_at is not None]
        for row in self._desk.books.queued.values():
            if row.spec.hours:
                change = hours.next_change(row.spec.hours, now.astimezone())
                if change is not None:
                    moments.append(change)
        moments.extend(until for until, _ in self._desk.books.parked.values())
        return min((moment for moment in moments if moment > now), default=None)

    def _sleep(self, now: datetime) -> float:
        if self._deadline is None:
            return LONGEST_SLEEP
        return min(max((self._deadline - now).total_seconds(), 0.05), LONGEST_SLEEP)


def _grounds(view: Snapshot, seen: Observation) -> tuple[object, ...]:
    """What a plan depends on besides the time: equal grounds, the same plan."""
    held = (seen.holdings, seen.holds, seen.foreign, seen.capabilities)
    return (
        view.claimants,
        view.reserved,
        view.nodes,
        view.mix,
        seen.complete,
        seen.reachable,
        held,
    )


async def _think(view: Snapshot, now: datetime) -> Plan:
    if not view.claimants:
        return Plan()
    if len(view.claimants) > BIG_QUEUE:
        return await asyncio.to_thread(scheduling.plan, view, now)
    return scheduling.plan(view, now)


def _admit(entry: Entry, grant: Grant) -> Workload | None:
    row, placement, now = grant.row, grant.placement, entry.now
    if grant.used is not None:
        more = replace(placement, slots=(*grant.used, *placement.slots))
        saved = entry.save(replace(row, placement=more, changed_at=now))
        kind = EventKind.GATES_OPENED
        text = f"{len(placement.slots)} more of its tasks may start: {grant.where}."
    else:
        saved = entry.save(
            replace(
                row,
                state=State.STARTING,
                placement=placement,
                reason=Reason(Code.STARTING, f"It is being started on {grant.where}."),
                changed_at=now,
                started_at=None,
                ended_at=None,
                facts=revising.with_facts(row, {revising.PODS: row.spec.priority.word}),
            )
        )
        kind = EventKind.ADMITTED
        text = f"Admitted after {words.ago(row.queued_at, now)}: {grant.where}."
    if saved is not None:
        entry.note(saved, kind, text)
    return saved


def _said(admitted: int, waiting: int, changed: int) -> str:
    if not admitted:
        return f"{changed} reasons changed, {waiting} wait" if changed else ""
    return f"admitted {admitted}, {waiting} wait"
