"""What can never fit: judged on every GPU and node ever seen, whoever holds them now and wherever they are."""

from __future__ import annotations

from podwarden.domain.inventory import Capabilities, Device
from podwarden.domain.placement import Claimant
from podwarden.domain.reason import Code, Reason
from podwarden.domain.units import show_gib
from podwarden.scheduling.books import Books, NodeBook
from podwarden.scheduling.feasible import Class
from podwarden.scheduling.need import Need, compute_matches, model_key
from podwarden.scheduling.words import (
    asked_gb,
    beside_words,
    both,
    card,
    cores,
    gpus,
    need_words,
    short,
)


def never_fits(
    books: Books, asked: Class, claimant: Claimant, capabilities: Capabilities
) -> Reason | None:
    """Why the claimant can never start in this cluster; None when some day it can."""
    need = asked.need
    nodes = [node for node in books.nodes if need.allows(node.name)]
    if not nodes:
        return _no_node(books, need, claimant)
    refused = cannot(need, capabilities) or (_no_device(need, nodes) if need.count else None)
    if refused is not None:
        return refused
    return _too_many(asked, nodes) or _too_small(asked, nodes) or _gang(asked, nodes, claimant)


def _no_node(books: Books, need: Need, claimant: Claimant) -> Reason | None:
    if not books.nodes:
        return Reason(
            Code.NO_GPU_HERE if need.count else Code.NO_SUCH_NODE,
            "this cluster has no nodes.",
        )
    if need.nodes is not None and not any(node.name in need.nodes for node in books.nodes):
        if not names_a_node(claimant):
            return None  # where its data lies is gone for now: it waits, and says so
        have = both(node.name for node in books.nodes)
        return Reason(
            Code.NO_SUCH_NODE,
            f"node {both(sorted(need.nodes)) if need.nodes else 'with such a name'} is not known here; there is {have}.",
        )
    return Reason(Code.NO_SUCH_NODE, "every node that it may use is on its `avoid` list.")


def names_a_node(claimant: Claimant) -> bool:
    """Whether the user chose the node, rather than a volume that lies there."""
    return claimant.nodes_why.startswith("node") or not claimant.nodes_why


def cannot(need: Need, capabilities: Capabilities) -> Reason | None:
    """What this cluster never does for anybody."""
    if not need.count:
        return None
    why = f" {' '.join(capabilities.why)}" if capabilities.why else ""
    if need.shared and not capabilities.shared:
        return Reason(
            Code.CLUSTER_CANNOT_SHARE,
            f"this cluster cannot share a GPU.{why}",
            "Ask for a whole GPU.",
        )
    if not need.shared and not capabilities.dedicated:
        return Reason(Code.NO_GPU_HERE, f"this cluster gives no whole GPUs.{why}")
    return None


def _no_device(need: Need, nodes: list[NodeBook]) -> Reason | None:
    devices = [d.device for node in nodes for d in node.devices]
    where = "here" if need.nodes is None else f"on {both(node.name for node in nodes)}"
    if not devices:
        return Reason(Code.NO_GPU_HERE, f"needs {need_words(need)}, and there is no GPU {where}.")
    if need.models:
        known = sorted({d.model for d in devices})
        devices = [d for d in devices if model_key(d.model) in need.models]
        if not devices:
            return Reason(
                Code.NO_SUCH_MODEL,
                f"model {both(need.model_names)}, the GPUs {where} are {both(known)}.",
            )
    if need.compute:
        best = max(devices, key=lambda d: (_capability(d), d.node, d.uuid))
        devices = [d for d in devices if compute_matches(need.compute, d.compute_capability)]
        if not devices:
            has = best.compute_capability or "an unknown one"
            return Reason(
                Code.COMPUTE_TOO_LOW,
                f"compute {short(need.compute)}, the highest compute capability {where} is {has} ({_place(best)}).",
            )
    return _size(need, devices, where) or _encoders(need, devices, where)


