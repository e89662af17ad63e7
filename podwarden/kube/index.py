"""Everything known of one cluster, kept by what it is needed for, so that a change costs what it changes.

Objects come in as the API gives them, are reduced to records at once and compared: only a record that differs
raises the revision, and marks what is derived from it (a node's use, a claim's holdings, a workload's copies).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from podwarden.domain.inventory import Device
from podwarden.kube import kinds
from podwarden.kube.devices import read_slice
from podwarden.kube.holds import read_hold
from podwarden.kube.kinds import Kind
from podwarden.kube.labels import NAMESPACE
from podwarden.kube.observe import ClaimFacts, NodeFacts, read_claim, read_node
from podwarden.kube.parts import (
    Exposed,
    PartFacts,
    VolumeClaimFacts,
    read_exposed,
    read_part,
    read_volume_claim,
    read_volume_host,
)
from podwarden.kube.pods import PodFacts, read_pod
from podwarden.kube.watch import Key, key_of

Json = dict[str, Any]
Slice = tuple[
    str, str, str, int, tuple[tuple[str, Device], ...]
]  # node, driver, pool, generation, devices


@dataclass(slots=True)
class Dirty:
    """What must be derived again before the next observation."""

    nodes: set[str] = field(default_factory=set)
    claims: set[Key] = field(default_factory=set)
    workloads: set[str] = field(default_factory=set)
    presences: set[str] = field(default_factory=set)
    foreign: bool = False
    volumes: bool = False
    devices: bool = False
    exposed: bool = False


class Index:
    """One per cluster. Not thread-safe: it lives in the event loop that feeds it."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.revision = 0
        self.pods: dict[Key, PodFacts] = {}
        self.rules: dict[Key, tuple[str, str]] = {}
        self.nodes: dict[Key, NodeFacts] = {}
        self.claims: dict[Key, ClaimFacts] = {}
        self.slices: dict[Key, Slice] = {}
        self.parts: dict[tuple[str, Key], PartFacts] = {}
        self.exposed: dict[Key, Exposed] = {}  # services with a load balancer, of all namespaces
        self.volume_claims: dict[Key, VolumeClaimFacts] = {}
        self.volumes: dict[Key, str] = {}
        self.notes: dict[Key, tuple[str, str, str]] = {}  # event -> pod uid, reason, message

        self.pods_on: defaultdict[str, set[Key]] = defaultdict(set)
        self.used: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        self.pod_by_uid: dict[str, Key] = {}
        self.claims_of_pod: defaultdict[str, set[Key]] = defaultdict(set)  # pod uid -> claims
        self.pods_of_claim: defaultdict[Key, set[Key]] = defaultdict(set)  # by the pod's own word
        self.claims_in_pool: defaultdict[tuple[str, str], set[Key]] = defaultdict(set)
        self.own_pods: defaultdict[str, set[Key]] = defaultdict(set)  # workload -> pods
        self.own_parts: defaultdict[str, set[tuple[str, Key]]] = defaultdict(set)
        self.note_of: dict[str, Key] = {}  # pod uid -> newest event
        self.demands: set[Key] = set()
        self.dirty = Dirty()
        self._takers: dict[str, Callable[[Key, Json | None], None]] = {
            "nodes": self._take_node,
            "pods": self._take_pod,
            "resourceclaims": self._take_claim,
            "resourceslices": self._take_slice,
            "devicetaintrules": self._take_rule,
            "persistentvolumes": self._take_volume,
            "events": self._take_note,
        }
        self.keys: defaultdict[str, set[Key]] = defaultdict(set)
        self._changed: Callable[[], None] = lambda: None

    # --- fed by the watches ----------------------------------------------------------------

    def on_change(self, call: Callable[[], None]) -> None:
        """call: after each batch that raised the revision."""
        self._changed = call

    def put(self, kind: Kind, obj: Json) -> None:
        key = key_of(obj)
        self.keys[kind.plural].add(key)
        self._take(kind, key, obj)

    def drop(self, kind: Kind, key: Key) -> None:
        self.keys[kind.plural].discard(key)
        self._take(kind, key, None)

    def known(self, kind: Kind) -> Iterable[Key]:
        return self.keys[kind.plural]

    def seen(self, kind: Kind) -> None:
        del kind
        self._changed()

    def touch(self) -> None:
        """Something outside the objects changed: the connection's health."""
        self.revision += 1
        self._changed()

    def _take(self, kind: Kind, key: Key, obj: Json | None) -> None:
        taker = self._takers.get(kind.plural)
        if taker is not None:
            taker(key, obj)
            return
        if kind is kinds.VOLUME_CLAIM:
            self._take_volume_claim(key, obj)
        if kind is kinds.SERVICE:
            self._take_service(key, obj)
        if key[0] == NAMESPACE:
            self._take_part(kind, key, obj)

    # --- one kind each -----------------------------------------------------------------------

    def _take_node(self, key: Key, obj: Json | None) -> None:
        new = read_node(obj) if obj is not None else None
        old = self.nodes.get(key)
        if not _swap(self.nodes, key, new):
            return
        self.dirty.nodes.add(key[1])
        if old is None or new is None or old.node.labels != new.node.labels:
            self.dirty.foreign = self.dirty.volumes = True
        self.revision += 1

    def _take_pod(self, key: Key, obj: Json | None) -> None:
        new = read_pod(obj) if obj is not None else None
        old = self.pods.get(key)
        if not _swap(self.pods, key, new):
            return
        if old is not None:
            self._count(old, key, -1)
        if new is not None:
            self._count(new, key, 1)
        self.revision += 1

    def _count(self, pod: PodFacts, key: Key, sign: int) -> None:
        """Enters a pod into every book, or takes it out again."""
        enter = sign > 0
        if pod.takes_room:
            used = self.used[pod.node]
            used[0] += sign * pod.cpu_milli
            used[1] += sign * pod.memory_mib
            used[2] += sign
            _mark(self.pods_on, pod.node, key, enter=enter)
            self.dirty.nodes.add(pod.node)
        for claim in pod.claims:
            _mark(self.pods_of_claim, (pod.namespace, claim), key, enter=enter)
        if enter:
            self.pod_by_uid[pod.uid] = key
        else:
            self.pod_by_uid.pop(pod.uid, None)
            if key not in self.pods:
                self.note_of.pop(pod.uid, None)
        if pod.demand is not None:
            (self.demands.add if enter else self.demands.discard)(key)
            self.dirty.foreign = True
        if pod.workload:
            _mark(self.own_pods, pod.workload, key, enter=enter)
            self.dirty.workloads.add(pod.workload)
        self.dirty.claims |= self.claims_of_pod.get(pod.uid, set())

    def _take_claim(self, key: Key, obj: Json | None) -> None:
        new = read_claim(obj) if obj is not None else None
        old = self.claims.get(key)
        if not _swap(self.claims, key, new):
            return
        for claim, enter in ((old, False), (new, True)):
            if claim is None:
                continue
            for uid in {claim.owner, *(uid for _, uid in claim.reserved_for)} - {""}:
                _mark(self.claims_of_pod, uid, key, enter=enter)
                if self.pod_by_uid.get(uid) in self.demands:
                    self.dirty.foreign = True
            for piece in claim.pieces:
                _mark(self.claims_in_pool, (piece.driver, piece.pool), key, enter=enter)
        for pod in self.pods_of_claim.get(key, ()):
            self.dirty.workloads.add(self.pods[pod].workload)
        self.dirty.workloads.discard("")
        self.dirty.claims.add(key)
        self.revision += 1

    def _take_slice(self, key: Key, obj: Json | None) -> None:
        new: Slice | None = None
        if obj is not None:
            spec = obj["spec"]
            pool = spec["pool"]
            new = (
                spec.get("nodeName", ""),
                spec["driver"],
                pool["name"],
                pool["generation"],
                read_slice(obj),
            )
        old = self.slices.get(key)
        if not _swap(self.slices, key, new):
            return
        for slice_ in (old, new):
            if slice_ is not None:
                self.dirty.nodes.add(slice_[0])
                self.dirty.claims |= self.claims_in_pool.get(slice_[1:3], set())
        self.dirty.devices = True
        self.revision += 1

    def _take_rule(self, key: Key, obj: Json | None) -> None:
        if _swap(self.rules, key, read_hold(obj) if obj is not None else None):
            self.revision += 1

    def _take_volume(self, key: Key, obj: Json | None) -> None:
        if _swap(self.volumes, key, read_volume_host(obj) if obj is not None else None):
            self.dirty.volumes = True
            self.revision += 1

    def _take_volume_claim(self, key: Key, obj: Json | None) -> None:
        if _swap(self.volume_claims, key, read_volume_claim(obj) if obj is not None else None):
            self.dirty.volumes = True
            self.revision += 1

    def _take_service(self, key: Key, obj: Json | None) -> None:
        if _swap(self.exposed, key, read_exposed(obj) if obj is not None else None):
            self.dirty.exposed = True
            self.revision += 1

    def _take_part(self, kind: Kind, key: Key, obj: Json | None) -> None:
        new = read_part(kind.name, obj) if obj is not None else None
        where = (kind.name, key)
        old = self.parts.get(where)
        if not _swap(self.parts, where, new):
            return
        for part, enter in ((old, False), (new, True)):
            if part is not None:
                _mark(self.own_parts, part.workload, where, enter=enter)
                self.dirty.presences.add(part.workload)
        self.revision += 1

    def _take_note(self, key: Key, obj: Json | None) -> None:
        """The newest event of a pod of ours; events vanish after an hour, which changes nothing."""
        if obj is None:
            uid = self.notes.pop(key, ("", "", ""))[0]
            if self.note_of.get(uid) == key:
                del self.note_of[uid]
            return
        uid = (obj.get("involvedObject") or {}).get("uid", "")
        note = (uid, str(obj.get("reason") or ""), str(obj.get("message") or "")[:512])
        if not _swap(self.notes, key, note):
            return
        self.note_of[uid] = key
        pod = self.pods.get(self.pod_by_uid.get(uid, ("", "")))
        if pod is not None and pod.workload:
            self.dirty.workloads.add(pod.workload)
            self.revision += 1

    # --- looked up by the link ---------------------------------------------------------------

    def parts_of(self, workload: str) -> tuple[PartFacts, ...]:
        return tuple(self.parts[where] for where in sorted(self.own_parts.get(workload, ())))

    def pods_of(self, workload: str) -> tuple[PodFacts, ...]:
        return tuple(self.pods[key] for key in sorted(self.own_pods.get(workload, ())))


def _swap(book: dict[Any, Any], key: Any, new: Any) -> bool:
    """Puts the record, or takes it out; False when nothing changed."""
    if new is None:
        return book.pop(key, None) is not None
    if book.get(key) == new:
        return False
    book[key] = new
    return True


def _mark(book: defaultdict[Any, set[Any]], key: Any, member: Any, *, enter: bool) -> None:
    if enter:
        book[key].add(member)
    elif key in book:
        book[key].discard(member)
        if not book[key]:
            del book[key]
