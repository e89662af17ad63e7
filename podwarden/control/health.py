"""Health: follows the watch and keeps each started workload's row true, until it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from podwarden.control import revising, words
from podwarden.control.changes import Change, back_to_queue, crashed, events_of, updated, write
from podwarden.control.crashes import Crashes
from podwarden.control.desk import Desk
from podwarden.control.judge import Case, Judgement, judge
from podwarden.control.last_words import LastWordsBook, speaker
from podwarden.control.ledger import Entry
from podwarden.control.loop import Turn
from podwarden.control.snapshot import lost_nodes
from podwarden.domain.event import EventKind
from podwarden.domain.inventory import Device, Node
from podwarden.domain.observation import Instance, Observation, Presence
from podwarden.domain.reason import Code
from podwarden.domain.workload import Kind, State, Workload

BATCH = 100  # rows per transaction
TICK = 2.0  # seconds between turns while something waits for a time
QUIET = timedelta(seconds=2)  # between two writes of a row for its counts, places or wording alone
CALM = 30.0
UNSAVED = -1  # no row has this version
FIRST_PARK, LAST_PARK = 15.0, 600.0  # seconds before what found no room is admitted again


class Health:
    """The loop of one cluster."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._crashes = Crashes()
        self._judged: dict[str, tuple[int, Presence | None, tuple[Instance, ...], bool]] = {}
        self._quiet_until: dict[str, datetime] = {}
        self._lost: frozenset[str] = frozenset()
        self._words = LastWordsBook(desk.link, self._words_came)
        self.hint: Callable[[], None] = lambda: None

    async def stop(self) -> None:
        await self._words.stop()

    def _words_came(self) -> None:
        self.hint()

    async def turn(self) -> Turn:
        desk = self._desk
        fence = desk.fence()
        seen = desk.link.observe()
        if not seen.reachable or not seen.complete:
            return Turn(again=2.0)
        await self._remember_devices(seen, fence)
        now = desk.clock.now()
        lost = lost_nodes(seen.nodes)
        again = lost != self._lost
        self._lost = lost
        devices = words.devices_by_uuid(seen.nodes)
        changes: list[Change] = []
        waiting = False
        for row in list(desk.books.holding.values()):
            presence, instances = seen.presences.get(row.id), seen.instances.get(row.id, ())
            known = self._judged.get(row.id)
            if known is not None and not again and _same(known, row, presence, instances):
                continue
            change, timed = self._look(Case(row, presence, instances, lost, now), devices)
            waiting |= timed
            # What is still to be saved counts as judged only when the row shows it.
            version = row.version if change is None else UNSAVED
            self._judged[row.id] = (version, presence, instances, timed)
            if change is not None:
                changes.append(change)
        for start in range(0, len(changes), BATCH):
            await self._save(changes[start : start + BATCH], fence, now)
        self._forget()
        return Turn(_said(changes), TICK if waiting else CALM)

    def _look(self, case: Case, devices: Mapping[str, Device]) -> tuple[Change | None, bool]:
        """What changed, and whether time alone may change it."""
        row, instances, now = case.row, case.instances, case.now
        troubled = speaker(row, instances, case.lost_nodes)
        if troubled is not None:
            said = self._words.of(row.id, troubled)
            if said is None:
                return None, True  # judged as soon as its last words are here
            case = replace(case, words={troubled.uid: said})
        crashes, fresh = (0, 0)
        if row.kind is Kind.SERVICE:
            crashes, fresh = self._crashes.count(row.id, instances, now)
        verdict = judge(replace(case, crashes=crashes))
        timed = row.state is State.UPDATING or any(i.unschedulable_since for i in instances)
        if row.state is State.UPDATING and verdict.state is State.UPDATING:
            failed = (
                revising.overdue(row, now)
                or _crashes_of_new(row, instances)
                or _not_pulled(verdict, row, now)
            )
            if failed:
                return self._update_failed(row, verdict), True
        if verdict.unplaced:
            return back_to_queue(row, instances, now), True
        new = updated(row, verdict, instances, now)
        events = list(events_of(row, new, instances, devices, now))
        if fresh and new.state is not State.FAILED:
            events.insert(0, crashed(instances, crashes))
        if new == row and not events:
            return None, timed
        if not events and now < self._quiet_until.get(row.id, row.changed_at + QUIET):
            return None, True
        ran = None
        if new.state is State.SUCCEEDED and new.started_at and new.ended_at:
            ran = (new.ended_at - new.started_at).total_seconds()
        return Change(new, tuple(events), ran), timed

    def _update_failed(self, row: Workload, verdict: Judgement) -> Change | None:
        back = revising.came_from(row)
        said = verdict.reason.text if verdict.reason is not None else ""
        why = f"Revision {row.revision} did not become ready in time. {said}".strip()
        if back is not None:
            return Change(row, ((EventKind.ROLLED_BACK, why, ""),), back=back)
        new = replace(
            row, state=State.UNHEALTHY, reason=verdict.reason, facts=revising.finished(row)
        )
        return Change(new, ((EventKind.STATE, why, ""),))

    async def _save(self, changes: Sequence[Change], fence: int, now: datetime) -> None:
        def work(entry: Entry) -> list[Change]:
            return [change for change in changes if write(entry, change)]

        for change in await self._desk.ledger.write(work, fence=fence):
            self._quiet_until[change.row.id] = now + QUIET
            if change.ran is not None:
                self._desk.past.learned(change.row, change.ran)
            if change.parked:
                self._park(change.row.id, now)

    def _park(self, workload: str, now: datetime) -> None:
        """Each start that went nowhere doubles the wait before the next."""
        before = self._desk.books.parked.get(workload)
        seconds = min(before[1] * 2, LAST_PARK) if before is not None else FIRST_PARK
        self._desk.books.parked[workload] = (now + timedelta(seconds=seconds), seconds)

    async def _remember_devices(self, seen: Observation, fence: int) -> None:
        """Every GPU ever seen, so that "can never fit" is judged on it."""
        known = self._desk.known
        new = [
            node
            for node in seen.nodes
            if node.name not in known or _hardware(known[node.name]) != _hardware(node)
        ]
        if not new:
            return
        nodes, cluster = tuple(new), self._desk.cluster

        def work(entry: Entry) -> dict[str, Node]:
            entry.unit.devices.remember(cluster, nodes)
            return {node.name: node for node in entry.unit.devices.known(cluster)}

        stored = await self._desk.ledger.write(work, fence=fence)
        known.clear()
        known.update(stored)

    def _forget(self) -> None:
        holding = self._desk.books.holding
        for workload in [w for w in self._judged if w not in holding]:
            del self._judged[workload]
            self._quiet_until.pop(workload, None)
            self._crashes.forget(workload)
            self._words.forget(workload)


def _same(
    known: tuple[int, Presence | None, tuple[Instance, ...], bool],
    row: Workload,
    presence: Presence | None,
    instances: tuple[Instance, ...],
) -> bool:
    """Nothing changed since it was judged, and time alone changes nothing."""
    version, before, instances_before, timed = known
    unchanged = before is presence and instances_before is instances
    return unchanged and version == row.version and not timed


def _crashes_of_new(row: Workload, instances: Sequence[Instance]) -> bool:
    return any(
        i.revision == row.revision and not i.ready and i.restarts >= revising.CRASHES
        for i in instances
    )


def _not_pulled(verdict: Judgement, row: Workload, now: datetime) -> bool:
    """Waiting out the whole start would not bring an image that the registry does not give."""
    code = verdict.reason.code if verdict.reason is not None else None
    return code is Code.IMAGE_PULL_FAILED and now - row.changed_at >= revising.PULL_TRIES


def _hardware(node: Node) -> frozenset[str]:
    return frozenset(device.uuid for device in node.devices if device.present)


def _said(changes: Sequence[Change]) -> str:
    if not changes:
        return ""
    first = changes[0].row
    more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
    return f"{first.name} is {first.state.value}{more}"
