"""How a started service goes from one revision to the next, and back when that fails. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from podwarden.domain.document import spec_from_json, spec_to_json
from podwarden.domain.placement import Placement
from podwarden.domain.reason import Code, Reason
from podwarden.domain.workload import Revision, Spec, State, Workload

MODE, FROM, UNTIL = "update_mode", "update_from", "update_until"
PODS = "pods_priority"  # with which its pods were made: another one for the queue does not restart them
PENDING = "update_pending"  # an update that waits for room beside the old revision
START = 600  # seconds for a start where no health check says otherwise
SLACK = timedelta(seconds=60)  # for the image and the schedule, beyond the start-up time
PULL_TRIES = timedelta(seconds=45)  # in which a node has tried an image three times
CRASHES = 3  # of the new revision, after which it is not waited for any longer


@dataclass(frozen=True, slots=True)
class Pending:
    """An update that waits for room until `until`; then it is dropped."""

    spec: Spec
    by: str
    note: str
    until: datetime


def waiting(row: Workload, order: Pending | None) -> Workload:
    """With that update waiting, instead of one that does; None: with none."""
    said = ""
    if order is not None:
        data = [spec_to_json(order.spec), order.by, order.note, order.until.isoformat()]
        said = json.dumps(data)
    return replace(row, facts=with_facts(row, {PENDING: said}))


def pending(row: Workload) -> Pending | None:
    if not any(key == PENDING for key, _ in row.facts):
        return None
    spec, by, note, until = json.loads(fact(row, PENDING))
    return Pending(spec_from_json(spec), by, note, datetime.fromisoformat(until))


def fact(row: Workload, key: str) -> str:
    return dict(row.facts).get(key, "")


def with_facts(row: Workload, changes: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """An empty value takes the fact away."""
    facts = {**dict(row.facts), **changes}
    return tuple(sorted((key, value) for key, value in facts.items() if value))


def begun(
    row: Workload, spec: Spec, placement: Placement | None, *, mode: str, number: int, now: datetime
) -> Workload:
    """The row of an admitted service whose new revision is to be rolled out by `surge` or `recreate`. One that is not up
    yet goes on starting: there is nothing to go back to.
    """
    first = row.state is State.STARTING
    facts = {
        MODE: mode,
        FROM: "" if first else str(row.revision),
        UNTIL: "" if first else (now + patience(spec)).isoformat(),
        PODS: spec.priority.word,
        PENDING: "",
    }
    return replace(
        row,
        spec=spec,
        revision=number,
        state=State.STARTING if first else State.UPDATING,
        placement=placement or row.placement,
        reason=Reason(Code.STARTING, f"Revision {number} is being started."),
        changed_at=now,
        facts=with_facts(row, facts),
    )


def turned_back(row: Workload, before: Revision, number: int, why: str, now: datetime) -> Workload:
    """The row after an update that did not work: the earlier spec again, as a new revision."""
    until = (now + patience(before.spec)).isoformat()
    facts = {FROM: "", UNTIL: until, PODS: before.spec.priority.word}
    return replace(
        row,
        spec=before.spec,
        revision=number,
        state=State.UPDATING,
        reason=Reason(Code.STARTING, f"{why} Revision {before.number} is being started again."),
        changed_at=now,
        facts=with_facts(row, facts),
    )


def finished(row: Workload) -> tuple[tuple[str, str], ...]:
    return with_facts(row, {FROM: "", UNTIL: ""})


def patience(spec: Spec) -> timedelta:
    seconds = spec.health.startup_s if spec.health is not None else START
    return timedelta(seconds=seconds) + SLACK


def overdue(row: Workload, now: datetime) -> bool:
    until = fact(row, UNTIL)
    return bool(until) and now >= datetime.fromisoformat(until)


def came_from(row: Workload) -> int | None:
    """The revision to go back to by itself; None when there is none, or it was gone back to already."""
    number = fact(row, FROM)
    return int(number) if number else None
