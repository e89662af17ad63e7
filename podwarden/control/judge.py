"""What a started workload's instances say about it: its state, with a reason. Pure.

Texts carry no growing numbers, so that a row is rewritten only when something happened.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from podwarden.control.charges import LIVE, exhausted, is_array
from podwarden.control.symptoms import NOTHING, again, gave_up, of_failed, of_waiting
from podwarden.control.target import main_part
from podwarden.domain.observation import Instance, LastWords, Presence
from podwarden.domain.reason import Code, Reason
from podwarden.domain.workload import Desire, JobSpec, Kind, Priority, State, Workload

UNPLACED = timedelta(seconds=60)  # after which a first start goes back to the queue
MOST_CRASHES = 10  # in CRASH_WINDOW, then a service is taken down
CRASH_WINDOW = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class Judgement:
    """unplaced: the cluster's scheduler found no room for 60 s, and it never ran: back to the queue."""

    state: State
    reason: Reason | None = None
    counts: tuple[tuple[str, int], ...] = ()
    unplaced: bool = False
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """row: admitted and not ended. presence, instances: as the cluster shows them. crashes: of its instances
    within CRASH_WINDOW. lost_nodes: those that do not answer. words: last words of copies in trouble, by uid.
    """

    row: Workload
    presence: Presence | None
    instances: Sequence[Instance]
    lost_nodes: Collection[str]
    now: datetime
    crashes: int = 0
    words: Mapping[str, LastWords] = field(default_factory=dict)


def judge(case: Case) -> Judgement:
    case = replace(case, presence=main_part(case.presence))
    row = case.row
    if row.desire is not Desire.RUN or row.state is State.STOPPING:
        return _stopping(case)
    if row.kind is Kind.JOB:
        return _job(case)
    if case.crashes >= MOST_CRASHES and row.spec.priority is not Priority.CRITICAL:
        why = gave_up(case.row, case.instances, case.crashes, case.words)
        return Judgement(State.FAILED, why, started_at=row.started_at, ended_at=case.now)
    if row.state is State.UPDATING:
        return _updating(case)
    return _starting(case) if row.state is State.STARTING else _running(case)


def _stopping(case: Case) -> Judgement:
    """Stopped once nothing runs any more: only then its GPUs are free."""
    row, presence = case.row, case.presence
    left = any(i.phase in LIVE for i in case.instances)
    here = presence is not None and (row.kind is Kind.JOB or presence.desired > 0)
    if left or here or row.desire is not Desire.STOP:
        return Judgement(State.STOPPING, row.reason, started_at=row.started_at)
    return Judgement(State.STOPPED, started_at=row.started_at, ended_at=case.now)


def _up(case: Case) -> list[Instance]:
    return [
        i
        for i in case.instances
        if i.phase in LIVE and not i.terminating and i.ready and i.node not in case.lost_nodes
    ]


def _needed(row: Workload) -> int:
    return max(min(row.spec.min_replicas, row.spec.replicas), 1)


def _updating(case: Case) -> Judgement:
    """Done when every copy is of the new revision and ready, and no old one is left."""
    row, presence, up = case.row, case.presence, _up(case)
    live = [i for i in case.instances if i.phase in LIVE and not i.terminating]
    current = [i for i in live if i.revision == row.revision]
    noticed = presence is not None and presence.observed_generation >= presence.generation
    ready = [i for i in up if i.revision == row.revision]
    if noticed and len(ready) >= row.spec.replicas and len(live) == len(current):
        return Judgement(State.RUNNING, started_at=row.started_at or _first_start(up))
    why = _worst([i for i in current if i not in ready], case)
    return Judgement(State.UPDATING, why or row.reason, started_at=row.started_at)


def _starting(case: Case) -> Judgement:
    row = case.row
    ready = [i for i in _up(case) if i.revision == row.revision]
    if len(ready) >= _needed(row):
        return Judgement(State.RUNNING, started_at=row.started_at or _first_start(ready))
    current = [i for i in case.instances if i.phase in LIVE and i.revision == row.revision]
    return Judgement(
        State.STARTING,
        _worst(current, case) or row.reason,
        unplaced=_unplaced(case, current),
        started_at=row.started_at,
    )


