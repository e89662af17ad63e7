"""Why one GPU, or one node, does not serve a need now: code and words. Read from the books after the pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from podwarden.domain.inventory import DeviceHealth
from podwarden.domain.reason import Code
from podwarden.domain.units import show_gib
from podwarden.scheduling.books import Charge, DeviceBook, NodeBook
from podwarden.scheduling.feasible import Class, beside
from podwarden.scheduling.need import Need, mismatch
from podwarden.scheduling.reserve import Reservation
from podwarden.scheduling.words import both, card, clock, cores, short

# How near a blocked GPU is to being free, nearest first.
EASE = (
    Code.WAITS_BEHIND, Code.DEVICES_IN_USE, Code.CPU_OR_MEMORY_SHORT, Code.WAITS_FOR_SERVICE, Code.OUTSIDE_USE,
    Code.ENCODER_SESSIONS, Code.DEVICE_UNHEALTHY, Code.NODE_AGENT_AWAY, Code.NODE_NOT_READY,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """About one GPU: never: it can never do; code None: nothing is wrong with it.
    one, many: the words after a GPU's name, and after the number and model of several.
    """

    code: Code | None
    one: str = ""
    many: str = ""
    never: bool = False


FREE = Finding(None, "is free", "free")


def look(
    node: NodeBook, device: DeviceBook, asked: Class, kept: Mapping[str, Reservation], now: datetime
) -> Finding:
    """About the GPU alone; what is beside it is asked by `lacks_beside`. kept: reservations of others by GPU."""
    if device.kind not in asked.kinds:
        return _never(asked.need, device)
    if not node.usable:
        text = node_trouble(node)
        return Finding(Code.NODE_NOT_READY, f"waits: {text}", text)
    if not device.usable:
        return _unusable(device)
    return (
        _held(device, asked.need, now)
        or _encoders(device, asked.need)
        or _kept(kept.get(device.device.uuid), now)
        or FREE
    )


def _encoders(device: DeviceBook, need: Need) -> Finding | None:
    if device.free_encoders >= need.encoders:
        return None
    text = f"{device.free_encoders} encoder sessions free"
    return Finding(Code.ENCODER_SESSIONS, f"has {text}", text)


def _kept(other: Reservation | None, now: datetime) -> Finding | None:
    if other is None:
        return None
    until = f" from {clock(other.start, now)} on" if other.told else ""
    text = f"kept for {short(other.claimant.name)}{until}"
    return Finding(Code.WAITS_BEHIND, f"is {text}", text)


def lacks_beside(node: NodeBook, need: Need) -> Finding | None:
    if beside(node, need):
        return None
    text = f"free, with {left_beside(node)} left beside it"
    return Finding(Code.CPU_OR_MEMORY_SHORT, f"is {text}", text)


def node_trouble(node: NodeBook) -> str:
    """`n3 is not ready`: the first thing that keeps work off a node."""
    name = short(node.name)
    if not node.node.ready:
        return f"{name} is not ready"
    if node.node.cordoned:
        return f"{name} takes no new work (cordoned)"
    return f"{name} keeps work off ({both(node.node.taints)})"


def left_beside(node: NodeBook) -> str:
    if node.free_pods < 1:
        return "no room for another instance"
    memory = show_gib(node.free_memory) if node.free_memory else "0 GiB"
    return f"{cores(node.free_cpu)} and {memory} of memory"


def _never(need: Need, device: DeviceBook) -> Finding:
    code, shown = mismatch(need, device.device), device.device
    assert code is not None  # the kind does not match
    if code is Code.NO_SUCH_MODEL:
        return Finding(code, "is another model", "another model", never=True)
    if code is Code.COMPUTE_TOO_LOW:
        has = shown.compute_capability or "unknown"
        return Finding(
            code, f"has compute capability {has}", f"compute capability {has}", never=True
        )
    if code is Code.CLUSTER_CANNOT_SHARE:
        return Finding(code, "cannot be shared", "which cannot be shared", never=True)
    if code is Code.ENCODER_SESSIONS:
        text = f"at most {shown.encoders} encoder sessions"
        return Finding(code, f"has {text}", text, never=True)
    size = card(shown.vram_mib)
    return Finding(code, f"has {size}: too small", f"{size} each: too small", never=True)


def _unusable(device: DeviceBook) -> Finding:
    shown = device.device
    if shown.health is DeviceHealth.LOST:
        return Finding(Code.DEVICE_UNHEALTHY, "is lost: its host has to be restarted", "lost")
    if shown.health is not DeviceHealth.OK:
        return Finding(
            Code.DEVICE_UNHEALTHY, "does not answer its driver", "which do not answer their driver"
        )
    return Finding(
        Code.NODE_AGENT_AWAY,
        "is not reported: the node agent is away",
        "not reported: the node agent is away",
    )


def _held(device: DeviceBook, need: Need, now: datetime) -> Finding | None:
    """What holders or processes outside leave too little of; None when enough is left."""
    if need.shared:
        if device.free_shares >= 1 and device.free_memory >= need.budget_mib:
            return None
    elif device.whole:
        return None if device.memory >= need.promised_mib else _outside(device)
    if not device.charges or (need.shared and device.memory < need.budget_mib):
        return _outside(device)
    held = f"held by {_holders(device.charges, now)}"
    code = Code.WAITS_FOR_SERVICE if _endless(device, need, now) else Code.DEVICES_IN_USE
    if need.shared and device.free_shares and device.free_memory:
        left = f"{show_gib(device.free_memory)} left"
        return Finding(code, f"has {left}, the rest {held}", f"{left}, the rest {held}")
    if all(charge.holder.terminating for charge in device.charges):
        text = f"being given back by {both(dict.fromkeys(_name(c) for c in device.charges))}"
        return Finding(code, f"is {text}", text)
    return Finding(code, f"is {held}", held)


def _outside(device: DeviceBook) -> Finding:
    used = show_gib(device.device.outside_mib) if device.device.outside_mib else "a part"
    text = f"{show_gib(device.free_memory) if device.free_memory else '0 GiB'} free: {used} used outside PodWarden"
    return Finding(Code.OUTSIDE_USE, f"has {text}", text)


def _endless(device: DeviceBook, need: Need, now: datetime) -> bool:
    """Whether something without an end is in the way even when all else has ended."""
    endless = [c for c in device.charges if c.end(now) is None]
    if not need.shared:
        return bool(endless)
    parts = [p for c in endless for p in c.parts if p.device == device.device.uuid]
    memory = device.memory - sum(p.memory_mib for p in parts)
    return memory < need.budget_mib or sum(p.shares for p in parts) >= 64


def _holders(charges: list[Charge], now: datetime) -> str:
    named = dict.fromkeys(_name(charge) for charge in charges)
    if len(named) > 1:
        return both(named)
    return f"{_name(charges[0])}{_until(charges[0], now)}"


def _name(charge: Charge) -> str:
    holder = charge.holder
    name = short(holder.name) or "somebody"
    whole = holder.workload or not holder.namespace or "/" in holder.name
    return name if whole else f"{short(holder.namespace)}/{name}"


def _until(charge: Charge, now: datetime) -> str:
    holder = charge.holder
    if holder.terminating:
        return ", which is being stopped"
    if holder.ends_by is not None:
        if holder.ends_by <= now:
            return ", which should end at any moment"
        return (
            f", {'probably ' if holder.expected_end else ''}until {clock(holder.ends_by, now)}"
            + ("" if holder.expected_end else " at the latest")
        )
    if not holder.endless:
        return ", a job without a time limit"
    return ", a service without an end" if holder.workload else ", which PodWarden did not start"
