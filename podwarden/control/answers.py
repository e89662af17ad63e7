"""What use cases answer. The JSON of it is the API's business."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from podwarden.domain.cluster import Cluster
from podwarden.domain.inventory import Device, Holding
from podwarden.domain.placement import Placement, Verdict
from podwarden.domain.reason import Reason
from podwarden.domain.storage import Storage
from podwarden.domain.workload import Workload


@dataclass(frozen=True, slots=True)
class Made:
    """A secret that PodWarden made for a workload, by its template's parameter. value: shown this once."""

    name: str
    parameter: str
    title: str
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Submitted:
    """refusal set: nothing was stored. workload None: a dry run."""

    workload: Workload | None = None
    verdict: Verdict | None = None
    placement: Placement | None = None
    refusal: Reason | None = None
    made: tuple[Made, ...] = ()


@dataclass(frozen=True, slots=True)
class Chance:
    """placement: where it would start. None: it would not, and why."""

    placement: Placement | None
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class Fit:
    """What a cluster says to one spec: now, and if nothing ran there. never: on nothing that was ever seen."""

    name: str
    cluster: str
    now: Chance
    empty: Chance
    never: bool = False


@dataclass(frozen=True, slots=True)
class Updated:
    """how: surge | recreate | replace | nothing. text: the sentence said before anything changes."""

    workload: Workload
    how: str
    text: str
    made: tuple[Made, ...] = ()


@dataclass(frozen=True, slots=True)
class Queued:
    workload: Workload
    verdict: Verdict | None


@dataclass(frozen=True, slots=True)
class Gpu:
    """reserved_for: the name of the workload that this free GPU is kept for, or ""."""

    cluster: str
    device: Device
    holdings: tuple[Holding, ...] = ()
    reserved_for: str = ""
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class ClusterView:
    cluster: Cluster
    nodes: int = 0
    gpus: int = 0
    reachable: bool = True
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Adoption:
    """taken_over: names of the workloads an earlier PodWarden had left there."""

    cluster: Cluster
    taken_over: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StorageView:
    """used_by: names of the workloads that refer to it."""

    storage: Storage
    used_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SecretView:
    """What may be shown of a secret. registry: the host that it is a login of, "" for any other value."""

    name: str
    owner: str
    changed_at: datetime
    registry: str = ""
    used_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Status:
    """leading: this process decides. sentences: what each loop last said or complained of."""

    leading: bool
    leader: str
    clusters: tuple[ClusterView, ...] = ()
    sentences: tuple[str, ...] = ()
