"""From what the cluster shows and what is stored to the input of one planning pass."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from podwarden.control import hours
from podwarden.control.books import Books
from podwarden.control.charges import Charge, charge, is_array, reserved
from podwarden.control.past import Past
from podwarden.control.target import main_part
from podwarden.domain.inventory import Holder, Holding, Node
from podwarden.domain.observation import Instance, Observation, Presence
from podwarden.domain.placement import Claimant, Reserved, Snapshot
from podwarden.domain.workload import Desire, Kind, Spec, VolumeKind, Workload

GRACE = timedelta(seconds=30)  # between a time limit and the kill


def build(
    books: Books, seen: Observation, known: Mapping[str, Node], past: Past, now: datetime
) -> Snapshot:
    """known: every node ever seen, with its devices. now: in the server's own time zone (for `hours`)."""
    nodes = merge_known(seen.nodes, known)
    lost = lost_nodes(nodes)
    claimants: list[Claimant] = []
    promised: list[Reserved] = []
    for row in books.holding.values():
        if row.desire is not Desire.RUN:
            continue
        owed = owed_to(row, books, seen, lost)
        promised.extend(reserved(row, owed.reserved))
        claimants.extend(_still_wanted(row, owed, seen, past, now))
    claimants.extend(
        _waiting(row, books, seen, past, now)
        for row in books.queued.values()
        if may_be_planned(row, books, seen, now)
    )
    if len(books.holdings) > 2 * len(seen.holdings) + 100:
        books.holdings.clear()
    return Snapshot(
        cluster=seen.cluster,
        taken_at=seen.taken_at,
        nodes=nodes,
        holdings=tuple(holdings(seen, books, past, now)),
        reserved=tuple(promised),
        claimants=tuple(claimants),
        foreign=seen.foreign,
        capabilities=seen.capabilities,
        complete=seen.complete,
        reachable=seen.reachable,
        mix=past.mix,
        holds=seen.holds,
    )


def may_be_planned(row: Workload, books: Books, seen: Observation, now: datetime) -> bool:
    """Not while it is parked, nor while an earlier job or start still leaves the cluster."""
    parked = books.parked.get(row.id)
    if parked is not None and parked[0] > now:
        return False
    fresh = row.kind is Kind.JOB or row.started_at is None
    return not fresh or main_part(seen.presences.get(row.id)) is None


def claimant(
    row: Workload, seen: Observation, past: Past, now: datetime, *, slots: int, at_least: int
) -> Claimant:
    spec = row.spec
    nodes, why = allowed_nodes(spec, row.id, seen, past.places)
    limit = spec.job.time_limit_s if spec.job is not None else None
    return Claimant(
        workload=row.id,
        name=row.name,
        endless=spec.endless,
        priority=int(spec.priority),
        queued_at=row.queued_at or row.created_at,
        request=spec.gpu,
        cpu_milli=spec.cpu_milli,
        memory_mib=spec.instance_memory_mib,
        slots=slots,
        at_least=at_least,
        time_limit=timedelta(seconds=limit) + GRACE if limit is not None else None,
        expected=past.expected(row),
        nodes=nodes,
        nodes_why=why,
        avoid=spec.avoid,
        hours=spec.hours,
        open_hours=hours.is_open(spec.hours, now),
        preemptible=spec.preemptible,
        owner=row.owner,
    )


def new_claimant(row: Workload, seen: Observation, past: Past, now: datetime) -> Claimant:
    """As it stands when it asks for everything: a first start."""
    spec = row.spec
    job = spec.job
    if job is None:
        return claimant(row, seen, past, now, slots=spec.replicas, at_least=spec.replicas)
    slots = job.tasks if job.parallelism is None else min(job.tasks, job.parallelism)
    if not is_array(row):
        return claimant(row, seen, past, now, slots=1, at_least=1)
    return claimant(row, seen, past, now, slots=slots, at_least=slots if job.gang else 1)


def owed_to(row: Workload, books: Books, seen: Observation, lost: Collection[str]) -> Charge:
    """Made again only for arrays, and where the row or what the cluster shows of it changed."""
    presence, instances = seen.presences.get(row.id), seen.instances.get(row.id, ())
    known = books.charges.get(row.id)
    if (
        known is not None
        and known[0] is row
        and known[1] is presence
        and known[2] is instances
        and known[3] == lost
        and not is_array(row)
    ):
        return known[4]
    made = _owed_to(row, books, presence, instances, lost)
    books.charges[row.id] = (row, presence, instances, lost, made)
    return made


def _owed_to(
    row: Workload,
    books: Books,
    presence: Presence | None,
    instances: tuple[Instance, ...],
    lost: Collection[str],
) -> Charge:
    if row.kind is Kind.JOB and any(i.allocated for i in instances):
        books.granted.add(row.id)
    return charge(
        row,
        presence,
        instances,
        lost,
        opened=books.opened.get(row.id, {}),
        grants=books.grants.get(row.id, ()),
        granted=row.id in books.granted,
    )


def lost_nodes(nodes: tuple[Node, ...]) -> frozenset[str]:
    return frozenset(node.name for node in nodes if not node.ready)