def _running(case: Case) -> Judgement:
    row, up = case.row, _up(case)
    if len(up) >= _needed(row):
        return Judgement(State.RUNNING, started_at=row.started_at or _first_start(up))
    down = [i for i in case.instances if i.phase in LIVE and i not in up]
    why = _worst(down, case) or Reason(
        Code.STARTING, "None of its copies is there; the cluster starts a new one."
    )
    return Judgement(State.UNHEALTHY, why, started_at=row.started_at)


def _first_start(instances: Sequence[Instance]) -> datetime | None:
    return min((i.started_at for i in instances if i.started_at), default=None)


def _job(case: Case) -> Judgement:
    row, presence, instances = case.row, case.presence, case.instances
    job = row.spec.job or JobSpec()
    failed = [i for i in instances if i.phase == "failed"]
    running = [i for i in instances if i.phase == "running"]
    started = _first_start(instances) or row.started_at
    spent = exhausted(job, instances)
    counts = _counts(row, presence, len(running), len(spent))
    ended = max((i.ended_at for i in instances if i.ended_at), default=case.now)
    if presence is not None and presence.complete:
        return Judgement(State.SUCCEEDED, None, counts, started_at=started, ended_at=ended)
    if (presence is not None and presence.failed_why) or _given_up(case, job, spent):
        said = presence.failed_why if presence is not None else ""
        why = of_failed(row, failed, said, spent, case.words)
        return Judgement(State.FAILED, why, counts, started_at=started, ended_at=ended)
    if running or (is_array(row) and row.state is State.RUNNING):
        lost = [i for i in running if i.node in case.lost_nodes]
        reason = _worst(lost, case) if len(lost) == len(running) else None
        return Judgement(State.RUNNING, reason, counts, started_at=started)
    if any(i.phase == "succeeded" for i in instances) and not is_array(row):
        return Judgement(row.state, row.reason, counts, started_at=started)  # about to be complete
    return _job_starting(case, failed, counts)


def _job_starting(
    case: Case, failed: Sequence[Instance], counts: tuple[tuple[str, int], ...]
) -> Judgement:
    row = case.row
    pending = [i for i in case.instances if i.phase == "pending" and not i.gated]
    return Judgement(
        State.STARTING,
        _worst(pending, case) or again(row, failed, case.words) or row.reason,
        counts,
        unplaced=not failed and _unplaced(case, pending),
        started_at=_first_start(case.instances) or row.started_at,
    )


def _given_up(case: Case, job: JobSpec, spent: frozenset[int]) -> bool:
    """Its own faults are used up; what failed with its node does not count."""
    instances = case.instances
    if is_array(case.row):
        busy = [i for i in instances if i.phase in LIVE and i.index not in spent]
        succeeded = case.presence.succeeded if case.presence is not None else 0
        return bool(spent) and not busy and succeeded + len(spent) >= job.tasks
    if any(i.reason == "DeadlineExceeded" for i in instances if i.phase == "failed"):
        return True
    return sum(1 for i in instances if i.user_failure) > job.retries


def _counts(
    row: Workload, presence: Presence | None, running: int, failed: int
) -> tuple[tuple[str, int], ...]:
    if not is_array(row) or row.spec.job is None:
        return ()
    done = presence.succeeded if presence is not None else row.count("done")
    total = row.spec.job.tasks
    return (("done", done), ("running", running), ("failed", failed), ("total", total))


def _unplaced(case: Case, instances: Sequence[Instance]) -> bool:
    """Never for what ran before, nor for an array, whose other tasks may run."""
    return (
        case.row.started_at is None
        and not is_array(case.row)
        and bool(instances)
        and all(
            i.unschedulable_since is not None and case.now - i.unschedulable_since >= UNPLACED
            for i in instances
        )
    )


def _worst(instances: Sequence[Instance], case: Case) -> Reason | None:
    """The reason of the one that needs a person most; None when none has a word."""
    reasons = [
        of_waiting(i, case.row, case.lost_nodes, case.words.get(i.uid, NOTHING)) for i in instances
    ]
    known = [reason for reason in reasons if reason is not None]
    return min(known, key=lambda reason: _GRAVITY.get(reason.code, 1), default=None)


_GRAVITY = {
    Code.NODE_LOST: 0,
    Code.IMAGE_PULL_FAILED: 2,
    Code.UNSCHEDULABLE: 3,
    Code.PROBE_FAILING: 4,
    Code.PULLING_IMAGE: 8,
    Code.STARTING: 9,
}
