"""The JSON of API v1: what is accepted and what is answered. Stable; the nouns themselves are in domain.

Times are ISO 8601 in UTC, sizes whole MiB, durations seconds. A field that is not known is null, never left out.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

MAX_FILE = 512 * 1024  # characters of a workload file


def _printable(value: str) -> str:
    if "\x00" in value:
        raise ValueError("text without NUL characters")
    return value


Line = Annotated[str, Field(max_length=1000), AfterValidator(_printable)]
Word = Annotated[str, Field(max_length=253), AfterValidator(_printable)]


class Given(BaseModel):
    """A body: unknown fields are refused, so that a typing error never passes for a default."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)


class Shape(BaseModel):
    model_config = ConfigDict(frozen=True)


# ---- errors


class ProblemItem(Shape):
    field: str
    value: str
    fix: str
    line: int | None = None


class ProblemDetails(Shape):
    """RFC 9457. `code` is stable; `problems` lists each faulty field."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    problems: list[ProblemItem] = []


# ---- access


class Credentials(Given):
    name: Word
    password: SecretStr = Field(max_length=1000)


class TokenShape(Shape):
    id: str
    user: str
    label: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    session: bool


class NewToken(TokenShape):
    """`token` is shown this once and never again."""

    token: str


class Session(Shape):
    user: str
    role: str
    token: str
    expires_at: datetime | None


class Me(Shape):
    user: str
    role: str
    token: TokenShape


class TokenOrder(Given):
    label: Word = ""
    days: int | None = Field(default=None, ge=1, le=3650, description="null: it does not expire")


class UserShape(Shape):
    name: str
    role: str
    created_at: datetime
    disabled: bool


class UserOrder(Given):
    name: Word
    role: Literal["admin", "member", "viewer"] = "member"
    password: SecretStr = Field(max_length=1000)


class PasswordOrder(Given):
    password: SecretStr = Field(max_length=1000)


# ---- clusters, nodes, GPUs


class ClusterOrder(Given):
    """Take over a cluster that runs already."""

    name: Word
    kubeconfig: SecretStr = Field(max_length=MAX_FILE)
    simulated: bool = False


class ClusterShape(Shape):
    name: str
    server: str
    version: str
    added_at: datetime
    simulated: bool
    notes: list[str]
    nodes: int
    gpus: int
    reachable: bool
    trouble: str


class AdoptedShape(ClusterShape):
    taken_over: list[str]


class Held(Shape):
    """workload: its id, null for work that is not PodWarden's."""

    name: str
    workload: str | None
    memory_mib: int
    dedicated: bool
    ends_by: datetime | None
    terminating: bool


class GpuShape(Shape):
    cluster: str
    node: str
    index: int
    uuid: str
    model: str
    vram_mib: int
    free_mib: int
    health: str
    present: bool
    outside_mib: int
    held_by: list[Held]
    reserved_for: str | None
    simulated: bool


class NodeShape(Shape):
    cluster: str
    name: str
    address: str
    server: bool
    ready: bool
    cordoned: bool
    agent_away: bool
    cpu_milli: int
    used_cpu_milli: int
    memory_mib: int
    used_memory_mib: int
    gpus: int
    simulated: bool


# ---- workloads


class NoteShape(Shape):
    node: str
    device: str
    code: str
    text: str


class ReasonShape(Shape):
    code: str
    text: str
    remedy: str
    notes: list[NoteShape]
    ahead: list[str]
    lines: list[str] = Field(default_factory=list, description="the last of its log, as printed")


class SlotShape(Shape):
    node: str
    devices: list[str]


class DeviceShape(Shape):
    uuid: str
    node: str
    index: int | None
    model: str
    vram_mib: int | None


class PlacementShape(Shape):
    slots: list[SlotShape]
    devices: list[DeviceShape]


class Times(Shape):
    created_at: datetime
    changed_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None


class WorkloadShape(Shape):
    """position: place in line, 1 = next, null = not waiting. nodes, devices: where it runs now.

    spec: the canonical workload file of the current revision.
    """

    id: str
    name: str
    kind: str
    state: str
    desire: str
    owner: str
    cluster: str
    priority: str
    revision: int
    template: str
    spec: dict[str, Any]
    reason: ReasonShape | None
    position: int | None
    starts_at: datetime | None
    placement: PlacementShape | None
    nodes: list[str]
    devices: list[DeviceShape]
    counts: dict[str, int]
    urls: list[str]
    times: Times


class WorkloadPage(Shape):
    """next: give it as `after` for the next page; null on the last."""

    items: list[WorkloadShape]
    next: str | None


class WorkloadSource(Given):
    """Either `template` with `parameters`, or the text of a workload `file`; the rest overrides it."""

    template: Word | None = None
    file: Annotated[str, Field(max_length=MAX_FILE)] | None = None
    source: Word = Field(default="file", description="how messages name the file")
    parameters: dict[Word, Line] = Field(default_factory=dict, max_length=200)
    name: Word = ""
    cluster: Word = ""
    gpus: Word = ""
    vram: Word = ""
    sharing: Literal["", "shared", "dedicated"] = ""
    model: Line = ""
    priority: Word = ""


class Deploy(WorkloadSource):
    dry_run: bool = False


class UpdateOrder(WorkloadSource):
    recreate: bool = False
    dry_run: bool = False


class PlanFile(Given):
    source: Word
    text: Annotated[str, Field(max_length=MAX_FILE)]


class PlanOrder(Given):
    files: list[PlanFile] = Field(min_length=1, max_length=50)


class Preview(Shape):
    """What would happen now. position 0: it starts at once. reason: why not, when it does not."""

    name: str
    starts_now: bool
    position: int | None
    starts_at: datetime | None
    reason: ReasonShape | None
    refused: bool
    placement: PlacementShape | None
    spec: dict[str, Any]


class PriorityOrder(Given):
    priority: Literal["critical", "high", "normal", "low", "idle"]


class RollbackOrder(Given):
    revision: int | None = Field(default=None, ge=1, description="null: the one before")
    recreate: bool = False


class EventShape(Shape):
    id: int
    at: datetime
    subject: str
    name: str
    kind: str
    code: str
    text: str
    actor: str


class EventPage(Shape):
    items: list[EventShape]
    next: int | None


class RevisionShape(Shape):
    number: int
    made_at: datetime
    made_by: str
    note: str
    spec: dict[str, Any]


class ParameterShape(Shape):
    """kind: string, int, size, vram, cpu, duration, choice, range, secret or bool."""

    name: str
    kind: str
    title: str
    help: str
    default: str
    required: bool
    choices: list[str]


class TemplateShape(Shape):
    """document: with placeholders. spec: the workload it makes when nothing is set, null where
    something must be.
    """

    name: str
    title: str
    purpose: str
    homepage: str
    notes: str
    parameters: list[ParameterShape]
    document: dict[str, Any]
    spec: dict[str, Any] | None


class StatusShape(Shape):
    version: str
    leading: bool
    leader: str
    clusters: list[ClusterShape]
    sentences: list[str]