def _size(need: Need, devices: list[Device], where: str) -> Reason | None:
    if need.shared:
        devices = [d for d in devices if not d.whole_only]
        if not devices:
            return Reason(
                Code.CLUSTER_CANNOT_SHARE,
                f"none of the GPUs {where} that match can be shared.",
                "Ask for a whole GPU.",
            )
        best = max(devices, key=lambda d: (d.memory_mib + d.outside_mib, d.node, d.uuid))
        most = best.memory_mib + best.outside_mib
        if need.budget_mib <= most:
            return None
        return Reason(
            Code.NO_DEVICE_LARGE_ENOUGH,
            f"vram {asked_gb(need.vram_mib or need.budget_mib)} of a shared GPU, "
            f"the largest budget possible {where} is {show_gib(most)} ({_place(best)}).",
        )
    largest = max(devices, key=lambda d: (d.vram_mib, d.node, d.uuid))
    if need.vram_mib is None or largest.vram_mib >= need.floor_mib:
        return None
    if largest.vram_mib <= 0:
        return Reason(
            Code.NO_DEVICE_LARGE_ENOUGH,
            f"vram {asked_gb(need.vram_mib)}, and this cluster does not say how large its GPUs are.",
            "Ask for a GPU without a size.",
        )
    return Reason(
        Code.NO_DEVICE_LARGE_ENOUGH,
        f"vram {asked_gb(need.vram_mib)}, the largest GPU {where} has {card(largest.vram_mib)} ({_place(largest)}).",
    )


def _encoders(need: Need, devices: list[Device], where: str) -> Reason | None:
    capped = [d.encoders for d in devices if d.encoders is not None]
    if len(capped) < len(devices) or not capped or max(capped) >= need.encoders:
        return None
    return Reason(
        Code.ENCODER_SESSIONS,
        f"needs {need.encoders} encoder sessions, the GPUs {where} have at most {max(capped)}.",
    )


def _too_many(asked: Class, nodes: list[NodeBook]) -> Reason | None:
    need = asked.need
    most, where = 0, ""
    for node in nodes:
        have = _matching(asked, node)
        if have > most:
            most, where = have, node.name
    if most >= need.count:
        return None
    return Reason(
        Code.COUNT_TOO_LARGE,
        f"needs {need_words(need)}; the most on one node that match are {most} ({short(where)}).",
        f"Ask for {gpus(most)}." if most else "",
    )


def _too_small(asked: Class, nodes: list[NodeBook]) -> Reason | None:
    need = asked.need
    able = [node for node in nodes if _matching(asked, node) >= need.count]
    if any(n.cpu >= need.cpu_milli and n.memory >= need.memory_mib for n in able):
        return None
    largest = max(able, key=lambda n: (n.cpu, n.memory, n.name))
    beside = f" beside {gpus(need.count)}" if need.count else ""
    return Reason(
        Code.NODE_TOO_SMALL,
        f"needs {beside_words(need)}{beside}; the largest node is {short(largest.name)} with "
        f"{cores(largest.cpu)} and {show_gib(largest.memory)}.",
    )


def _gang(asked: Class, nodes: list[NodeBook], claimant: Claimant) -> Reason | None:
    if claimant.at_least <= 1:
        return None
    most = 0
    for node in nodes:
        most += _whole_room(asked, node, claimant.at_least)
        if most >= claimant.at_least:
            return None
    return Reason(
        Code.COUNT_TOO_LARGE,
        f"needs {need_words(asked.need, claimant.at_least)}; all nodes together have room for {most} when empty.",
    )


def _whole_room(asked: Class, node: NodeBook, most: int) -> int:
    """Instances that fit on the node when nothing else is there."""
    need = asked.need
    room = min(most, node.pods)
    if need.cpu_milli:
        room = min(room, node.cpu // need.cpu_milli)
    if need.memory_mib:
        room = min(room, node.memory // need.memory_mib)
    if not need.count:
        return max(room, 0)
    each = [_instances(asked, node, position) for position in range(len(node.devices))]
    while room > 0 and sum(min(n, room) for n in each) < need.count * room:
        room -= 1
    return max(room, 0)


def _instances(asked: Class, node: NodeBook, position: int) -> int:
    device, need = node.devices[position], asked.need
    if device.kind not in asked.kinds:
        return 0
    if not need.shared:
        return 1
    room = min((device.device.memory_mib + device.device.outside_mib) // need.budget_mib, 64)
    return min(room, device.encoders // need.encoders) if need.encoders else room


def _matching(asked: Class, node: NodeBook) -> int:
    return sum(device.kind in asked.kinds for device in node.devices)


def _capability(device: Device) -> tuple[int, ...]:
    parts = device.compute_capability.split(".")
    return tuple(int(p) for p in parts) if all(p.isascii() and p.isdigit() for p in parts) else ()


def _place(device: Device) -> str:
    return f"{short(device.node)}, {short(device.model)}"
