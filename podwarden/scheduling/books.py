"""Free capacity: what each node and each GPU has left after everything that is charged to it.

The books of one pass are mutable and live only inside it. Amounts used are kept, not amounts free, so that
a holding beyond the capacity (a device that shrank) never makes a free amount negative, nor does its release
invent room.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from podwarden.domain.inventory import DEVICE_SHARES, Device, DeviceHealth, Holder, Holding, Node
from podwarden.domain.placement import Reserved, Slot, Snapshot
from podwarden.scheduling.need import Need, model_key

ASSUMED_RUN = timedelta(hours=24)
UNCOUNTED = 1 << 30  # encoder sessions of a card that has no cap


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of one GPU."""

    device: str
    shares: int
    memory_mib: int
    encoders: int = 0


@dataclass(eq=False, slots=True)
class Charge:
    """What one instance takes: pieces of GPUs on one node, CPU, memory, a pod slot.

    counted: its CPU, memory and pod slot are already part of the node's used amounts.
    """

    holder: Holder
    node: str
    parts: tuple[Part, ...]
    cpu_milli: int = 0
    memory_mib: int = 0
    pods: int = 1
    counted: bool = False

    def end(self, now: datetime) -> datetime | None:
        """When it gives back what it has, at the latest; None = it has no end. A job that nobody gave a limit
        is assumed to take a day: it does end, so that whoever waits for it may be promised its GPU.
        """
        holder = self.holder
        if holder.terminating:
            return now
        if holder.ends_by is not None:
            return max(holder.ends_by, now)
        return None if holder.endless else max((holder.since or now) + ASSUMED_RUN, now)

    @property
    def assumed(self) -> bool:
        """Whether its end is only the assumption above."""
        holder = self.holder
        return not (holder.terminating or holder.endless) and holder.ends_by is None


class DeviceBook:
    """One GPU. usable: published, healthy. kind: equal for GPUs that match the same requests."""

    __slots__ = (
        "charges", "device", "encoders", "id", "kind", "memory", "position",
        "usable", "used_encoders", "used_memory", "used_shares",
    )  # fmt: skip

    def __init__(self, device: Device, number: int, position: int, kind: int) -> None:
        self.device = device
        self.id = number
        self.position = position
        self.kind = kind
        self.usable = device.present and device.health is DeviceHealth.OK
        self.memory = max(device.memory_mib, 0)
        self.encoders = UNCOUNTED if device.encoders is None else max(device.encoders, 0)
        self.used_shares = 0
        self.used_memory = 0
        self.used_encoders = 0
        self.charges: list[Charge] = []

    @property
    def free_memory(self) -> int:
        return max(self.memory - self.used_memory, 0) if self.free_shares else 0

    @property
    def free_shares(self) -> int:
        return max(DEVICE_SHARES - self.used_shares, 0)

    @property
    def free_encoders(self) -> int:
        return max(self.encoders - self.used_encoders, 0)

    @property
    def whole(self) -> bool:
        return self.used_shares == 0

    def copy(self) -> DeviceBook:
        twin = DeviceBook(self.device, self.id, self.position, self.kind)
        twin.usable = self.usable
        twin.used_shares = self.used_shares
        twin.used_memory = self.used_memory
        twin.used_encoders = self.used_encoders
        twin.charges = list(self.charges)
        return twin


