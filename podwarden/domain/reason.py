"""Why something waits, is refused, starts slowly or failed: one list of codes, printed alike everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    # waiting
    DEVICES_IN_USE = "DEVICES_IN_USE"
    WAITS_BEHIND = "WAITS_BEHIND"
    WAITS_FOR_SERVICE = "WAITS_FOR_SERVICE"
    NODE_NOT_READY = "NODE_NOT_READY"
    NODE_AGENT_AWAY = "NODE_AGENT_AWAY"
    DEVICE_UNHEALTHY = "DEVICE_UNHEALTHY"
    OUTSIDE_USE = "OUTSIDE_USE"
    CPU_OR_MEMORY_SHORT = "CPU_OR_MEMORY_SHORT"
    STORAGE_ON_NODE = "STORAGE_ON_NODE"
    VOLUME_ON_LOST_NODE = "VOLUME_ON_LOST_NODE"
    OUTSIDE_HOURS = "OUTSIDE_HOURS"
    QUOTA = "QUOTA"
    CLUSTER_CANNOT_SHARE = "CLUSTER_CANNOT_SHARE"
    CLUSTER_UNREACHABLE = "CLUSTER_UNREACHABLE"
    ENCODER_SESSIONS = "ENCODER_SESSIONS"
    # refused
    NO_DEVICE_LARGE_ENOUGH = "NO_DEVICE_LARGE_ENOUGH"
    NO_SUCH_MODEL = "NO_SUCH_MODEL"
    COUNT_TOO_LARGE = "COUNT_TOO_LARGE"
    NO_GPU_HERE = "NO_GPU_HERE"
    NODE_TOO_SMALL = "NODE_TOO_SMALL"
    NO_SUCH_NODE = "NO_SUCH_NODE"
    COMPUTE_TOO_LOW = "COMPUTE_TOO_LOW"
    # starting
    PULLING_IMAGE = "PULLING_IMAGE"
    STARTING = "STARTING"
    UNSCHEDULABLE = "UNSCHEDULABLE"
    WAITS_FOR_RELEASE = "WAITS_FOR_RELEASE"
    # failed or unhealthy
    IMAGE_PULL_FAILED = "IMAGE_PULL_FAILED"
    CRASH_LOOPING = "CRASH_LOOPING"
    PROGRAM_FAILED = "PROGRAM_FAILED"
    TIME_LIMIT = "TIME_LIMIT"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    OUT_OF_VRAM = "OUT_OF_VRAM"
    PROBE_FAILING = "PROBE_FAILING"
    DISK_PRESSURE = "DISK_PRESSURE"
    SHM_TOO_SMALL = "SHM_TOO_SMALL"
    NO_GPU_VISIBLE = "NO_GPU_VISIBLE"
    NODE_LOST = "NODE_LOST"
    OVER_VRAM_BUDGET = "OVER_VRAM_BUDGET"
    REFUSED_BY_CLUSTER = "REFUSED_BY_CLUSTER"
    CHANGED_OUTSIDE = "CHANGED_OUTSIDE"


@dataclass(frozen=True, slots=True)
class Note:
    """The verdict on one node, or on one GPU of it (`device` is its uuid, else "")."""

    node: str
    device: str
    code: Code
    text: str  # "n3 RTX 3090 is held by vllm, a service without an end"


@dataclass(frozen=True, slots=True)
class Reason:
    """code: stable. text: one or two sentences with numbers. notes: per node and GPU, in fixed order.
    remedy: the smallest change that would help, or "". ahead: names of workloads in front, nearest last.
    lines: the last of its log, as they were printed, control characters included.
    """

    code: Code
    text: str
    remedy: str = ""
    notes: tuple[Note, ...] = ()
    ahead: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        return f"{self.code}: {self.text}" + (f" {self.remedy}" if self.remedy else "")
