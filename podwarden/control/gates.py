"""Which gates of an array are to be opened, and which slots their tasks get."""

from __future__ import annotations

from podwarden.control.charges import LIVE, gated_tasks, is_array
from podwarden.control.desk import Desk
from podwarden.domain.observation import Observation
from podwarden.domain.placement import Slot
from podwarden.domain.workload import Desire, Workload

Pairs = list[tuple[str, Slot]]  # task and slot


class Gates:
    """A slot belongs to its task before the cluster is asked: when an answer is lost, nobody knows which gates are
    open, and a slot that was given to a second task would be charged for as long as the array runs. What failed is
    asked again; a gate that is open already stays so.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._doubtful: set[str] = set()

    def due(self, row: Workload, seen: Observation) -> Pairs:
        """Empty for everything that is no array."""
        if not is_array(row):
            return []
        books = self._desk.books
        opened = books.opened.setdefault(row.id, {})
        here = {i.name: i for i in seen.instances.get(row.id, ())}
        for name in [n for n in opened if n not in here or here[n].phase not in LIVE]:
            del opened[name]
        if row.desire is not Desire.RUN:
            return []
        gated = gated_tasks(row, here.values(), opened)
        pairs = [(i.name, s) for i, s in zip(gated, books.grants.get(row.id, ()), strict=False)]
        if row.id in self._doubtful:
            pairs += [(name, slot) for name, slot in opened.items() if here[name].gated]
        return pairs

    async def open(self, workload: str, pairs: Pairs) -> None:
        fence = self._desk.fence()
        books = self._desk.books
        opened = books.opened.setdefault(workload, {})
        for name, slot in pairs:
            if name not in opened and slot in books.grants.get(workload, []):
                books.grants[workload].remove(slot)
            opened[name] = slot
        self._doubtful.add(workload)
        await self._desk.link.open_gates(workload, [(n, s.node) for n, s in pairs], fence)
        self._doubtful.discard(workload)

    def forget(self, workload: str) -> None:
        self._doubtful.discard(workload)
