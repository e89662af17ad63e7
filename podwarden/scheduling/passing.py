"""One pass over the queue: charges, admissions in order, the head's reservation. Explains nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from podwarden.domain.inventory import DEVICE_SHARES, Holder
from podwarden.domain.placement import (
    Claimant,
    ForeignDemand,
    Hold,
    Placement,
    Slot,
    Snapshot,
)
from podwarden.scheduling.books import Books, Charge, NodeBook, Part, charge_for, open_books
from podwarden.scheduling.candidates import Candidates, Choice
from podwarden.scheduling.feasible import Cap, Class, choose, class_of
from podwarden.scheduling.need import Need, least_of, need_of
from podwarden.scheduling.order import in_order
from podwarden.scheduling.rank import Mix, Ranker
from podwarden.scheduling.refuse import cannot
from podwarden.scheduling.reserve import (
    Reservation,
    holder_of,
    reserve,
    slot_of,
    spend,
    surely_ends_before,
)

RANKING = 20  # nodes named to the cluster's scheduler, at most
BANDS = 7  # VRAM sizes named for the fallback, at most

MakeRanker = Callable[[Books, Mix], Ranker]


@dataclass(slots=True)
class Waiting:
    """A claimant that does not start. reservation: its own; behind: the one that it must not delay."""

    claimant: Claimant
    asked: Class
    reservation: Reservation | None = None
    behind: Reservation | None = None
    binding: tuple[int, ...] = ()  # reservations made before its turn that it could delay


@dataclass(slots=True)
class Pass:
    """What a pass has decided so far."""

    snapshot: Snapshot
    now: datetime
    books: Books
    ranker: Ranker
    queue: list[Claimant]  # in order
    placements: list[Placement] = field(default_factory=list)
    moved: dict[str, tuple[Slot, ...]] = field(default_factory=dict)  # displaced, by workload
    waiting: dict[str, Waiting] = field(default_factory=dict)
    reservations: list[Reservation] = field(default_factory=list)
    _classes: dict[object, Class] = field(default_factory=dict)
    _tables: dict[tuple[int, tuple[int, ...]], Candidates] = field(default_factory=dict)
    _memos: dict[int, dict[object, Choice | None]] = field(default_factory=dict)
    _most: dict[tuple[int, tuple[int, ...]], int] = field(default_factory=dict)
    _hopeless: dict[tuple[int, int], bool] = field(default_factory=dict)
    _heads: dict[int, Reservation | None] = field(default_factory=dict)
    _static: dict[int, tuple[list[str], tuple[int, ...]]] = field(default_factory=dict)
    _none_fits: dict[Need, bool] = field(default_factory=dict)

    def asked(self, claimant: Claimant) -> Class:
        """The class of a claimant; equal requests get the same object."""
        key = (
            claimant.request, claimant.cpu_milli, claimant.memory_mib, claimant.nodes, claimant.avoid,
        )  # fmt: skip
        known = self._classes.get(key)
        if known is None:
            known = self._classes[key] = class_of(self.books, need_of(claimant))
        return known

    def serve(self, claimant: Claimant) -> None:
        """Admit the claimant, or put it among those that wait."""
        asked = self.asked(claimant)
        binding = tuple(
            i
            for i, other in enumerate(self.reservations)
            if not surely_ends_before(claimant, self.now, other.start)
        )
        slots = self._place(claimant, asked, binding)
        if slots and claimant.displaced:
            self.moved[claimant.workload] = slots
        elif slots:
            self.placements.append(self._placement(claimant, asked, slots, binding))
        else:
            self._wait(claimant, asked, binding)

    def hold_back(self, claimant: Claimant) -> None:
        """A claimant that may not start now whatever is free: it waits and reserves nothing."""
        self.waiting[claimant.workload] = Waiting(claimant, self.asked(claimant))

    def holds(self) -> tuple[Hold, ...]:
        """Free GPUs that the reservations keep. Displaced services are started by the cluster itself,
        and a shared GPU stays open for others.
        """
        if not self.snapshot.capabilities.hold:
            return ()
        held: list[Hold] = []
        for kept in self.reservations:
            if kept.claimant.displaced or kept.asked.need.shared:
                continue
            for slot in kept.slots:
                node = self.books.by_name[slot.node]
                held.extend(
                    Hold(d.device.uuid, node.name, kept.claimant.workload, kept.told)
                    for d in node.devices
                    if d.device.uuid in slot.devices and d.whole and d.usable and node.usable
                )
        return tuple(held)

    def _place(
        self, claimant: Claimant, asked: Class, binding: tuple[int, ...]
    ) -> tuple[Slot, ...]:
        """Slots charged to the books: as many as fit up to what it wants; none if fewer than it must have."""
        at_least = least_of(claimant)
        key = (id(asked), binding)
        if self._most.get(key, at_least) < at_least or self.no_gpu_fits(asked.need):
            return ()
        table = self._table(asked, binding)
        holder = holder_of(claimant, self.now)
        done: list[Charge] = []
        slots: list[Slot] = []
        while len(slots) < max(claimant.slots, at_least):
            best = table.best()
            if best is None:
                break
            slot = slot_of(*best)
            charge = charge_for(asked.need, slot, holder)
            self._book(charge, binding, 1)
            done.append(charge)
            slots.append(slot)
        if len(slots) >= at_least:
            return tuple(slots)
        self._most[key] = len(slots)
        for charge in reversed(done):
            self._book(charge, binding, -1)
        return ()

    def _book(self, charge: Charge, binding: tuple[int, ...], sign: int) -> None:
        node = self.books.by_name[charge.node]
        spend(self.caps(binding, node.index), charge, node, sign)
        if sign > 0:
            self.books.charge(charge)
        else:
            self.books.release(charge)

    def _wait(self, claimant: Claimant, asked: Class, binding: tuple[int, ...]) -> None:
        entry = Waiting(claimant, asked, behind=self._head_of(asked), binding=binding)
        self.waiting[claimant.workload] = entry
        key = (id(asked), least_of(claimant))
        if entry.behind is not None or self._hopeless.get(key):
            return
        entry.reservation = reserve(
            self.books, asked, claimant, self.now, earlier=self.reservations, ranker=self.ranker
        )
        if entry.reservation is None:
            self._hopeless[key] = True
            return
        self.reservations.append(entry.reservation)
        self._heads.clear()

    def _head_of(self, asked: Class) -> Reservation | None:
        """The reservation whose GPUs this class also asks for: its pool has a head already."""
        key = id(asked)
        if key not in self._heads:
            self._heads[key] = next(
                (r for r in self.reservations if not r.asked.pool.isdisjoint(asked.pool)), None
            )
        return self._heads[key]

    def no_gpu_fits(self, need: Need) -> bool:
        """Whether no node has the GPUs, CPU and memory aside. Books only fill up, so "none" stays true:
        thousands of requests that differ in CPU alone are answered once.
        """
        if not need.count:
            return False
        bare = Need(
            count=need.count, shared=need.shared, vram_mib=need.vram_mib, floor_mib=need.floor_mib,
            promised_mib=need.promised_mib, budget_mib=need.budget_mib, models=need.models,
            compute=need.compute, encoders=need.encoders,
        )  # fmt: skip
        if bare not in self._none_fits:
            asked = class_of(self.books, bare)
            self._none_fits[bare] = all(choose(node, asked) is None for node in self.books.nodes)
        return self._none_fits[bare]

    def caps(self, binding: tuple[int, ...], index: int) -> tuple[Cap, ...]:
        """What the reservations of `binding` leave of a node."""
        return tuple(
            self.reservations[i].caps[index] for i in binding if index in self.reservations[i].caps
        )

    def _table(self, asked: Class, binding: tuple[int, ...]) -> Candidates:
        key = (id(asked), binding)
        if key not in self._tables:
            memo = self._memos.setdefault(id(asked), {})
            self._tables[key] = Candidates(
                self.books, asked, self.ranker, lambda index: self.caps(binding, index), memo
            )
        return self._tables[key]

    def _placement(
        self, claimant: Claimant, asked: Class, slots: tuple[Slot, ...], binding: tuple[int, ...]
    ) -> Placement:
        capable, bands = self._able(asked)
        names = dict.fromkeys(slot.node for slot in slots)
        if len(names) < RANKING:
            names.update(dict.fromkeys(self._table(asked, binding).nearest(RANKING)))
            for name in capable:
                if len(names) >= RANKING:
                    break
                names.setdefault(name)
        return Placement(claimant.workload, slots, tuple(names)[:RANKING], bands)

    def _able(self, asked: Class) -> tuple[list[str], tuple[int, ...]]:
        """Nodes that could serve the class when empty (usable ones first, smallest GPUs first), and the
        sizes of the GPUs that match the plain request.
        """
        known = self._static.get(id(asked))
        if known is None:
            known = self._static[id(asked)] = able(self.books, asked)
        return known


def able(books: Books, asked: Class) -> tuple[list[str], tuple[int, ...]]:
    need = asked.need
    found: list[tuple[bool, int, str]] = []
    sizes: set[int] = set()
    for node in books.nodes:
        vram = [d.device.vram_mib for d in node.devices if d.kind in asked.kinds]
        if not need.allows(node.name) or len(vram) < need.count:
            continue
        sizes.update(vram)
        if node.cpu >= need.cpu_milli and node.memory >= need.memory_mib:
            found.append((not node.usable, vram[need.count - 1] if need.count else 0, node.name))
    bands = sorted(sizes)
    if len(bands) > BANDS:
        bands = [*bands[: BANDS - 1], bands[-1]]
    return [name for _, _, name in sorted(found)], tuple(bands)


def open_pass(snapshot: Snapshot, now: datetime, make_ranker: MakeRanker) -> Pass:
    """The state before anybody is served: what is held and what is promised is charged."""
    books = open_books(snapshot)
    ranker = make_ranker(books, snapshot.mix)
    return Pass(snapshot, now, books, ranker, in_order(snapshot.claimants))


def run(state: Pass, queue: list[Claimant]) -> None:
    """Everything in order: displaced services, foreign demand, the queue (without those that are refused)."""
    snapshot = state.snapshot
    for claimant in queue:
        if claimant.displaced:
            state.serve(claimant)
    waiting_ids = {c.workload for c in queue}
    kept = frozenset(uuid for uuid, workload in snapshot.holds if workload in waiting_ids)
    for demand in sorted(snapshot.foreign, key=lambda f: (f.namespace, f.name)):
        _charge_foreign(state.books, demand, kept)
    for claimant in queue:
        if claimant.displaced or claimant.slots <= 0:
            continue
        unable = cannot(state.asked(claimant).need, snapshot.capabilities)
        if unable or claimant.quota or not claimant.open_hours:
            state.hold_back(claimant)
        else:
            state.serve(claimant)


def _charge_foreign(books: Books, demand: ForeignDemand, kept: frozenset[str]) -> None:
    """The cluster gives waiting foreign pods the smallest free whole GPUs before anybody asks."""
    best: tuple[int, int, NodeBook, tuple[str, ...]] | None = None
    for node in books.nodes:
        if not node.usable or (demand.nodes is not None and node.name not in demand.nodes):
            continue
        if demand.cpu_milli > node.free_cpu or demand.memory_mib > node.free_memory:
            continue
        free = [d for d in node.devices if d.usable and d.whole and d.device.uuid not in kept][
            : max(demand.count, 1)
        ]
        if len(free) < max(demand.count, 1):
            continue
        size = sum(d.device.vram_mib for d in free)
        if best is None or (size, node.index) < best[:2]:
            best = (size, node.index, node, tuple(d.device.uuid for d in free))
    if best is not None:
        holder = Holder(name=demand.name, namespace=demand.namespace)
        parts = tuple(Part(uuid, DEVICE_SHARES, 0) for uuid in best[3])
        books.charge(Charge(holder, best[2].name, parts, demand.cpu_milli, demand.memory_mib))
