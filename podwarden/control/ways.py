"""How a running service gets a new revision, decided before anything changes. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime

from podwarden import scheduling
from podwarden.control import words
from podwarden.control.charges import LIVE
from podwarden.control.sight import Sight
from podwarden.control.snapshot import claimant
from podwarden.domain.inventory import Holding
from podwarden.domain.placement import Claimant, Placement, Reserved, Snapshot
from podwarden.domain.units import show_duration
from podwarden.domain.workload import Priority, Spec, State, Update, VolumeKind, Workload
from podwarden.errors import Conflict

NEEDS_DOWNTIME = "UPDATE_NEEDS_DOWNTIME"


@dataclass(frozen=True, slots=True)
class Way:
    """how: nothing | replace (it does not run) | surge | wait (for room to surge) | recreate. text: said before
    anything changes.
    """

    how: str
    text: str
    placement: Placement | None = None


def choose(
    view: Snapshot, sight: Sight, row: Workload, spec: Spec, now: datetime, *, recreate: bool
) -> Way:
    """Beside the old one where there is room; else wait for room that will come; else in its place, if its user
    chose that, or one copy after the other. Conflict: NO_ROOM, or UPDATE_NEEDS_DOWNTIME.
    """
    changed = replace(row, spec=spec)
    if row.state is State.STARTING:
        return _instead(view, changed, sight, now)
    why = _one_at_a_time(spec)
    gradual = not why and spec.update is not Update.RECREATE and not recreate
    if gradual:
        found, why = surge(view, sight, row, spec, now)
        if found is not None:
            return found
    in_place = _in_place(view, sight, changed, now)
    if recreate or spec.update is Update.RECREATE:
        return in_place
    if gradual and spec.update is Update.AUTO and _in_turn(row, spec):
        return in_place
    if gradual and _room_may_come(view, sight, changed, now):
        limit = show_duration(spec.surge_wait_s)
        text = (
            f"Revision {row.revision + 1} waits up to {limit} for room beside revision {row.revision}, "
            f"which goes on: {why}"
        )
        return Way("wait", text)
    raise Conflict(
        f"There is no room for revision {row.revision + 1} beside revision {row.revision}: {why} "
        "With --recreate the old one ends first: a short downtime, and the way back if the new one does not start.",
        code=NEEDS_DOWNTIME,
    )


def surge(
    view: Snapshot, sight: Sight, row: Workload, spec: Spec, now: datetime
) -> tuple[Way | None, str]:
    """With the place of the first new copy, else None and why not."""
    changed, number = replace(row, spec=spec), row.revision + 1
    placement, why = _room_beside(view, _extra(changed, sight, now, slots=1), now)
    if placement is None:
        return None, why
    where = words.place(placement.slots, words.devices_by_uuid(view.nodes))
    keep = row.placement.slots if row.placement is not None else ()
    slots = (*placement.slots, *keep)[: spec.replicas]
    slots += placement.slots * (spec.replicas - len(slots))
    text = f"Revision {number} starts on {where} before revision {row.revision} ends: no downtime."
    return Way("surge", text, replace(placement, workload=row.id, slots=slots)), ""


def _in_place(view: Snapshot, sight: Sight, changed: Workload, now: datetime) -> Way:
    """Where the old one is now, or elsewhere; the old one ends first."""
    placement, where = _room_without(view, sight, changed, now)
    new, old, copies = changed.revision + 1, changed.revision, changed.spec.replicas
    text = (
        f"The {copies} copies are replaced one after the other, and the others go on meanwhile: revision {new} on {where}."
        if copies > 1
        else f"Revision {old} ends, then revision {new} starts on {where}: a short downtime."
    )
    return Way("recreate", text, placement)


def _in_turn(row: Workload, spec: Spec) -> bool:
    """One copy fewer for a while is no downtime, where its user is content with that many."""
    return min(row.spec.replicas, spec.replicas) > max(spec.min_replicas, 1)


def _instead(view: Snapshot, changed: Workload, sight: Sight, now: datetime) -> Way:
    """Nothing serves yet, so nothing is lost when a start that perhaps never succeeds makes way for another one."""
    placement, where = _room_without(view, sight, changed, now)
    old = changed.revision
    text = f"Revision {old + 1} starts on {where} in place of revision {old}, which is not up yet."
    return Way("recreate", text, placement)


def _room_without(
    view: Snapshot, sight: Sight, changed: Workload, now: datetime
) -> tuple[Placement, str]:
    """Conflict NO_ROOM: not even where the old one is."""
    whole = _extra(changed, sight, now, slots=changed.spec.replicas)
    placement, refused = _room_beside(_without(view, changed, sight), whole, now)
    if placement is None:
        raise Conflict(
            f"Revision {changed.revision + 1} would not start now, not even in place of revision {changed.revision}: "
            f"{refused}",
            code="NO_ROOM",
        )
    where = words.place(placement.slots, words.devices_by_uuid(view.nodes))
    return replace(placement, workload=changed.id), where


def _room_may_come(view: Snapshot, sight: Sight, changed: Workload, now: datetime) -> bool:
    """Once the work that ends by itself has ended."""
    later = replace(
        view,
        holdings=tuple(h for h in view.holdings if h.holder.endless),
        reserved=tuple(r for r in view.reserved if r.endless),
        claimants=(),
    )
    placement, _ = _room_beside(later, _extra(changed, sight, now, slots=1), now)
    return placement is not None


def _extra(row: Workload, sight: Sight, now: datetime, *, slots: int) -> Claimant:
    """The new copies as a claimant of their own, ahead of everybody who waits."""
    base = claimant(row, sight.seen, sight.past, now.astimezone(), slots=slots, at_least=slots)
    return replace(
        base, workload=f"{row.id}/update", priority=int(Priority.CRITICAL), queued_at=row.created_at
    )


def _room_beside(view: Snapshot, wish: Claimant, now: datetime) -> tuple[Placement | None, str]:
    """The place of the new copies if they can start now, else why not."""
    _, verdict, placement = scheduling.preview(view, wish, now)
    if placement is not None:
        return placement, ""
    return None, verdict.reason.text if verdict.reason is not None else "there is no room now."


def _without(view: Snapshot, row: Workload, sight: Sight) -> Snapshot:
    """As if this workload held nothing: its GPUs, CPU and memory are free."""
    freed: list[Holding] = [h for h in view.holdings if h.holder.workload != row.id]
    promised: list[Reserved] = [r for r in view.reserved if r.workload != row.id]
    copies = Counter(i.node for i in sight.seen.instances.get(row.id, ()) if i.phase in LIVE)
    cpu, memory = row.spec.cpu_milli, row.spec.instance_memory_mib
    nodes = tuple(
        replace(
            node,
            used_cpu_milli=max(node.used_cpu_milli - cpu * copies[node.name], 0),
            used_memory_mib=max(node.used_memory_mib - memory * copies[node.name], 0),
        )
        for node in view.nodes
    )
    return replace(view, nodes=nodes, holdings=tuple(freed), reserved=tuple(promised))


def _one_at_a_time(spec: Spec) -> str:
    """Why two copies cannot be there at once, "" when they can."""
    if any(volume.kind is VolumeKind.DISK and not volume.read_only for volume in spec.volumes):
        return "it has a volume that one copy at a time can use."
    return (
        "its ports are its node's own (host_network)." if spec.host_network and spec.ports else ""
    )
