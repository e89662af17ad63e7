"""Taking over what an earlier PodWarden left in a cluster: rows as they would be, nothing touched. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from podwarden.control.target import main_part
from podwarden.domain.observation import Instance, Observation, Presence
from podwarden.domain.workload import ENDED, Desire, Kind, Revision, State, Workload
from podwarden.kube.adopt import Adopted


def taken_over(
    found: Adopted, seen: Observation, cluster: str, now: datetime
) -> tuple[Workload, tuple[Revision, ...]]:
    """The row and all revisions, the current one last."""
    presence = main_part(seen.presences.get(found.id))
    instances = seen.instances.get(found.id, ())
    state = _state(found, presence, instances)
    desire = Desire.STOP if state is State.STOPPED else found.desire
    started = min((i.started_at for i in instances if i.started_at), default=None)
    ended = max((i.ended_at for i in instances if i.ended_at), default=now)
    row = Workload(
        id=found.id,
        name=found.name,
        owner=found.owner,
        cluster=cluster,
        spec=replace(found.spec, cluster=cluster),
        revision=found.revision,
        state=state,
        desire=desire,
        created_at=found.created_at,
        changed_at=now,
        queued_at=found.queued_at or found.created_at,
        started_at=started if state is not State.QUEUED else None,
        ended_at=ended if state in ENDED else None,
        placement=found.placement if state not in (State.QUEUED, State.STOPPED) else None,
        applied_revision=presence.revision if presence is not None else 0,
        nodes=_nodes(instances),
        devices=tuple(sorted({uuid for i in instances for uuid in i.devices})),
    )
    current = Revision(found.id, found.revision, row.spec, now, found.owner)
    known = {revision.number: revision for revision in found.revisions}
    known.setdefault(found.revision, current)
    return row, tuple(known[number] for number in sorted(known) if number <= found.revision)


def _state(found: Adopted, presence: Presence | None, instances: Sequence[Instance]) -> State:
    if found.desire is Desire.DELETE:
        return State.STOPPING
    if presence is None or found.placement is None:
        return State.STOPPED if found.desire is Desire.STOP else State.QUEUED
    if presence.complete:
        return State.SUCCEEDED
    if presence.failed_why:
        return State.FAILED
    halted = presence.suspended if found.spec.kind is Kind.JOB else presence.desired == 0
    if halted or found.desire is Desire.STOP:
        return State.STOPPED
    return State.RUNNING if any(i.started_at for i in instances) else State.STARTING


def _nodes(instances: Sequence[Instance]) -> tuple[str, ...]:
    return tuple(sorted({i.node for i in instances if i.node and not i.ended_at}))
