"""Which of the feasible nodes is best: the one whose use spoils least of what others will ask for.

A ranker is one object: built with the books and the mix of past requests, called with a node and the GPUs
chosen there, it answers a tuple; smaller is better. Ties go to the node's name. Another policy is another class.
"""

from __future__ import annotations

from typing import Protocol

from podwarden.domain.units import vram_floor
from podwarden.scheduling.books import Books, NodeBook
from podwarden.scheduling.need import Need

WHOLE = 1000  # a free GPU, in the units fragmentation is counted in
Mix = tuple[tuple[int, int, int], ...]
Score = tuple[int, ...]


class Ranker(Protocol):
    """`score` may look at everything of a node but its name and index: answers are kept for nodes in the same state."""

    def __init__(self, books: Books, mix: Mix) -> None: ...

    def score(self, node: NodeBook, need: Need, positions: tuple[int, ...]) -> Score: ...


class BestFit:
    """The smallest sufficient GPU, then the least fragmentation over the mix, the commonest model, the fullest node."""

    def __init__(self, books: Books, mix: Mix) -> None:
        self._mix = tuple(
            (max(c, 1), vram_floor(max(v, 0)), max(w, 0)) for c, v, w in mix
        ) or _default_mix(books)
        counts: dict[int, int] = {}
        for device in books.devices:
            counts[device.kind] = counts.get(device.kind, 0) + 1
        self._common = counts
        self._memo: dict[tuple[tuple[int, int, int], ...], int] = {}

    def score(self, node: NodeBook, need: Need, positions: tuple[int, ...]) -> Score:
        if not need.count:
            return _without_gpu(node, need)
        chosen = [node.devices[p] for p in positions]
        opened = sum(d.whole for d in chosen) if need.shared else 0
        vram = sum(d.device.vram_mib for d in chosen)
        scarce = -min(self._common[d.kind] for d in chosen)
        left = sum(d.usable and d.whole for d in node.devices) - len(chosen)
        spoilt = self._spoilt(node, need, positions)
        if need.vram_mib is None and not need.shared:
            return (vram, spoilt, scarce, left)  # any whole GPU: the smallest free first
        return (opened, vram, spoilt, scarce, left)

    def _spoilt(self, node: NodeBook, need: Need, positions: tuple[int, ...]) -> int:
        """How much more of the node's free GPU capacity the mix cannot use, once these are taken."""
        before, after = [], []
        for device in node.devices:
            if not device.usable:
                continue
            vram, memory = device.device.vram_mib, max(device.memory, 1)
            free = WHOLE if device.whole else WHOLE * device.free_memory // memory
            before.append((vram, free, int(device.whole)))
            if device.position not in positions:
                after.append((vram, free, int(device.whole)))
            elif need.shared:
                after.append((vram, max(free - WHOLE * need.budget_mib // memory, 0), 0))
        return self._unusable(tuple(after)) - self._unusable(tuple(before))

    def _unusable(self, free: tuple[tuple[int, int, int], ...]) -> int:
        known = self._memo.get(free)
        if known is not None:
            return known
        total = sum(units for _, units, _ in free)
        unusable = 0
        for count, floor, weight in self._mix:
            fitting = [units for vram, units, whole in free if whole and vram >= floor]
            unusable += weight * (total - (sum(fitting) if len(fitting) >= count else 0))
        self._memo[free] = unusable
        return unusable


def _without_gpu(node: NodeBook, need: Need) -> Score:
    """CPU work goes where no GPU is; else where the fewest free GPUs lose the CPU and memory beside them."""
    left_cpu, left_memory = node.free_cpu - need.cpu_milli, node.free_memory - need.memory_mib
    if not node.devices:
        return (0, 0, 0, left_cpu, left_memory)
    free = sum(d.usable and d.whole for d in node.devices)
    lost = _beside(node, node.free_cpu, node.free_memory, free) - _beside(
        node, left_cpu, left_memory, free
    )
    vram = max((d.device.vram_mib for d in node.devices if d.usable and d.whole), default=0)
    return (1, lost * max(vram, 1), free * vram, left_cpu, left_memory)


def _beside(node: NodeBook, cpu: int, memory: int, free: int) -> int:
    """Free GPUs (in thousandths) that still have their equal part of the node's CPU and memory."""
    each = len(node.devices) * WHOLE
    return min(free * WHOLE, cpu * each // max(node.cpu, 1), memory * each // max(node.memory, 1))


def _default_mix(books: Books) -> Mix:
    """Where nothing is known of the past: each size that exists is asked for once per GPU of it, and as
    many at once as a node has.
    """
    mix: dict[tuple[int, int], int] = {}
    for node in books.nodes:
        sizes: dict[int, int] = {}
        for device in node.devices:
            sizes[device.device.vram_mib] = sizes.get(device.device.vram_mib, 0) + 1
        for vram, have in sizes.items():
            mix[(1, vram)] = mix.get((1, vram), 0) + have
            if have > 1:
                mix[(have, vram)] = mix.get((have, vram), 0) + 1
    return tuple((count, vram, weight) for (count, vram), weight in sorted(mix.items()))
