"""The smallest change that would let a claimant start now. Nothing is said that the same feasibility code did
not confirm on a copy of the books.
"""

from __future__ import annotations

from dataclasses import replace

from podwarden.domain.inventory import MEMORY_STEP
from podwarden.domain.reason import Code
from podwarden.domain.units import GIB, promised_floor, show_gb, show_gib, vram_floor
from podwarden.scheduling.books import Charge, NodeBook
from podwarden.scheduling.feasible import choose, class_of
from podwarden.scheduling.need import Need, least_of
from podwarden.scheduling.passing import Pass, Waiting
from podwarden.scheduling.words import both, clock, cores, gpus, nominal_gb, short

_NODES = 20  # looked at for whom to stop, once somebody was found
_STOP = frozenset({Code.WAITS_FOR_SERVICE, Code.DEVICES_IN_USE})
_BACK = frozenset({Code.NODE_NOT_READY, Code.NODE_AGENT_AWAY, Code.DEVICE_UNHEALTHY})


def remedy(state: Pass, entry: Waiting, code: Code) -> str:
    """One sentence, or "" where no single change is known to help."""
    if least_of(entry.claimant) > 1:
        return ""
    stop = _stop(state, entry) if code in _STOP else ""
    less = _less(state, entry)
    if stop and less:
        return f"Stop {stop}, or {less}."
    if stop:
        return f"Stop {stop} to start now."
    if less:
        return f"{less[0].upper()}{less[1:]}."
    return _back(state, entry) if code in _BACK else ""


def shorter(state: Pass, entry: Waiting) -> str:
    """For one that waits behind a head: whether a time limit would let it pass in front."""
    claimant = entry.claimant
    heads = [state.reservations[i] for i in entry.binding]
    if claimant.endless or least_of(claimant) > 1 or any(head.told is None for head in heads):
        return ""
    soonest = min((head.start for head in heads), default=state.now)
    node = first_fit(state, entry.asked.need, ()) if soonest > state.now else None
    if node is None:
        return ""
    moment = clock(soonest, state.now)
    return f"With a time limit that ends before {moment} it could start now on {short(node)}."


def _stop(state: Pass, entry: Waiting) -> str:
    """The fewest, least important services of PodWarden whose end makes room on one node."""
    best: tuple[tuple[int, int, int], str] | None = None
    looked = 0
    for node in state.books.nodes:
        services = [
            c for c in node.charges if c.holder.workload and c.parts and c.end(state.now) is None
        ]
        if not services or not node.usable or not entry.asked.need.allows(node.name):
            continue
        looked += 1
        services.sort(key=lambda c: (c.holder.priority, c.holder.name))
        found = _stoppable(state, node, entry, services)
        if found:
            names = dict.fromkeys(short(charge.holder.name) for charge in found)
            key = (len(names), max(c.holder.priority for c in found), node.index)
            if best is None or key < best[0]:
                best = (key, both(names))
        if best is not None and looked >= _NODES:
            break
    return best[1] if best else ""


def _stoppable(state: Pass, node: NodeBook, entry: Waiting, services: list[Charge]) -> list[Charge]:
    caps = state.caps(entry.binding, node.index)

    def helps(gone: list[Charge]) -> bool:
        return choose(_after(node, gone), entry.asked, caps) is not None

    if not helps(services):
        return []
    for charge in services:
        if helps([charge]):
            return [charge]
    gone = list(services)
    # The most important are left running where their end does not matter.
    for charge in reversed(services):
        fewer = [other for other in gone if other is not charge]
        if helps(fewer):
            gone = fewer
    return gone


def _less(state: Pass, entry: Waiting) -> str:
    need = entry.asked.need
    for smaller, words in (*_smaller(state, need), *_fewer(need), *_leaner(state, need)):
        node = first_fit(state, smaller, entry.binding)
        if node is not None:
            return f"{words} to start now on {short(node)}"
    if need.models:
        any_model = replace(need, models=frozenset(), model_names=())
        node = first_fit(state, any_model, entry.binding)
        if node is not None:
            return f"leave the model open to start now on {short(node)}"
    return ""


