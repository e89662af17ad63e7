"""Which GPUs of a node would do right now. One question, asked by everything: plan, reservation, remedy."""

from __future__ import annotations

from dataclasses import dataclass, field

from podwarden.domain.inventory import DEVICE_SHARES
from podwarden.scheduling.books import Books, DeviceBook, NodeBook
from podwarden.scheduling.need import Need, mismatch


@dataclass(slots=True)
class Cap:
    """What a reservation leaves of a node at its start: whoever may still run then takes from this.

    devices: position -> [shares, memory, encoders] left then; other GPUs of the node are not touched.
    """

    cpu_milli: int
    memory_mib: int
    pods: int
    devices: dict[int, list[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Class:
    """A need against the GPUs of this pass. kinds: which kinds of GPU match the plain request.
    pool: ids of what it could ever use: GPUs, or nodes (negative) when it asks for none.
    """

    need: Need
    kinds: frozenset[int]
    pool: frozenset[int]


def class_of(books: Books, need: Need) -> Class:
    if not need.count:
        pool = frozenset(-1 - node.index for node in books.nodes if need.allows(node.name))
        return Class(need, frozenset(), pool)
    kinds = frozenset(i for i, device in enumerate(books.kinds) if mismatch(need, device) is None)
    pool = frozenset(
        device.id
        for node in books.nodes
        if need.allows(node.name)
        for device in node.devices
        if device.kind in kinds
    )
    return Class(need, kinds, pool)


def choose(node: NodeBook, asked: Class, caps: tuple[Cap, ...] = ()) -> tuple[int, ...] | None:
    """Positions of the GPUs that one instance would get on this node, smallest sufficient first
    (shared: a started GPU first, the fullest that still fits); () without GPU; None when it does not fit.
    """
    need = asked.need
    if not node.usable or not need.allows(node.name) or not beside(node, need, caps):
        return None
    if not need.count:
        return ()
    if need.count > len(node.devices):
        return None
    fitting = [
        d
        for d in node.devices
        if d.kind in asked.kinds and device_fits(d, need) and _under(d, need, caps)
    ]
    if len(fitting) < need.count:
        return None
    if need.shared:
        fitting.sort(key=lambda d: (d.whole, d.free_memory, d.position))
    return tuple(sorted(d.position for d in fitting[: need.count]))


def beside(node: NodeBook, need: Need, caps: tuple[Cap, ...] = ()) -> bool:
    """CPU, memory and a pod slot for one more instance."""
    return (
        node.free_cpu >= need.cpu_milli
        and node.free_memory >= need.memory_mib
        and node.free_pods >= 1
        and all(
            cap.cpu_milli >= need.cpu_milli and cap.memory_mib >= need.memory_mib and cap.pods >= 1
            for cap in caps
        )
    )


def device_fits(device: DeviceBook, need: Need) -> bool:
    """Whether a GPU of a matching kind is free enough now; its node is not looked at."""
    if not device.usable or device.free_encoders < need.encoders:
        return False
    if need.shared:
        return device.free_shares >= 1 and device.free_memory >= need.budget_mib
    return device.whole and device.memory >= need.promised_mib


def _under(device: DeviceBook, need: Need, caps: tuple[Cap, ...]) -> bool:
    shares, memory = (1, need.budget_mib) if need.shared else (DEVICE_SHARES, 0)
    for cap in caps:
        left = cap.devices.get(device.position)
        if left is not None and not (
            left[0] >= shares and left[1] >= memory and left[2] >= need.encoders
        ):
            return False
    return True