class NodeBook:
    """One node. index: its place in the order of names."""

    __slots__ = (
        "_state", "charges", "cpu", "devices", "index", "memory", "node", "pods", "shape",
        "usable", "used_cpu", "used_memory", "used_pods",
    )  # fmt: skip

    def __init__(self, node: Node, index: int, devices: list[DeviceBook]) -> None:
        self.node = node
        self.index = index
        self.devices = devices
        self.usable = node.usable
        self.cpu, self.memory, self.pods = node.cpu_milli, node.memory_mib, node.pods
        self.used_cpu, self.used_memory = node.used_cpu_milli, node.used_memory_mib
        self.used_pods = node.used_pods
        self.charges: list[Charge] = []
        self._state: tuple[object, ...] | None = None
        self.shape = tuple(d.kind for d in devices)

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def free_cpu(self) -> int:
        return max(self.cpu - self.used_cpu, 0)

    @property
    def free_memory(self) -> int:
        return max(self.memory - self.used_memory, 0)

    @property
    def free_pods(self) -> int:
        return max(self.pods - self.used_pods, 0)

    def state(self) -> tuple[object, ...]:
        """Equal for nodes that answer every request alike (but for their name)."""
        if self._state is None:
            self._state = (
                self.usable, self.free_cpu, self.free_memory, self.free_pods > 0, self.cpu, self.memory, self.shape,
                tuple([(d.usable, d.memory, d.used_shares, d.used_memory, d.used_encoders) for d in self.devices]),
            )  # fmt: skip
        return self._state

    def copy(self) -> NodeBook:
        twin = NodeBook(self.node, self.index, [d.copy() for d in self.devices])
        twin.usable = self.usable
        twin.used_cpu, twin.used_memory = self.used_cpu, self.used_memory
        twin.used_pods = self.used_pods
        twin.charges = list(self.charges)
        return twin

    def add(self, charge: Charge) -> None:
        self.charges.append(charge)
        if not charge.counted:
            self._instance(charge, 1)
        self._parts(charge, 1)

    def drop(self, charge: Charge) -> None:
        self.charges.remove(charge)
        self._instance(charge, -1)
        self._parts(charge, -1)

    def _instance(self, charge: Charge, sign: int) -> None:
        self.used_cpu += sign * charge.cpu_milli
        self.used_memory += sign * charge.memory_mib
        self.used_pods += sign * charge.pods
        self._state = None

    def _parts(self, charge: Charge, sign: int) -> None:
        for part in charge.parts:
            book = next(d for d in self.devices if d.device.uuid == part.device)
            book.used_shares += sign * part.shares
            book.used_memory += sign * part.memory_mib
            book.used_encoders += sign * part.encoders
            if sign > 0:
                book.charges.append(charge)
            else:
                book.charges.remove(charge)
        self._state = None


class Books:
    """All nodes by name order. log: indices of changed nodes, in order of change."""

    __slots__ = ("by_name", "devices", "kinds", "log", "nodes", "where")

    def __init__(self, nodes: Iterable[Node]) -> None:
        kinds: dict[object, int] = {}
        self.nodes: list[NodeBook] = []
        self.devices: list[DeviceBook] = []
        self.where: dict[str, NodeBook] = {}
        self.kinds: list[Device] = []  # an example of each kind
        self.log: list[int] = []
        for node in sorted(nodes, key=lambda n: n.name):
            self._open(node, kinds)
        self.by_name = {book.name: book for book in self.nodes}

    def _open(self, node: Node, kinds: dict[object, int]) -> None:
        books: list[DeviceBook] = []
        seen: set[str] = set()
        for device in sorted(node.devices, key=lambda d: (d.vram_mib, d.uuid)):
            if device.uuid in self.where or device.uuid in seen:
                continue  # the same GPU told twice: one identity, one book
            key = (
                model_key(device.model), device.vram_mib, device.compute_capability, device.encoders,
                device.whole_only, device.memory_mib + device.outside_mib,
            )  # fmt: skip
            kind = kinds.setdefault(key, len(kinds))
            if kind == len(self.kinds):
                self.kinds.append(device)
            book = DeviceBook(device, len(self.devices), len(books), kind)
            books.append(book)
            self.devices.append(book)
            seen.add(device.uuid)
        opened = NodeBook(node, len(self.nodes), books)
        self.where.update((book.device.uuid, opened) for book in books)
        self.nodes.append(opened)

    def copy(self) -> Books:
        twin = Books.__new__(Books)
        twin.nodes = [node.copy() for node in self.nodes]
        twin.by_name = {node.name: node for node in twin.nodes}
        twin.devices = [d for node in twin.nodes for d in node.devices]
        twin.where = {d.device.uuid: node for node in twin.nodes for d in node.devices}
        twin.kinds = self.kinds
        twin.log = []
        return twin

    def gpu(self, uuid: str) -> Device:
        """The GPU of this identity, which is known to exist."""
        return next(d.device for d in self.where[uuid].devices if d.device.uuid == uuid)

    def charge(self, charge: Charge) -> None:
        node = self.by_name[charge.node]
        node.add(charge)
        self.log.append(node.index)

    def release(self, charge: Charge) -> None:
        node = self.by_name[charge.node]
        node.drop(charge)
        self.log.append(node.index)