def _leaner(state: Pass, need: Need) -> list[tuple[Need, str]]:
    """What a node with free GPUs has left beside them, the most first."""
    if state.no_gpu_fits(need):
        return []
    found = []
    for node in state.books.nodes:
        cpu, memory = min(need.cpu_milli, node.free_cpu), min(need.memory_mib, node.free_memory)
        enough = (cpu, memory) == (need.cpu_milli, need.memory_mib)
        if enough or (need.cpu_milli and cpu < 100) or (need.memory_mib and memory < 128):
            continue
        leaner = replace(need, cpu_milli=cpu, memory_mib=memory)
        if choose(node, class_of(state.books, leaner)) is not None:
            words = f"ask for {cores(cpu)} and {show_gib(memory)} of memory"
            found.append((-cpu, -memory, node.index, leaner, words))
    found.sort(key=lambda item: item[:3])
    return [(leaner, words) for *_, leaner, words in found[:3]]


def _back(state: Pass, entry: Waiting) -> str:
    """Which node or GPU only has to come back."""
    for node in state.books.nodes:
        twin = node.copy()
        twin.usable = True
        if choose(twin, entry.asked) is not None:
            return f"It starts once {_cured(node)}."
        for device in twin.devices:
            device.usable = True
        if choose(twin, entry.asked) is not None:
            return f"It starts once the GPUs of {short(node.name)} are back."
    return ""


def anywhere(state: Pass, entry: Waiting) -> str | None:
    """The node on which it would start now if its place were free to choose."""
    return first_fit(state, replace(entry.asked.need, nodes=None), entry.binding)


def first_fit(state: Pass, need: Need, binding: tuple[int, ...]) -> str | None:
    """The best node for this need now, under these reservations."""
    if state.no_gpu_fits(need):
        return None
    asked, scored = class_of(state.books, need), []
    for node in state.books.nodes:
        positions = choose(node, asked, state.caps(binding, node.index))
        if positions is not None:
            scored.append((state.ranker.score(node, need, positions), node.index))
    return state.books.nodes[min(scored)[1]].name if scored else None


def _after(node: NodeBook, gone: list[Charge]) -> NodeBook:
    twin = node.copy()
    for charge in gone:
        twin.drop(charge)
    return twin


def _smaller(state: Pass, need: Need) -> list[tuple[Need, str]]:
    """The same with less VRAM: sizes of the GPUs there are, or the largest budget a GPU has left."""
    if not need.count or need.vram_mib is None:
        return []
    devices = [d for d in state.books.devices if d.usable]
    if need.shared:
        budgets = {d.free_memory // MEMORY_STEP * MEMORY_STEP for d in devices}
        fitting = sorted((b for b in budgets if GIB // 4 <= b < need.budget_mib), reverse=True)
        return [(replace(need, vram_mib=b, budget_mib=b), f"ask for {show_gb(b)}") for b in fitting]
    sizes = {nominal_gb(d.device.vram_mib) * GIB for d in devices}
    smaller = sorted((s for s in sizes if 0 < s < need.vram_mib), reverse=True)
    return [
        (
            replace(need, vram_mib=s, floor_mib=vram_floor(s), promised_mib=promised_floor(s)),
            f"ask for {show_gb(s)}",
        )
        for s in smaller
    ]


def _fewer(need: Need) -> list[tuple[Need, str]]:
    return [(replace(need, count=n), f"ask for {gpus(n)}") for n in range(need.count - 1, 0, -1)]


def _cured(node: NodeBook) -> str:
    name = short(node.name)
    if not node.node.ready:
        return f"{name} is back"
    if node.node.cordoned:
        return f"{name} is uncordoned"
    return f"{name} takes work again" if not node.usable else f"the node agent of {name} is back"
