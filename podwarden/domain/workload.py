"""What a user deploys: the spec with its revisions, and the state it is in."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum

from podwarden.domain.placement import Placement
from podwarden.domain.reason import Reason
from podwarden.domain.request import Request


class Kind(StrEnum):
    SERVICE = "service"
    JOB = "job"


class State(StrEnum):
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    UNHEALTHY = "unhealthy"
    UPDATING = "updating"
    STOPPING = "stopping"
    STOPPED = "stopped"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Priority(IntEnum):
    IDLE = 0
    LOW = 250
    NORMAL = 500
    HIGH = 750
    CRITICAL = 1000

    @property
    def word(self) -> str:
        return self.name.lower()


class Expose(StrEnum):
    CLUSTER = "cluster"
    LAN = "lan"


class VolumeKind(StrEnum):
    STORAGE = "storage"
    DISK = "disk"
    CACHE = "cache"
    SCRATCH = "scratch"


class Update(StrEnum):
    AUTO = "auto"
    SURGE = "surge"
    RECREATE = "recreate"


@dataclass(frozen=True, slots=True)
class Port:
    name: str
    port: int
    expose: Expose = Expose.CLUSTER
    protocol: str = "TCP"


@dataclass(frozen=True, slots=True)
class Volume:
    name: str
    path: str
    kind: VolumeKind
    size_mib: int | None = None
    storage: str = ""
    subpath: str = ""
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """Exactly one of http_path, command or neither (a TCP connect) on `port`."""

    port: int | None = None
    http_path: str = ""
    command: tuple[str, ...] = ()
    startup_s: int = 600
    period_s: int = 10


@dataclass(frozen=True, slots=True)
class JobSpec:
    """array: first and last index, inclusive. parallelism None = as many as fit."""

    array: tuple[int, int] | None = None
    parallelism: int | None = None
    gang: bool = False
    retries: int = 2
    time_limit_s: int | None = None

    @property
    def tasks(self) -> int:
        return 1 if self.array is None else self.array[1] - self.array[0] + 1


@dataclass(frozen=True, slots=True)
class Spec:
    """One revision of a workload file, validated and complete: every default is filled in."""

    name: str
    kind: Kind
    image: str
    cluster: str = ""
    image_pull_secret: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    gpu: Request | None = None
    cpu_milli: int = 1000
    memory_mib: int = 1024
    replicas: int = 1
    min_replicas: int = 1
    env: tuple[tuple[str, str], ...] = ()
    secrets: tuple[tuple[str, str], ...] = ()  # variable -> name of the secret
    ports: tuple[Port, ...] = ()
    volumes: tuple[Volume, ...] = ()
    devices: tuple[str, ...] = ()
    host_network: bool = False  # its ports are the node's own
    health: HealthCheck | None = None
    shm_mib: int | None = None
    priority: Priority = Priority.NORMAL
    preemptible: bool = False
    hours: str = ""  # "22:00-07:00"
    node: str = ""
    avoid: tuple[str, ...] = ()
    update: Update = Update.AUTO
    surge_wait_s: int = 600
    idle_stop_s: int | None = None
    notify: tuple[str, ...] = ()
    job: JobSpec | None = None
    template: str = ""  # the catalogue entry it came from, for shared history
    annotations: tuple[tuple[str, str], ...] = ()  # only with prefix simulator.podwarden.io/

    @property
    def endless(self) -> bool:
        return self.kind is Kind.SERVICE

    @property
    def shared_memory_mib(self) -> int:
        """Size of /dev/shm: as asked, else 2 GiB a GPU, 0 = the container's own default."""
        if self.shm_mib is not None:
            return self.shm_mib
        return 2048 * self.gpu.count if self.gpu is not None else 0

    @property
    def instance_memory_mib(self) -> int:
        """What one instance asks of its node: shared memory is memory."""
        return self.memory_mib + self.shared_memory_mib


ENDED = frozenset({State.STOPPED, State.SUCCEEDED, State.FAILED})
HOLDING = frozenset(
    {State.STARTING, State.RUNNING, State.UNHEALTHY, State.UPDATING, State.STOPPING}
)


class Desire(StrEnum):
    """What its owner last asked for; the state follows."""

    RUN = "run"
    STOP = "stop"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Workload:
    """A row. `version` rises with each change (optimistic guard); `queued_at` orders the queue;
    `placement` is set from admission on; `applied_revision` is what the cluster was last given.
    """

    id: str
    name: str
    owner: str
    cluster: str
    spec: Spec
    revision: int
    state: State
    desire: Desire
    created_at: datetime
    changed_at: datetime
    queued_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    placement: Placement | None = None
    reason: Reason | None = None
    applied_revision: int = 0
    keep_volumes: bool = True
    version: int = 1
    counts: tuple[tuple[str, int], ...] = ()  # arrays: done, running, failed, total
    nodes: tuple[str, ...] = ()  # where it runs now
    devices: tuple[str, ...] = ()  # uuids it holds now
    facts: tuple[tuple[str, str], ...] = field(default_factory=tuple)

    @property
    def kind(self) -> Kind:
        return self.spec.kind

    def count(self, key: str) -> int:
        return dict(self.counts).get(key, 0)


@dataclass(frozen=True, slots=True)
class Revision:
    workload: str
    number: int
    spec: Spec
    made_at: datetime
    made_by: str
    note: str = ""


TRANSITIONS: dict[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.STARTING, State.STOPPED, State.STOPPING, State.FAILED}),
    State.STARTING: frozenset(
        {
            State.RUNNING,
            State.QUEUED,
            State.UNHEALTHY,
            State.STOPPING,
            State.SUCCEEDED,
            State.FAILED,
        }
    ),
    State.RUNNING: frozenset(
        {
            State.UNHEALTHY,
            State.UPDATING,
            State.STOPPING,
            State.SUCCEEDED,
            State.FAILED,
            State.STARTING,
        }
    ),
    State.UNHEALTHY: frozenset(
        {
            State.RUNNING,
            State.UPDATING,
            State.STOPPING,
            State.FAILED,
            State.STARTING,
            State.SUCCEEDED,
        }
    ),
    State.UPDATING: frozenset(
        {State.RUNNING, State.UNHEALTHY, State.STOPPING, State.FAILED, State.STARTING, State.QUEUED}
    ),
    State.STOPPING: frozenset({State.STOPPED, State.FAILED}),
    State.STOPPED: frozenset({State.QUEUED}),
    State.SUCCEEDED: frozenset({State.QUEUED}),
    State.FAILED: frozenset({State.QUEUED, State.STOPPED, State.STOPPING}),
}