def merge_known(nodes: tuple[Node, ...], known: Mapping[str, Node]) -> tuple[Node, ...]:
    """Devices whose slice is away, and nodes that left, stay listed as not present: "can never fit" is
    judged on everything ever seen.
    """
    present = {node.name for node in nodes}
    merged: list[Node] = []
    for node in nodes:
        before = known.get(node.name)
        if before is None or len(before.devices) <= len(node.devices):
            merged.append(node)
            continue
        here = {device.uuid for device in node.devices}
        away = [replace(d, present=False) for d in before.devices if d.uuid not in here]
        devices = sorted((*node.devices, *away), key=lambda d: (d.vram_mib, d.uuid))
        merged.append(replace(node, devices=tuple(devices), agent_away=not node.devices))
    for name in sorted(known.keys() - present):
        gone = known[name]
        away = [replace(device, present=False) for device in gone.devices]
        merged.append(
            replace(
                gone,
                ready=False,
                used_cpu_milli=0,
                used_memory_mib=0,
                used_pods=0,
                devices=tuple(away),
            )
        )
    return tuple(merged)


def allowed_nodes(
    spec: Spec, workload: str, seen: Observation, places: Mapping[str, str]
) -> tuple[frozenset[str] | None, str]:
    """Where `node:`, and volumes and storages that lie on one node, allow it; None = anywhere. places: of storages."""
    nodes: frozenset[str] | None = None
    why = ""
    if spec.node:
        nodes, why = frozenset({spec.node}), f"node: {spec.node}"
    for volume in spec.volumes:
        if volume.kind is VolumeKind.DISK:
            place = seen.volume_nodes.get(f"{workload}/{volume.name}")
            what = f"its volume {volume.name}"
        elif volume.kind is VolumeKind.STORAGE:
            place = places.get(volume.storage)
            what = f"its storage {volume.storage}"
        else:
            continue
        if place is not None:
            here = frozenset({place})
            nodes = here if nodes is None else nodes & here
            why = what
    return nodes, why


def _waiting(row: Workload, books: Books, seen: Observation, past: Past, now: datetime) -> Claimant:
    """Cached per version where nothing but the row decides it."""
    lying = (VolumeKind.DISK, VolumeKind.STORAGE)
    steady = not row.spec.hours and not any(v.kind in lying for v in row.spec.volumes)
    known = books.claimants.get(row.id)
    if steady and known is not None and known[0] == row.version:
        return known[1]
    made = new_claimant(row, seen, past, now)
    books.claimants[row.id] = (row.version, made)
    return made


def _still_wanted(
    row: Workload, owed: Charge, seen: Observation, past: Past, now: datetime
) -> Iterator[Claimant]:
    if owed.lost:
        base = claimant(row, seen, past, now, slots=owed.lost, at_least=owed.lost)
        yield replace(base, started=True, displaced=True)
    elif owed.gated:
        job = row.spec.job
        gang = job is not None and job.gang
        waiting = len(owed.gated) - owed.promised
        if job is not None and job.parallelism is not None:
            waiting = min(waiting, job.parallelism - len(owed.used))
        if waiting > 0:
            base = claimant(row, seen, past, now, slots=waiting, at_least=waiting if gang else 1)
            yield replace(base, started=True)


def holdings(seen: Observation, books: Books, past: Past, now: datetime) -> Iterator[Holding]:
    """What the cluster shows as held, of our own workloads with what only we know: the end, the priority."""
    for holding in seen.holdings:
        row = books.get(holding.holder.workload) if holding.holder.workload else None
        if row is None:
            yield holding
            continue
        key = (holding.device, holding.holder.instance)
        known = books.holdings.get(key)
        instances = seen.instances.get(row.id)
        if known is None or known[:3] != (holding, row, instances) or _runs_late(known[3], now):
            own = replace(holding, holder=_holder(holding.holder, row, seen, past, now))
            known = books.holdings[key] = (holding, row, instances, own)
        yield known[3]


def _runs_late(holding: Holding, now: datetime) -> bool:
    """A guess that has passed is made again: meanwhile a longer run may have been seen."""
    return holding.holder.expected_end and (holding.holder.ends_by or now) <= now


def _holder(holder: Holder, row: Workload, seen: Observation, past: Past, now: datetime) -> Holder:
    spec = row.spec
    ends_by: datetime | None = None
    guess = False
    if not spec.endless:
        instance = next(
            (i for i in seen.instances.get(row.id, ()) if i.name == holder.instance), None
        )
        since = (instance.started_at if instance is not None else None) or holder.since or now
        expected = past.expected(row)
        if spec.job is not None and spec.job.time_limit_s is not None:
            ends_by = since + timedelta(seconds=spec.job.time_limit_s) + GRACE
        elif expected is not None:
            ends_by, guess = since + expected, True
    return replace(
        holder,
        name=row.name,
        endless=spec.endless,
        ends_by=ends_by,
        expected_end=guess,
        priority=int(spec.priority),
        preemptible=spec.preemptible,
    )
