"""What a cluster shows at one moment, in PodWarden's words. Made by kube, read by control."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from podwarden.domain.inventory import Capabilities, Holding, Node
from podwarden.domain.placement import ForeignDemand


@dataclass(frozen=True, slots=True)
class Instance:
    """One running copy of a workload (a pod).

    phase: pending | running | succeeded | failed. gated: waits for PodWarden to open its gate (arrays).
    allocated: its claims are allocated (or it has none and is bound). reason/message: the cluster's own
    words for why it is not running. user_failure: it ended by the program's own fault, not the node's.
    """

    workload: str
    name: str
    uid: str
    revision: int
    phase: str
    node: str = ""
    ready: bool = False
    gated: bool = False
    allocated: bool = False
    terminating: bool = False
    index: int | None = None
    restarts: int = 0
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    unschedulable_since: datetime | None = None
    created_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    devices: tuple[str, ...] = ()
    user_failure: bool = False


@dataclass(frozen=True, slots=True)
class LastWords:
    """What one copy printed last (lines, oldest first), and what the cluster said of it: (reason, message), oldest first."""

    lines: tuple[str, ...] = ()
    events: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class LanPort:
    """A port of a workload (`port`, as it has it) that answers at host:number on the local network."""

    port: int
    protocol: str
    host: str
    number: int


@dataclass(frozen=True, slots=True)
class Presence:
    """A workload as the cluster carries it: which objects exist and what they say.

    desired: replicas or parallelism in the cluster. suspended: a job held back. succeeded/failed: counts
    of a job's tasks; complete/failed_why: the job's final word. edited: fields changed behind PodWarden's back.
    missing: (kind, name) of objects that belong to it and are not there (any more).
    """

    workload: str
    name: str
    revision: int
    objects: tuple[tuple[str, str], ...] = ()  # (kind, name)
    desired: int = 0
    suspended: bool = False
    succeeded: int = 0
    failed: int = 0
    complete: bool = False
    failed_why: str = ""
    edited: str = ""
    missing: tuple[tuple[str, str], ...] = ()
    address: str = ""
    lan: tuple[LanPort, ...] = ()
    generation: int = 0
    observed_generation: int = 0
    updated_ready: int = 0
    deleting: bool = False


@dataclass(frozen=True, slots=True)
class Observation:
    cluster: str
    taken_at: datetime
    revision: int  # rises with every change seen; equal = nothing changed
    complete: bool = True
    reachable: bool = True
    trouble: str = ""  # one sentence when the cluster does not answer as it should
    nodes: tuple[Node, ...] = ()
    holdings: tuple[Holding, ...] = ()
    foreign: tuple[ForeignDemand, ...] = ()
    capabilities: Capabilities = field(default_factory=Capabilities)
    instances: Mapping[str, tuple[Instance, ...]] = field(default_factory=dict)  # by workload id
    presences: Mapping[str, Presence] = field(default_factory=dict)
    holds: tuple[
        tuple[str, str], ...
    ] = ()  # (device uuid, workload id) of hold rules in the cluster
    volume_nodes: Mapping[str, str] = field(
        default_factory=dict
    )  # "<workload id>/<volume>" -> node
    lan_taken: Mapping[tuple[str, int], str] = field(
        default_factory=dict
    )  # (protocol, port) on the nodes' addresses -> who has it, of work that is not PodWarden's
