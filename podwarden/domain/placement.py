"""Input and output of one planning pass: snapshot, plan, placement, hold.

A snapshot is everything `scheduling.plan` may know; it serialises to JSON and back without loss, so that
any decision can be replayed offline. Planning is per cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from podwarden.domain.inventory import Capabilities, Holding, Node
from podwarden.domain.reason import Reason
from podwarden.domain.request import Request


@dataclass(frozen=True, slots=True)
class Slot:
    """Room for one instance: a node and the devices on it (uuids, empty without GPU)."""

    node: str
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a workload is wanted.

    slots: one per instance that may start now. ranking: node names, best first, at most 20, slots' nodes
    included. bands: ascending VRAM (MiB, driver's total) of the GPUs that would also do, for the fallback.
    """

    workload: str
    slots: tuple[Slot, ...]
    ranking: tuple[str, ...] = ()
    bands: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Claimant:
    """A workload that wants room: queued, or a started array that has tasks left.

    cpu_milli, memory_mib: per instance, shm included. slots: instances wanted now. at_least: start with
    no fewer (replicas of a service, members of a gang; 1 for arrays). time_limit: enforced, grace included.
    expected: the longest it took before. nodes: where its volumes or `node:` allow (None = anywhere);
    nodes_why names the volume or field that says so. displaced: its node is lost or planned to leave; it
    outranks the queue and is not admitted by the plan (the cluster starts its replacement by itself):
    it is only charged. started: already admitted once. hours: "" or "22:00-07:00" (server-local minutes
    are given by the caller as `open_hours`).
    """

    workload: str
    name: str
    endless: bool
    priority: int
    queued_at: datetime
    request: Request | None = None
    cpu_milli: int = 0
    memory_mib: int = 0
    slots: int = 1
    at_least: int = 1
    time_limit: timedelta | None = None
    expected: timedelta | None = None
    nodes: frozenset[str] | None = None
    nodes_why: str = ""
    avoid: tuple[str, ...] = ()
    hours: str = ""
    open_hours: bool = True
    preemptible: bool = False
    started: bool = False
    displaced: bool = False
    owner: str = ""
    quota: str = ""  # what forbids its start now, as a sentence: "alice holds 2 of her 2 GPUs."


@dataclass(frozen=True, slots=True)
class Reserved:
    """Admitted, but not yet shown as allocated by the cluster: charged like a holding.

    One entry per instance still missing from the cluster's books.
    """

    workload: str
    name: str
    node: str
    devices: tuple[str, ...]
    memory_mib: int = 0  # per device; 0 with shares 64 means whole
    shares: int = 64
    cpu_milli: int = 0
    instance_memory_mib: int = 0
    endless: bool = True
    ends_by: datetime | None = None
    encoders: int = 0  # sessions per device


@dataclass(frozen=True, slots=True)
class ForeignDemand:
    """A pod of somebody else that waits for whole GPUs by `nvidia.com/gpu`: the cluster's scheduler
    gives it the smallest free one as soon as it can, whatever the queue says. One that has no room for its CPU
    and memory gets none.
    """

    namespace: str
    name: str
    count: int
    nodes: frozenset[str] | None = None
    cpu_milli: int = 0
    memory_mib: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """complete False: some list was not read yet; nothing is refused on its word."""

    cluster: str
    taken_at: datetime
    nodes: tuple[Node, ...] = ()
    holdings: tuple[Holding, ...] = ()
    reserved: tuple[Reserved, ...] = ()
    claimants: tuple[Claimant, ...] = ()
    foreign: tuple[ForeignDemand, ...] = ()
    capabilities: Capabilities = field(default_factory=Capabilities)
    complete: bool = True
    reachable: bool = True
    mix: tuple[
        tuple[int, int, int], ...
    ] = ()  # past requests: (count, vram_mib, weight), for ranking
    holds: tuple[
        tuple[str, str], ...
    ] = ()  # (device uuid, workload id) of hold rules in the cluster: foreign demand cannot take these


@dataclass(frozen=True, slots=True)
class Hold:
    """A free device kept for the head of the queue."""

    device: str
    node: str
    workload: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the plan says about one claimant, in queue order.

    position: 1 = next; 0 = admitted by this plan. starts_at: reserved or estimated start, None = unknown.
    """

    workload: str
    position: int
    reason: Reason | None = None
    starts_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    placements: tuple[Placement, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    holds: tuple[Hold, ...] = ()
    refusals: tuple[Verdict, ...] = ()  # claimants that can never fit on anything ever seen

    def verdict(self, workload: str) -> Verdict | None:
        return next((v for v in (*self.verdicts, *self.refusals) if v.workload == workload), None)