def open_books(snapshot: Snapshot) -> Books:
    """The books after what the cluster shows (holdings) and what is promised already (reserved)."""
    books = Books(snapshot.nodes)
    for charge in _held(books, snapshot.holdings):
        books.charge(charge)
    for entry in snapshot.reserved:
        promised = _promised(books, entry)
        if promised is not None:
            books.charge(promised)
    return books


def _held(books: Books, holdings: Iterable[Holding]) -> list[Charge]:
    """One charge an instance: the GPUs it holds together end together. Unknown GPUs charge nothing."""
    groups: dict[tuple[str, ...], list[Holding]] = {}
    for holding in sorted(holdings, key=_holding_order):
        node = books.where.get(holding.device)
        if node is not None:
            holder = holding.holder
            key = (node.name, holder.namespace, holder.workload, holder.name, holder.instance)
            groups.setdefault(key, []).append(holding)
    per_node: dict[str, int] = {}
    for node_name, *_ in groups:
        per_node[node_name] = per_node.get(node_name, 0) + 1
    charges = []
    for (node_name, *_), members in groups.items():
        node, holder = books.by_name[node_name], members[0].holder
        share = per_node[node_name]
        # What an instance gives back with its GPU is not always known: then an equal part is assumed.
        charges.append(
            Charge(
                holder=holder,
                node=node_name,
                parts=tuple(_part(held) for held in members),
                cpu_milli=min(holder.cpu_milli, node.used_cpu) or node.used_cpu // share,
                memory_mib=min(holder.memory_mib, node.used_memory) or node.used_memory // share,
                pods=min(1, node.used_pods),
                counted=True,
            )
        )
    return charges


def _holding_order(holding: Holding) -> tuple[str, ...]:
    holder = holding.holder
    return (holding.node, holding.device, holder.name, holder.namespace, holder.instance)


def _part(holding: Holding) -> Part:
    return Part(
        holding.device,
        max(holding.shares, 0),
        max(holding.memory_mib, 0),
        max(holding.encoders, 0),
    )


def _promised(books: Books, entry: Reserved) -> Charge | None:
    node = books.by_name.get(entry.node)
    if node is None:
        return None
    known = [uuid for uuid in dict.fromkeys(entry.devices) if books.where.get(uuid) is node]
    holder = Holder(
        name=entry.name, workload=entry.workload, endless=entry.endless, ends_by=entry.ends_by
    )
    return Charge(
        holder=holder,
        node=entry.node,
        parts=tuple(
            Part(uuid, max(entry.shares, 0), max(entry.memory_mib, 0), max(entry.encoders, 0))
            for uuid in known
        ),
        cpu_milli=max(entry.cpu_milli, 0),
        memory_mib=max(entry.instance_memory_mib, 0),
    )


def charge_for(need: Need, slot: Slot, holder: Holder) -> Charge:
    """What an instance with this need takes at this slot."""
    shares, memory = (1, need.budget_mib) if need.shared else (DEVICE_SHARES, 0)
    return Charge(
        holder=holder,
        node=slot.node,
        parts=tuple(Part(uuid, shares, memory, need.encoders) for uuid in slot.devices),
        cpu_milli=need.cpu_milli,
        memory_mib=need.memory_mib,
    )
