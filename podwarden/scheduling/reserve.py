"""The promise to the head of the queue, and what others may do meanwhile (EASY backfill, GPU by GPU).

A reservation is the earliest moment at which a blocked claimant fits, given the ends that running work promised,
with the exact GPUs. Whoever comes later may start if it surely ends before that moment, or if what the head will
need is still there at that moment: the caps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from podwarden.domain.inventory import Holder
from podwarden.domain.placement import Claimant, Slot
from podwarden.scheduling.books import Books, Charge, NodeBook, charge_for
from podwarden.scheduling.feasible import Cap, Class, choose
from podwarden.scheduling.need import least_of
from podwarden.scheduling.rank import Ranker


@dataclass(slots=True)
class Reservation:
    """start: when; slots: where; caps: by node index, what is left there for others at that moment.
    assumed: the moment rests on a job whose end nobody knows, so it is not told to people.
    """

    claimant: Claimant
    asked: Class
    start: datetime
    slots: tuple[Slot, ...]
    caps: dict[int, Cap] = field(default_factory=dict)
    assumed: bool = False

    @property
    def told(self) -> datetime | None:
        return None if self.assumed else self.start

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(uuid for slot in self.slots for uuid in slot.devices)


def surely_ends_before(claimant: Claimant, now: datetime, moment: datetime) -> bool:
    """Only an enforced limit counts; what past runs took is a guess."""
    return claimant.time_limit is not None and now + claimant.time_limit <= moment


def reserve(
    books: Books,
    asked: Class,
    claimant: Claimant,
    now: datetime,
    *,
    earlier: list[Reservation],
    ranker: Ranker,
) -> Reservation | None:
    """The earliest start for a claimant that does not fit now; None when no promised end lets it start."""
    ghost = books.copy()
    for other in earlier:
        for slot in other.slots:
            ghost.charge(charge_for(other.asked.need, slot, _ghost_holder(other.claimant)))
    at_least = least_of(claimant)
    room = {node.index: room_on(node, asked, at_least) for node in ghost.nodes}
    total = sum(room.values())
    for moment, charges in _ends(ghost, now):
        touched = set()
        for charge in charges:
            ghost.release(charge)
            touched.add(ghost.by_name[charge.node].index)
        for index in touched:
            more = room_on(ghost.nodes[index], asked, at_least)
            total += more - room[index]
            room[index] = more
        if total >= at_least:
            made = _settle(ghost, asked, claimant, moment, ranker)
            made.assumed = any(charge.assumed for charge in charges)
            return made
    return None


def spend(caps: tuple[Cap, ...], charge: Charge, node: NodeBook, sign: int = 1) -> None:
    """Take (or with sign -1 give back) what a start costs from what reservations left of its node."""
    for cap in caps:
        cap.cpu_milli -= sign * charge.cpu_milli
        cap.memory_mib -= sign * charge.memory_mib
        cap.pods -= sign * charge.pods
        for part in charge.parts:
            position = next(d.position for d in node.devices if d.device.uuid == part.device)
            left = cap.devices.get(position)
            if left is not None:
                left[0] -= sign * part.shares
                left[1] -= sign * part.memory_mib
                left[2] -= sign * part.encoders


def _ends(books: Books, now: datetime) -> list[tuple[datetime, list[Charge]]]:
    moments: dict[datetime, list[Charge]] = {}
    for node in books.nodes:
        for charge in node.charges:
            end = charge.end(now)
            if end is not None:
                moments.setdefault(end, []).append(charge)
    return sorted(moments.items(), key=lambda item: item[0])


def room_on(node: NodeBook, asked: Class, most: int) -> int:
    """How many instances fit on this node, counted up to `most`."""
    if choose(node, asked) is None:
        return 0
    if most == 1:
        return 1
    twin, found = node.copy(), 0
    while found < most:
        positions = choose(twin, asked)
        if positions is None:
            break
        twin.add(charge_for(asked.need, slot_of(twin, positions), _NOBODY))
        found += 1
    return found


def _settle(
    ghost: Books, asked: Class, claimant: Claimant, moment: datetime, ranker: Ranker
) -> Reservation:
    """The best slots among the books as they will be at that moment, and what they leave."""
    slots, holder = [], _ghost_holder(claimant)
    for _ in range(least_of(claimant)):
        scored = []
        for node in ghost.nodes:
            positions = choose(node, asked)
            if positions is not None:
                scored.append((ranker.score(node, asked.need, positions), node.index, positions))
        _, index, positions = min(scored)
        slot = slot_of(ghost.nodes[index], positions)
        ghost.charge(charge_for(asked.need, slot, holder))
        slots.append(slot)
    caps: dict[int, Cap] = {}
    for slot in slots:
        node = ghost.by_name[slot.node]
        cap = caps.setdefault(node.index, Cap(node.free_cpu, node.free_memory, node.free_pods))
        for device in node.devices:
            if device.device.uuid in slot.devices:
                cap.devices[device.position] = [
                    device.free_shares,
                    device.free_memory,
                    device.free_encoders,
                ]
    return Reservation(claimant, asked, moment, tuple(slots), caps)


def slot_of(node: NodeBook, positions: tuple[int, ...]) -> Slot:
    return Slot(node.name, tuple(node.devices[p].device.uuid for p in positions))


def holder_of(claimant: Claimant, now: datetime) -> Holder:
    """The claimant as a holder, from the moment it starts."""
    limit = claimant.time_limit or claimant.expected
    return Holder(
        name=claimant.name,
        workload=claimant.workload,
        endless=claimant.endless,
        ends_by=None if claimant.endless or limit is None else now + limit,
        expected_end=claimant.time_limit is None,
        priority=claimant.priority,
        preemptible=claimant.preemptible,
        since=now,
    )


def _ghost_holder(claimant: Claimant) -> Holder:
    return Holder(name=claimant.name, workload=claimant.workload)


_NOBODY = Holder(name="")
