"""What admitted workloads still have to get from the cluster: charged, so that it is not given away. Pure.

A slot is charged as reserved from admission until an instance is seen with its GPUs (or bound, without
GPU); an instance on a lost node is charged once more elsewhere, as a displaced claimant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from podwarden.domain.inventory import DEVICE_SHARES
from podwarden.domain.observation import Instance, Presence
from podwarden.domain.placement import Placement, Reserved, Slot
from podwarden.domain.workload import JobSpec, Kind, Workload

LIVE = frozenset({"pending", "running"})


@dataclass(frozen=True, slots=True)
class Charge:
    """reserved: slots nobody is seen in yet. lost: instances to be replaced elsewhere. used: all
    slots of an array that are in use or promised; promised: how many of them wait for their gate to open.
    gated: its instances whose gates are still closed.
    """

    reserved: tuple[Slot, ...] = ()
    lost: int = 0
    used: tuple[Slot, ...] = ()
    promised: int = 0
    gated: tuple[Instance, ...] = ()


def is_array(workload: Workload) -> bool:
    job = workload.spec.job
    return workload.kind is Kind.JOB and job is not None and job.array is not None


def charge(
    workload: Workload,
    presence: Presence | None,
    instances: Collection[Instance],
    lost_nodes: Collection[str],
    *,
    opened: Mapping[str, Slot],
    grants: Sequence[Slot],
    granted: bool,
) -> Charge:
    """For one admitted workload that is to run. lost_nodes: not ready, or unknown to the cluster.

    opened: slots of array instances whose gates were opened. grants: slots given to an array whose gates
    are still to be opened. granted: this job was once seen with its GPUs.
    """
    placement = workload.placement
    if placement is None:
        return Charge()
    if is_array(workload):
        return _array(workload, presence, instances, opened=opened, grants=grants)
    if workload.kind is Kind.JOB:
        return _job(placement, presence, instances, granted=granted)
    return _service(workload, placement, instances, lost_nodes)


def reserved(workload: Workload, slots: Iterable[Slot]) -> Iterable[Reserved]:
    spec = workload.spec
    request = spec.gpu
    shared = request is not None and request.shared
    for slot in slots:
        yield Reserved(
            workload=workload.id,
            name=workload.name,
            node=slot.node,
            devices=slot.devices,
            memory_mib=(request.vram_mib or 0) if request is not None and shared else 0,
            shares=1 if shared else DEVICE_SHARES,
            cpu_milli=spec.cpu_milli,
            instance_memory_mib=spec.instance_memory_mib,
            endless=spec.endless,
            encoders=request.encoder_sessions if request is not None else 0,
        )


def unmatched(slots: Iterable[Slot], instances: Iterable[Instance]) -> list[Slot]:
    """Slots that none of the instances is in: by its GPUs, else by its node, else any."""
    left = list(slots)
    loose: list[Instance] = []
    for instance in instances:
        same = next((s for s in left if s.devices and s.devices == instance.devices), None)
        if same is None:
            loose.append(instance)
        else:
            left.remove(same)
    for instance in loose:
        if left:
            left.remove(next((s for s in left if s.node == instance.node), left[0]))
    return left


def gated_tasks(
    workload: Workload, instances: Collection[Instance], opened: Collection[str]
) -> list[Instance]:
    """Instances of an array whose gates may be opened, by task; not of tasks that failed for good."""
    gated = [i for i in instances if i.gated and not i.terminating and i.name not in opened]
    if gated:
        spent = exhausted(workload.spec.job or JobSpec(), instances)
        gated = [i for i in gated if i.index not in spent]
    return sorted(gated, key=lambda i: (i.index if i.index is not None else 0, i.name))


def exhausted(job: JobSpec, instances: Collection[Instance]) -> frozenset[int]:
    """Indexes of an array that failed by their own fault more often than `retries` allows, or ran too long."""
    failures: Counter[int] = Counter()
    for instance in instances:
        if instance.phase == "failed" and instance.index is not None:
            if instance.reason == "DeadlineExceeded":
                failures[instance.index] += job.retries + 1
            elif instance.user_failure:
                failures[instance.index] += 1
    done = {i.index for i in instances if i.phase == "succeeded"}
    return frozenset(
        index for index, n in failures.items() if n > job.retries and index not in done
    )


def _service(
    workload: Workload,
    placement: Placement,
    instances: Collection[Instance],
    lost_nodes: Collection[str],
) -> Charge:
    mine = [i for i in instances if i.revision in (0, workload.revision) and i.phase in LIVE]
    good = [i for i in mine if i.allocated and not i.terminating and i.node not in lost_nodes]
    missing = max(len(placement.slots) - len(good), 0)
    if not missing:
        return Charge()
    gone = [i for i in mine if i.allocated and i.node in lost_nodes]
    open_slots = unmatched(placement.slots, good)[:missing]
    lost_slots = [slot for slot in open_slots if slot.node in lost_nodes]
    lost = min(missing, max(len(gone), len(lost_slots)))
    keep = [slot for slot in open_slots if slot.node not in lost_nodes][: missing - lost]
    return Charge(reserved=tuple(keep), lost=lost)


def _job(
    placement: Placement,
    presence: Presence | None,
    instances: Collection[Instance],
    *,
    granted: bool,
) -> Charge:
    if presence is not None and (presence.complete or presence.failed_why):
        return Charge()
    waiting = [i for i in instances if i.phase == "pending" and not i.allocated]
    if waiting:
        return Charge(reserved=placement.slots[: len(waiting)])
    if instances or granted:
        return Charge()
    return Charge(reserved=placement.slots)


def _array(
    workload: Workload,
    presence: Presence | None,
    instances: Collection[Instance],
    *,
    opened: Mapping[str, Slot],
    grants: Sequence[Slot],
) -> Charge:
    if presence is not None and (presence.complete or presence.failed_why):
        return Charge()
    used: list[Slot] = []
    waiting: list[Slot] = []
    for instance in instances:
        if instance.phase not in LIVE:
            continue
        slot = opened.get(instance.name)
        if slot is None and instance.gated:
            continue
        slot = slot or Slot(instance.node, instance.devices)
        used.append(slot)
        if not instance.allocated and slot.node:
            waiting.append(slot)
    return Charge(
        reserved=(*waiting, *grants),
        used=(*used, *grants),
        promised=len(grants),
        gated=tuple(gated_tasks(workload, instances, opened)),
    )
