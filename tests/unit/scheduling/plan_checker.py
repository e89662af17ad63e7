"""An independent judge of plans. It shares no code with podwarden.scheduling: only nouns, and arithmetic of its own.

`faults` lists, in words, every rule that a plan breaks.
"""

from __future__ import annotations

import re
from collections import Counter

from podwarden.domain.placement import Slot

SHARES = 64


def floor_of(mib: int) -> int:
    return int(mib * 0.935)


def promised_of(mib: int) -> int:
    floor = floor_of(mib)
    reserve = max(-(-floor * 3 // 100), 256)
    return (floor - reserve) // 128 * 128


def short_name(name: str) -> str:
    return re.sub(r"^(nvidia )?(geforce )?", "", name.strip().lower())


def version(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


def compute_ok(wanted: str, have: str) -> bool:
    if not have:
        return False
    operator, digits = re.fullmatch(r"([<>=]*)\s*(\S+)", wanted).groups()
    a, b = version(have), version(digits)
    return {">=": a >= b, "<=": a <= b, ">": a > b, "<": a < b}.get(operator, a == b)


def step(mib: int) -> int:
    return -(-max(mib, 1) // 128) * 128


class Ledger:
    """What is taken of each GPU and node."""

    def __init__(self, snapshot):
        self.devices = {d.uuid: d for n in snapshot.nodes for d in n.devices}
        self.home = {d.uuid: n.name for n in snapshot.nodes for d in n.devices}
        self.nodes = {n.name: n for n in snapshot.nodes}
        self.shares, self.memory, self.encoders = Counter(), Counter(), Counter()
        self.cpu = Counter({n.name: n.used_cpu_milli for n in snapshot.nodes})
        self.ram = Counter({n.name: n.used_memory_mib for n in snapshot.nodes})
        self.pods = Counter({n.name: n.used_pods for n in snapshot.nodes})
        for held in snapshot.holdings:
            self.shares[held.device] += held.shares
            self.memory[held.device] += held.memory_mib
            self.encoders[held.device] += held.encoders
        for entry in snapshot.reserved:
            for uuid in entry.devices:
                self.shares[uuid] += entry.shares
                self.memory[uuid] += entry.memory_mib
                self.encoders[uuid] += entry.encoders
            self.cpu[entry.node] += entry.cpu_milli
            self.ram[entry.node] += entry.instance_memory_mib
            self.pods[entry.node] += 1

    def objections(self, claimant, slot) -> list[str]:
        """Why one more instance may not go there."""
        found, node = [], self.nodes.get(slot.node)
        if node is None:
            return [f"{claimant.name}: node {slot.node} does not exist"]
        if not node.ready or node.cordoned or node.taints:
            found.append(f"{claimant.name}: {slot.node} is not usable")
        if claimant.nodes is not None and slot.node not in claimant.nodes:
            found.append(f"{claimant.name}: {slot.node} is not allowed")
        if slot.node in claimant.avoid:
            found.append(f"{claimant.name}: {slot.node} is to be avoided")
        if self.cpu[slot.node] + claimant.cpu_milli > node.cpu_milli:
            found.append(f"{claimant.name}: no CPU on {slot.node}")
        if self.ram[slot.node] + claimant.memory_mib > node.memory_mib:
            found.append(f"{claimant.name}: no memory on {slot.node}")
        if self.pods[slot.node] + 1 > node.pods:
            found.append(f"{claimant.name}: no pod slot on {slot.node}")
        want = claimant.request.count if claimant.request else 0
        if len(set(slot.devices)) != want or len(slot.devices) != want:
            found.append(f"{claimant.name}: {want} different GPUs wanted, got {slot.devices}")
        for uuid in slot.devices:
            found += [
                f"{claimant.name}: {uuid} {why}" for why in self._device(claimant, slot.node, uuid)
            ]
        return found

    def _device(self, claimant, node, uuid) -> list[str]:
        device, request = self.devices.get(uuid), claimant.request
        if device is None or self.home[uuid] != node:
            return [f"is not on {node}"]
        found = []
        if device.health != "ok" or not device.present:
            found.append("is not healthy and present")
        if request.model and short_name(device.model) not in {short_name(m) for m in request.model}:
            found.append("is another model")
        if request.compute and not compute_ok(request.compute, device.compute_capability):
            found.append("has the wrong compute capability")
        if (
            device.encoders is not None
            and self.encoders[uuid] + request.encoder_sessions > device.encoders
        ):
            found.append("has too few encoder sessions")
        if request.sharing == "shared":
            if device.whole_only:
                found.append("cannot be shared")
            if self.shares[uuid] + 1 > SHARES:
                found.append("is held whole")
            if self.memory[uuid] + step(request.vram_mib or 0) > device.memory_mib:
                found.append("has too little memory left")
            return found
        asked = request.vram_mib or 0
        if self.shares[uuid]:
            found.append("is not free")
        if device.vram_mib < floor_of(asked):
            found.append("is too small")
        if device.memory_mib < (promised_of(asked) if asked else 0):
            found.append("is used outside")
        return found

    def take(self, claimant, slot) -> None:
        shared = claimant.request is not None and claimant.request.sharing == "shared"
        for uuid in slot.devices:
            self.shares[uuid] += 1 if shared else SHARES
            self.memory[uuid] += step(claimant.request.vram_mib or 0) if shared else 0
            self.encoders[uuid] += claimant.request.encoder_sessions
        self.cpu[slot.node] += claimant.cpu_milli
        self.ram[slot.node] += claimant.memory_mib
        self.pods[slot.node] += 1

    def fits_now(self, claimant) -> bool:
        """Whether one instance fits somewhere, by trying every node and every GPU on it."""
        want = claimant.request.count if claimant.request else 0
        for name in self.nodes:
            alone = [
                uuid
                for uuid, home in self.home.items()
                if home == name and want and not self._device(claimant, name, uuid)
            ]
            if len(alone) >= want and not self.objections(
                claimant, Slot(name, tuple(alone[:want]))
            ):
                return True
        return False


def faults(snapshot, now, plan) -> list[str]:
    found: list[str] = []
    by_id = {c.workload: c for c in snapshot.claimants}
    told = Counter(v.workload for v in (*plan.verdicts, *plan.refusals))
    if told != Counter(list(by_id)):
        found.append(f"each claimant exactly once: {told}")
    ledger = Ledger(snapshot)
    for placement in plan.placements:
        claimant = by_id[placement.workload]
        found += _placement(snapshot, claimant, placement)
        for slot in placement.slots:
            found += ledger.objections(claimant, slot)
            ledger.take(claimant, slot)
    waiting = [v for v in plan.verdicts if v.position]
    if [v.position for v in waiting] != list(range(1, len(waiting) + 1)):
        found.append("positions")
    found += [f"{v.workload}: no reason" for v in waiting if not v.reason or not v.reason.text]
    found += [f"{v.workload}: long text" for v in waiting if len(v.reason.text) > 450]
    for hold in plan.holds:
        device = ledger.devices[hold.device]
        node = ledger.nodes[hold.node]
        usable = device.health == "ok" and device.present and node.ready and not node.cordoned
        if ledger.shares[hold.device] or not usable:
            found.append(f"hold on {hold.device}, which is not free")
        if not any(v.workload == hold.workload for v in waiting):
            found.append(f"hold for {hold.workload}, which does not wait")
    found += _order(snapshot, plan, ledger)
    return found


def _placement(snapshot, claimant, placement) -> list[str]:
    found, name = [], claimant.name
    if claimant.displaced or not claimant.open_hours or claimant.quota:
        found.append(f"{name} must not be admitted")
    if not claimant.at_least <= len(placement.slots) <= max(claimant.slots, claimant.at_least):
        found.append(f"{name}: {len(placement.slots)} slots")
    if not snapshot.complete or not snapshot.reachable:
        found.append(f"{name} admitted blindly")
    nodes, ranking = list(dict.fromkeys(s.node for s in placement.slots)), placement.ranking
    if list(ranking[: len(nodes)]) != nodes[:20] or len(ranking) > 20:
        found.append(f"{name}: ranking {ranking}")
    if len(set(ranking)) != len(ranking):
        found.append(f"{name}: ranking repeats")
    if list(placement.bands) != sorted(set(placement.bands)) or len(placement.bands) > 7:
        found.append(f"{name}: bands {placement.bands}")
    return found


def _order(snapshot, plan, ledger) -> list[str]:
    """Whoever waits and could start on what is left over must be kept back by something ahead of it."""
    found = []
    if not snapshot.complete or not snapshot.reachable:
        return found
    rank = {
        c.workload: (not c.displaced, -c.priority, c.queued_at, c.workload)
        for c in snapshot.claimants
    }
    by_id = {c.workload: c for c in snapshot.claimants}
    order = [v.workload for v in plan.verdicts]
    if order != sorted(order, key=rank.__getitem__):
        found.append("verdicts are not in queue order")
    heads = [v for v in plan.verdicts if v.position and not _held_back(by_id[v.workload], snapshot)]
    if heads and not snapshot.foreign and not any(c.displaced for c in snapshot.claimants):
        first = by_id[heads[0].workload]
        if first.at_least <= 1 and ledger.fits_now(first):
            found.append(f"{first.name} is first in line and could start")
    return found


def _held_back(claimant, snapshot) -> bool:
    shared = claimant.request is not None and claimant.request.sharing == "shared"
    able = snapshot.capabilities.shared if shared else snapshot.capabilities.dedicated
    return not claimant.open_hours or bool(claimant.quota) or (claimant.request and not able)
