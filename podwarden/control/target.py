"""What the cluster should carry of a workload, compared with what it carries. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from podwarden.control.charges import exhausted
from podwarden.domain.observation import Instance, Presence
from podwarden.domain.placement import Placement
from podwarden.domain.workload import ENDED, HOLDING, Desire, Kind, State, Workload
from podwarden.kube.render import array_pods

_STARTERS = ("Deployment", "Job")
KEEP_ENDED = timedelta(hours=1)  # objects of an ended job, so that its logs can be read


class Do(StrEnum):
    NOTHING = "nothing"
    APPLY = "apply"
    GROW = "grow"  # an array has room for more tasks than may exist
    SCALE_DOWN = "scale-down"
    REMOVE = "remove"
    FORGET = "forget"  # nothing is left in the cluster: the row may go


@dataclass(frozen=True, slots=True)
class Target:
    """What was last given to the cluster, or is to be given."""

    revision: int
    placement: Placement | None
    running: bool


REMOVED = Target(0, None, running=False)  # everything was taken away by this process
UNSURE = Target(
    -1, None, running=True
)  # an order was sent, and whether all of it was taken is not known


@dataclass(frozen=True, slots=True)
class Step:
    do: Do
    why: str = ""  # what was changed behind our back, "" when it is our own will


def step(
    row: Workload,
    presence: Presence | None,
    instances: Collection[Instance],
    given: Target | None,
    now: datetime,
    *,
    settled: bool,
) -> Step:
    """given: what this process gave last, None = not yet. settled: the cluster once showed it as wanted."""
    if row.desire is Desire.DELETE:
        untouched = given is None and row.placement is None and not row.applied_revision
        gone = presence is None and not instances
        return Step(Do.FORGET if gone and (untouched or given == REMOVED) else Do.REMOVE)
    presence = main_part(presence)
    if row.state is State.QUEUED:
        return _queued(row, presence)
    if row.desire is Desire.STOP and row.state in HOLDING:
        return _stopping(row, presence, given)
    if row.state in ENDED:
        return _ended(row, presence, now)
    if row.placement is None:
        return Step(Do.NOTHING)
    return _running(row, presence, instances, given, settled=settled)


def wanted(row: Workload) -> Target:
    return Target(row.revision, row.placement, running=True)


def main_part(presence: Presence | None) -> Presence | None:
    """The presence, where the object that starts instances is there; its address alone does not count."""
    if presence is None or not any(kind in _STARTERS for kind, _ in presence.objects):
        return None
    return presence


def _queued(row: Workload, presence: Presence | None) -> Step:
    """Nothing of it runs: a job or a start that went nowhere leaves, a service that ran stays at none."""
    if presence is None or presence.deleting:
        return Step(Do.NOTHING)
    if row.kind is Kind.JOB or row.started_at is None:
        return Step(Do.REMOVE)
    return Step(Do.SCALE_DOWN if presence.desired else Do.NOTHING)


def _stopping(row: Workload, presence: Presence | None, given: Target | None) -> Step:
    if presence is None:
        # An apply of ours may still be on its way into the watch.
        return Step(Do.REMOVE if given is not None and given.running else Do.NOTHING)
    if row.kind is Kind.JOB:
        return Step(Do.NOTHING if presence.deleting else Do.REMOVE)
    return Step(Do.SCALE_DOWN if presence.desired else Do.NOTHING)


def _ended(row: Workload, presence: Presence | None, now: datetime) -> Step:
    if presence is None or presence.deleting:
        return Step(Do.NOTHING)
    if row.kind is Kind.SERVICE:
        return Step(Do.SCALE_DOWN if presence.desired else Do.NOTHING)
    if row.state is State.STOPPED or row.ended_at is None or now - row.ended_at > KEEP_ENDED:
        return Step(Do.REMOVE)
    running = not (presence.complete or presence.failed_why or presence.suspended)
    return Step(Do.SCALE_DOWN if running else Do.NOTHING)


def _running(
    row: Workload,
    presence: Presence | None,
    instances: Collection[Instance],
    given: Target | None,
    *,
    settled: bool,
) -> Step:
    nothing = Step(Do.NOTHING)
    if presence is None:
        given_not_seen = given == wanted(row) and not settled
        return nothing if given_not_seen else Step(Do.APPLY, "it was deleted" if settled else "")
    if presence.deleting or presence.complete or presence.failed_why:
        return nothing
    if _differs(row, given) if given is not None else presence.revision != row.revision:
        return Step(Do.APPLY)
    if presence.revision != row.revision:
        return nothing  # given, not yet seen
    changed = _changed(row, presence) if settled or given is None else presence.edited
    if changed:
        return Step(Do.APPLY, changed)
    more = presence.desired < tasks_that_may_exist(row, instances)
    return Step(Do.GROW) if more else nothing


def _changed(row: Workload, presence: Presence) -> str:
    """What is not as wanted, in words; "" when all is."""
    if presence.edited:
        return presence.edited
    if presence.missing:
        gone = ", ".join(f"{kind} {name}" for kind, name in presence.missing)
        return f"{gone} was deleted"
    return _set_otherwise(row, presence)


def _set_otherwise(row: Workload, presence: Presence) -> str:
    """What somebody changed, in words; "" when it is as wanted."""
    if row.kind is Kind.JOB:
        return "it was suspended" if presence.suspended else ""
    if presence.desired != row.spec.replicas:
        return f"its copies were set from {row.spec.replicas} to {presence.desired}"
    return ""


def tasks_that_may_exist(row: Workload, instances: Collection[Instance] = ()) -> int:
    """How many instances of an array may be there, behind the gate or not; 0 for everything else.

    The cluster makes tasks that failed for good anew; they stay behind their gate and must not take the place of
    those that were never tried.
    """
    job = row.spec.job
    if job is None or job.array is None or row.placement is None:
        return 0
    pods = array_pods(job, len(row.placement.slots)) + len(exhausted(job, instances))
    return min(pods, job.tasks)


def _differs(row: Workload, given: Target) -> bool:
    """An array's placement changes with each gate; what counts for others is where they are wanted."""
    if not given.running or given.revision != row.revision:
        return True
    if row.spec.job is not None:
        return False
    return given.placement != row.placement


def as_wanted(row: Workload, presence: Presence | None) -> bool:
    """The cluster shows what the row says."""
    presence = main_part(presence)
    if presence is None or presence.revision != row.revision:
        return False
    if presence.edited or presence.missing:
        return False
    return row.kind is Kind.JOB or presence.desired == row.spec.replicas
