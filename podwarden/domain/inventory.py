"""What there is: nodes, their GPUs (devices), and who holds what."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

DEVICE_SHARES = 64  # capacity `shares` of every device; a dedicated holder takes all of them
MEMORY_STEP = 128  # MiB; budgets and promises move in these steps

_VENDOR = re.compile(r"^(nvidia\s+)?(geforce\s+)?", re.IGNORECASE)


def short_model(name: str) -> str:
    """`NVIDIA GeForce RTX 3090` -> `RTX 3090`: the name people buy, and the one that is published."""
    return _VENDOR.sub("", name.strip()) or name.strip()


class DeviceHealth(StrEnum):
    OK = "ok"
    LOST = "lost"  # fell off the bus; stays listed until a person removes it
    UNKNOWN = "unknown"  # the driver does not answer, or driver and library differ


@dataclass(frozen=True, slots=True, order=True)
class Device:
    """One GPU. `uuid` (lower case) is its identity; `index` is for display only.

    vram_mib: the driver's total. memory_mib: what may be promised now (total - reserve - outside).
    present False: its node's slice is away (node agent down); it is known from before.
    whole_only True: the cluster cannot share this device (another driver, or a device plugin).
    """

    node: str
    index: int
    uuid: str
    model: str
    vram_mib: int
    memory_mib: int
    health: DeviceHealth = DeviceHealth.OK
    present: bool = True
    whole_only: bool = False
    compute_capability: str = ""  # "8.6"
    driver_version: str = ""
    cuda_version: str = ""
    pci_bus_id: str = ""
    kind: str = "discrete"  # discrete | unified | mig | vgpu
    encoders: int | None = None  # countable encoder sessions, None = no cap
    dra_driver: str = "gpu.podwarden.io"  # who publishes it; "" = classic nvidia.com/gpu
    outside_mib: int = 0  # VRAM held by processes outside the cluster

    @property
    def name(self) -> str:
        """As sentences name it: `n3 RTX 3090`."""
        return f"{self.node} {self.model}"


@dataclass(frozen=True, slots=True)
class Node:
    """A host inside the cluster.

    cpu_milli, memory_mib, slots: allocatable. used_*: requested by every pod bound to it that has
    not ended, over all namespaces. ready_since: when readiness last changed.
    """

    name: str
    cpu_milli: int
    memory_mib: int
    pods: int = 110
    used_cpu_milli: int = 0
    used_memory_mib: int = 0
    used_pods: int = 0
    ready: bool = True
    changed_at: datetime | None = None
    cordoned: bool = False
    agent_away: bool = False  # it had GPUs once, and nobody publishes them now
    server: bool = False  # a K3s server
    address: str = ""
    taints: tuple[
        str, ...
    ] = ()  # NoSchedule/NoExecute taint keys that PodWarden's pods do not tolerate
    labels: tuple[tuple[str, str], ...] = ()
    simulated: bool = False
    devices: tuple[Device, ...] = ()  # ordered by vram_mib, then uuid: the order of the slice

    @property
    def usable(self) -> bool:
        return self.ready and not self.cordoned and not self.taints


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a piece of a device.

    workload: PodWarden's id, "" for foreign work. name: what sentences say. endless: a service (or a
    foreign pod nobody promised an end for). ends_by: latest end, where one is enforced or expected.
    terminating: it was told to go; the device is not free before its claim is released.
    """

    name: str
    workload: str = ""
    namespace: str = ""
    instance: str = ""  # the pod's name, for the expert
    endless: bool = True
    ends_by: datetime | None = None
    expected_end: bool = False  # ends_by is a guess from past runs, not enforced
    priority: int = 0
    preemptible: bool = False
    terminating: bool = False
    since: datetime | None = None
    cpu_milli: int = 0  # requests of the whole instance, freed when it ends; 0 = not known
    memory_mib: int = 0


@dataclass(frozen=True, slots=True)
class Holding:
    """An allocated piece of a device. Dedicated: shares == DEVICE_SHARES."""

    device: str  # uuid
    node: str
    memory_mib: int
    shares: int
    holder: Holder
    encoders: int = 0

    @property
    def dedicated(self) -> bool:
        return self.shares >= DEVICE_SHARES


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a cluster can do for a request (section 4, adopted clusters). `why` says what is missing."""

    dedicated: bool = True
    shared: bool = True
    vram_floor: bool = True
    hold: bool = True
    steer_device: bool = True
    why: tuple[str, ...] = field(default_factory=tuple)
    driver: str = "gpu.podwarden.io"  # whose devices are claimed; "" = classic nvidia.com/gpu
    lan_ports: bool = True  # a LAN port keeps its number; False: the cluster chooses another
