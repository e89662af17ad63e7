"""From a judgement to the new row and the events that tell of it; and how both are stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from podwarden.control import revising, words
from podwarden.control.charges import LIVE, is_array
from podwarden.control.judge import Judgement
from podwarden.control.ledger import Entry
from podwarden.control.past import template_of
from podwarden.domain.event import EventKind
from podwarden.domain.inventory import Device
from podwarden.domain.observation import Instance
from podwarden.domain.placement import Slot
from podwarden.domain.reason import Code, Reason
from podwarden.domain.units import show_duration
from podwarden.domain.workload import ENDED, Revision, State, Workload

Said = tuple[EventKind, str, str]  # kind, text, code


@dataclass(frozen=True, slots=True)
class Change:
    """A row to be saved, with its events. ran: seconds, of a job that succeeded. parked: it is not to be
    admitted again at once. back: the revision that a failed update returns to.
    """

    row: Workload
    events: tuple[Said, ...] = ()
    ran: float | None = None
    parked: bool = False
    back: int | None = None


def updated(
    row: Workload, verdict: Judgement, instances: Sequence[Instance], now: datetime
) -> Workload:
    """The row as the judgement wants it; the very same when nothing changed."""
    held = [i for i in instances if i.phase in LIVE and i.node and not i.terminating]
    nodes = tuple(sorted({i.node for i in held}))
    devices = tuple(sorted({uuid for i in held for uuid in i.devices}))
    ended = verdict.state in ENDED
    first = verdict.state in (State.RUNNING, State.SUCCEEDED, State.FAILED)
    started = (
        row.started_at or verdict.started_at or (now if verdict.state is State.RUNNING else None)
    )
    new = replace(
        row,
        state=verdict.state,
        reason=verdict.reason,
        counts=verdict.counts or row.counts,
        nodes=() if ended else nodes,
        devices=() if ended else devices,
        started_at=started if first or row.started_at else row.started_at,
        ended_at=(verdict.ended_at or now) if ended else None,
        applied_revision=row.revision if instances or ended else row.applied_revision,
    )
    if row.state is State.UPDATING and new.state is not State.UPDATING:
        new = replace(new, facts=revising.finished(row))
    if new.state is not row.state:
        new = replace(new, changed_at=now)
    return new


def events_of(
    row: Workload,
    new: Workload,
    instances: Sequence[Instance],
    devices: Mapping[str, Device],
    now: datetime,
) -> Iterator[Said]:
    if new.state is row.state:
        code = new.reason.code if new.reason is not None else None
        if new.reason is not None and (row.reason is None or row.reason.code != code):
            kind = EventKind.NODE_LOST if code is Code.NODE_LOST else EventKind.REASON
            if code is not Code.STARTING:
                yield kind, new.reason.text, str(code)
        return
    where = words.place(_slots(instances), devices)
    if new.state is State.RUNNING:
        yield from _now_running(row, where, now)
        yield from _misplaced(row, instances, devices)
    elif new.state is State.SUCCEEDED:
        took = words.ago(new.started_at or new.queued_at, new.ended_at or now)
        yield EventKind.STATE, f"Finished after {took}.", ""
    elif new.reason is not None:
        lost = new.reason.code is Code.NODE_LOST
        kind = EventKind.NODE_LOST if lost else EventKind.STATE
        yield kind, f"{new.state.value.capitalize()}: {new.reason.text}", str(new.reason.code)
    else:
        yield EventKind.STATE, f"{new.state.value.capitalize()}.", ""


def crashed(instances: Sequence[Instance], crashes: int) -> Said:
    worst = max(instances, key=lambda i: (i.restarts, i.name))
    code = f" with exit code {worst.exit_code}" if worst.exit_code is not None else ""
    text = f"It ended{code} on {worst.node} and was started again: {crashes} in the last 30 min."
    return EventKind.RESTARTED, text, str(Code.CRASH_LOOPING)


def back_to_queue(row: Workload, instances: Sequence[Instance], now: datetime) -> Change:
    """A first start that found no room: the scheduler's own words are the reason."""
    said = next((i.message for i in instances if i.message), "it gave no reason")
    reason = Reason(
        Code.UNSCHEDULABLE,
        f"It was admitted, but the cluster found no room for it within 60 s: {said}",
        "It is tried again by itself.",
    )
    new = replace(
        row,
        state=State.QUEUED,
        placement=None,
        reason=reason,
        nodes=(),
        devices=(),
        applied_revision=row.revision,
        changed_at=now,
    )
    return Change(
        new,
        ((EventKind.STATE, f"Back in the queue: {reason.text}", str(reason.code)),),
        parked=True,
    )


def write(entry: Entry, change: Change) -> bool:
    """False: the row was changed by somebody else meanwhile, and nothing is stored."""
    row = change.row
    if change.back is not None:
        saved = _turn_back(entry, row, change.back, change.events[0][1])
    else:
        saved = entry.save(row)
    if saved is None:
        return False
    for kind, text, code in change.events:
        entry.note(saved, kind, text, code=code)
    if change.ran is not None:
        entry.unit.history.record(template_of(row), row.kind, change.ran, row.spec.gpu)
    return True


def _turn_back(entry: Entry, row: Workload, number: int, why: str) -> Workload | None:
    before = entry.unit.workloads.revision(row.id, number)
    made = row.revision + 1
    saved = entry.save(revising.turned_back(row, before, made, why, entry.now))
    if saved is not None:
        note = f"back to revision {number}"
        entry.unit.workloads.add_revision(
            Revision(row.id, made, before.spec, entry.now, "podwarden", note)
        )
    return saved


def _now_running(row: Workload, where: str, now: datetime) -> Iterator[Said]:
    if row.state is State.UPDATING:
        yield EventKind.UPDATED, f"Revision {row.revision} runs on {where}.", ""
    elif row.state is State.STARTING and row.started_at is None:
        since = row.queued_at or row.created_at
        text = f"Running on {where}, {show_duration((now - since).total_seconds())} after it was queued."
        yield EventKind.STATE, text, ""
    else:
        yield EventKind.STATE, f"Running again on {where}.", ""


def _misplaced(
    row: Workload, instances: Sequence[Instance], devices: Mapping[str, Device]
) -> Iterator[Said]:
    """The cluster put a first start elsewhere than planned."""
    if row.state is not State.STARTING or row.placement is None or is_array(row):
        return
    here = sorted((i.node, *i.devices) for i in instances if i.phase in LIVE and not i.terminating)
    planned = sorted((slot.node, *slot.devices) for slot in row.placement.slots)
    if here and here != planned:
        wish = words.place(row.placement.slots, devices)
        text = (
            f"Planned on {wish}; the cluster put it on {words.place(_slots(instances), devices)}."
        )
        yield EventKind.MISPLACED, text, ""


def _slots(instances: Sequence[Instance]) -> list[Slot]:
    return [
        Slot(i.node, i.devices)
        for i in instances
        if i.phase in LIVE and i.node and not i.terminating
    ]
