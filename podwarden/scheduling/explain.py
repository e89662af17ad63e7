"""Why a claimant waits: one code, a sentence with numbers, a note per node and GPU, what would help."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from podwarden.domain.placement import Claimant
from podwarden.domain.reason import Code, Note, Reason
from podwarden.scheduling.books import DeviceBook, NodeBook
from podwarden.scheduling.feasible import Class, choose
from podwarden.scheduling.need import Need, least_of
from podwarden.scheduling.passing import Pass, Waiting
from podwarden.scheduling.refuse import cannot, names_a_node, never_fits
from podwarden.scheduling.remedy import anywhere, remedy, shorter
from podwarden.scheduling.reserve import Reservation, room_on
from podwarden.scheduling.verdicts import (
    EASE,
    FREE,
    Finding,
    lacks_beside,
    left_beside,
    look,
    node_trouble,
)
from podwarden.scheduling.words import TIMES, both, clock, gpu, need_words, short

MOST = 400  # characters of a text, about
AHEAD = 5  # names of workloads in front
_MANY = 300  # distinct pools, above which "in front" means the whole queue

_EVERYBODY: frozenset[int] = frozenset()
_TURN = frozenset({Code.WAITS_BEHIND, Code.DEVICES_IN_USE, Code.CPU_OR_MEMORY_SHORT})
Looked = list[tuple[NodeBook, list[tuple[DeviceBook, Finding]]]]


class Explainer:
    """Answers in queue order: `reason` remembers whom it was asked about, as those in front of the next."""

    def __init__(self, state: Pass) -> None:
        self._state = state
        self._remedies: dict[object, str] = {}
        self._bodies: dict[object, Reason] = {}
        self._looks: dict[object, Looked] = {}
        self._noted: dict[int, tuple[Looked, tuple[Note, ...]]] = {}
        self._siblings: dict[tuple[str, str], int] = {}
        for device in state.books.devices:
            key = (device.device.node, device.device.model)
            self._siblings[key] = self._siblings.get(key, 0) + 1
        self._overlaps = _overlaps(e.asked.pool for e in state.waiting.values())
        self._line: dict[frozenset[int], deque[str]] = {}

    def moved(self, claimant: Claimant) -> Reason | None:
        """About a claimant that does not wait: nothing, unless it lost its node."""
        slots = self._state.moved.get(claimant.workload)
        if slots is None:
            return None
        nodes = both(dict.fromkeys(slot.node for slot in slots))
        return Reason(Code.NODE_LOST, f"its node is lost; its replacement has room on {nodes}.")

    def reason(self, entry: Waiting) -> Reason:
        claimant = entry.claimant
        if not claimant.open_hours:
            return Reason(
                Code.OUTSIDE_HOURS, f"may start only within its hours, {short(claimant.hours)}."
            )
        if claimant.quota:
            return Reason(Code.QUOTA, claimant.quota)
        unable = cannot(entry.asked.need, self._state.snapshot.capabilities)
        if unable is not None:
            return unable
        pool = entry.asked.pool
        lines = self._overlaps[pool]
        ahead = tuple(self._line.get(lines[0] if lines == [_EVERYBODY] else pool, ()))
        for other in lines:
            self._line.setdefault(other, deque(maxlen=AHEAD)).append(claimant.name)
        body = self._body(entry)
        return Reason(body.code, body.text, self._remedy(entry, body), body.notes, ahead)

    def _key(self, entry: Waiting) -> tuple[object, ...]:
        """Equal for claimants in the same position towards the heads (but for what they ask)."""
        claimant = entry.claimant
        return (
            claimant.workload if entry.reservation else "",
            entry.behind.claimant.workload if entry.behind else "",
            entry.binding, least_of(claimant), claimant.nodes_why, claimant.endless,
        )  # fmt: skip

    def _body(self, entry: Waiting) -> Reason:
        """Everything but the remedy and who is in front. Where no GPU fits, CPU and memory do not matter."""
        need = entry.asked.need
        alike = _gpu_part(need) if self._state.no_gpu_fits(need) else need
        key = (alike, *self._key(entry))
        if key not in self._bodies:
            self._bodies[key] = self._explain(entry, least_of(entry.claimant))
        return self._bodies[key]

    def _remedy(self, entry: Waiting, body: Reason) -> str:
        if body.remedy:
            return body.remedy
        key = (id(entry.asked), body.code, *self._key(entry))
        if key not in self._remedies:
            self._remedies[key] = (
                shorter(self._state, entry)
                if body.code is Code.WAITS_BEHIND
                else remedy(self._state, entry, body.code)
            )
        return self._remedies[key]

    def _explain(self, entry: Waiting, at_least: int) -> Reason:
        asked = entry.asked
        looked = self._look(entry)
        known = self._noted.get(id(looked))
        notes = known[1] if known else self._notes(asked, looked)
        self._noted[id(looked)] = (looked, notes)  # keeps the list alive, and so its id its own
        able = [(node, found) for node, found in looked if _matching(found) >= asked.need.count]
        if not able:
            return self._never(entry, notes)
        words = f"needs {need_words(asked.need, at_least)}."
        if asked.need.nodes is not None:
            placed = self._bound_to_node(entry, able, words, notes)
            if placed is not None:
                return placed
        code = self._code(entry, able)
        head = entry.behind if code in _TURN else None
        head = head or self._in_the_way(entry, able)
        if head is not None:
            return Reason(Code.WAITS_BEHIND, f"{words} {_turn(head, self._state)}", notes=notes)
        code = Code.DEVICES_IN_USE if code is Code.WAITS_BEHIND else code
        if at_least > 1:
            fit = sum(room_on(node, asked, at_least) for node, _ in able)
            words += f" {fit} of {at_least} would fit now." if fit else ""
        text = f"{words} {self._facts(asked, looked, code, len(words))}"
        return Reason(code, text, notes=notes)

    def _in_the_way(self, entry: Waiting, able: Looked) -> Reservation | None:
        """Whose reservation keeps it from a node on which it would fit: for CPU or memory, for instance."""
        if entry.reservation is not None:
            return None
        state, asked = self._state, entry.asked
        kept_from = [
            node.index
            for node, _ in able
            if choose(node, asked) is not None
            and choose(node, asked, state.caps(entry.binding, node.index)) is None
        ]
        heads = [state.reservations[i] for i in entry.binding]
        return next((h for index in kept_from for h in heads if index in h.caps), None)

    def _look(self, entry: Waiting) -> Looked:
        """Each node with its GPUs. The part about GPUs is the same for all requests that differ in CPU and
        memory only, and in a full cluster that is all there is.
        """
        need = entry.asked.need
        key = (_gpu_part(need), entry.binding)
        if key not in self._looks:
            self._looks[key] = self._look_at_gpus(entry)
        looked = self._looks[key]
        short_of = {
            node.index: lack
            for node, found in looked
            if any(f is FREE for _, f in found) and (lack := lacks_beside(node, need))
        }
        if not short_of:
            return looked
        return [
            (node, [(d, short_of.get(node.index, f) if f is FREE else f) for d, f in found])
            for node, found in looked
        ]

    def _look_at_gpus(self, entry: Waiting) -> Looked:
        state, need = self._state, entry.asked.need
        kept = {
            uuid: state.reservations[i]
            for i in entry.binding
            for uuid in state.reservations[i].devices
        }
        looked: Looked = []
        for node in state.books.nodes:
            if need.allows(node.name) and (node.devices or not need.count):
                devices = node.devices if need.count else []
                looked.append(
                    (node, [(d, look(node, d, entry.asked, kept, state.now)) for d in devices])
                )
        return looked

    def _code(self, entry: Waiting, able: Looked) -> Code:
        if entry.reservation is not None:
            first = entry.reservation.slots[0].node
            able = [(node, found) for node, found in able if node.name == first]
        codes = [_node_code(node, found, entry.asked) for node, found in able]
        known = [code for code in codes if code is not None]
        return min(known, key=EASE.index, default=Code.CPU_OR_MEMORY_SHORT)

    def _bound_to_node(
        self, entry: Waiting, able: Looked, words: str, notes: tuple[Note, ...]
    ) -> Reason | None:
        """Where the place is what makes it wait: its only nodes are down, or it would start elsewhere."""
        claimant = entry.claimant
        why = _place_words(claimant)
        if not any(node.usable for node, _ in able):
            code = Code.NODE_NOT_READY if names_a_node(claimant) else Code.VOLUME_ON_LOST_NODE
            down = "; ".join(node_trouble(node) for node, _ in able[:3])
            return Reason(code, f"{words} {why}: {down}.", notes=notes)
        elsewhere = anywhere(self._state, entry)
        if elsewhere is None:
            return None
        facts = self._facts(entry.asked, able, self._code(entry, able), len(words) + len(why))
        return Reason(
            Code.STORAGE_ON_NODE,
            f"{words} {why}. {facts}",
            f"Without that it would start now on {short(elsewhere)}.",
            notes,
        )

    def _never(self, entry: Waiting, notes: tuple[Note, ...]) -> Reason:
        """Started or displaced, and nothing here could serve it any more."""
        state, claimant = self._state, entry.claimant
        refused = never_fits(state.books, entry.asked, claimant, state.snapshot.capabilities)
        if refused is not None:
            return Reason(refused.code, refused.text, refused.remedy, notes)
        return Reason(
            Code.VOLUME_ON_LOST_NODE,
            f"{_place_words(claimant)}, which is not part of the cluster now.",
            notes=notes,
        )

    def _notes(self, asked: Class, looked: Looked) -> tuple[Note, ...]:
        notes = []
        for node, found in looked:
            if not asked.need.count:
                code = Code.CPU_OR_MEMORY_SHORT if node.usable else Code.NODE_NOT_READY
                notes.append(Note(node.name, "", code, self._node_fact(node)))
            short_of = asked.need.count - sum(f.code is None for _, f in found)
            for device, finding in sorted(found, key=lambda pair: pair[0].device.index):
                name = self._name(device)
                text = f"{name} {finding.one}"
                if finding.code is None and short_of > 0:
                    text += f", but {short(node.name)} lacks {short_of} more"
                notes.append(
                    Note(node.name, device.device.uuid, finding.code or Code.DEVICES_IN_USE, text)
                )
        return tuple(notes)

    def _facts(self, asked: Class, looked: Looked, code: Code, used: int) -> str:
        """What stands in the way, the cause first, then the rest, as far as the text may go."""
        facts: list[tuple[bool, str]] = []
        free = 0
        for node, found in looked:
            if not asked.need.count:
                facts.append((not node.usable, self._node_fact(node)))
                continue
            free += sum(f.code is None for _, f in found)
            facts.extend(
                (f.code is not code, fact) for f, fact in self._groups(found, asked.need.count > 1)
            )
        facts.sort(key=lambda item: item[0])
        said: list[str] = []
        for _, fact in facts:
            if said and used + len(fact) > MOST - 60:
                break
            said.append(fact)
            used += len(fact) + 2
        rest = len(facts) - len(said)
        text = "; ".join(said) + (f"; {rest} more do not help" if rest else "") + "."
        if asked.need.count > 1 and free >= asked.need.count:
            text += " Enough GPUs are free in total, but not on one node."
        return text

    def _groups(
        self, found: list[tuple[DeviceBook, Finding]], with_free: bool
    ) -> list[tuple[Finding, str]]:
        """The GPUs of a node, those of the same model in the same situation together."""
        groups: dict[tuple[str, Finding], list[DeviceBook]] = {}
        for device, finding in found:
            if finding.code is not None or with_free:
                groups.setdefault((device.device.model, finding), []).append(device)
        said = []
        for (model, finding), members in groups.items():
            first = members[0]
            if len(members) == 1:
                said.append((finding, f"{self._name(first)} {finding.one}"))
            else:
                node = short(first.device.node)
                said.append(
                    (finding, f"{node} has {len(members)} {TIMES} {short(model)}, {finding.many}")
                )
        return said

    def _node_fact(self, node: NodeBook) -> str:
        return (
            f"{short(node.name)} has {left_beside(node)} left"
            if node.usable
            else node_trouble(node)
        )

    def _name(self, device: DeviceBook) -> str:
        shown = device.device
        name = gpu(shown, self._siblings[(shown.node, shown.model)])
        return f"{name} ({shown.pci_bus_id})" if not device.usable and shown.pci_bus_id else name


def _node_code(
    node: NodeBook, found: list[tuple[DeviceBook, Finding]], asked: Class
) -> Code | None:
    """The hardest of the obstacles that must go, counting on the easiest GPUs of the node. None: nothing stands
    in the way of one instance here, it is only that more are needed.
    """
    if not node.usable:
        return Code.NODE_NOT_READY
    codes = [f.code for _, f in found if not f.never]
    lacking = asked.need.count - codes.count(None)
    blocked = sorted((c for c in codes if c is not None), key=EASE.index)
    if lacking > 0:
        return blocked[lacking - 1]
    if choose(node, asked) is None:
        return Code.CPU_OR_MEMORY_SHORT
    return blocked[0] if blocked else None


def _matching(found: list[tuple[DeviceBook, Finding]]) -> int:
    return sum(not finding.never for _, finding in found)


def _gpu_part(need: Need) -> Need:
    return replace(need, cpu_milli=0, memory_mib=0)


def _place_words(claimant: Claimant) -> str:
    nodes = both(sorted(claimant.nodes or ())) if claimant.nodes else "no node"
    if claimant.nodes_why.startswith("node") or not claimant.nodes_why:
        return f"it is bound to {nodes} by its `node` field"
    return f"{short(claimant.nodes_why)} lies on {nodes}"


def _turn(head: Reservation, state: Pass) -> str:
    where = dict.fromkeys(gpu(state.books.gpu(uuid)) for uuid in head.devices) or dict.fromkeys(
        slot.node for slot in head.slots
    )
    start = f"at {clock(head.start, state.now)}" if head.told else "as soon as it is free"
    return f"{short(head.claimant.name)} is ahead and is to start {start} on {both(where)}."


def _overlaps(pools: Iterable[frozenset[int]]) -> dict[frozenset[int], list[frozenset[int]]]:
    """Which lines a claimant stands in front of: those for a GPU that it could use too."""
    distinct = list(dict.fromkeys(pools))
    if len(distinct) > _MANY:
        return {pool: [_EVERYBODY] for pool in distinct}
    return {pool: [other for other in distinct if not pool.isdisjoint(other)] for pool in distinct}
