"""What the API server shows while `demo --once` runs, as plain objects. Nothing here asks PodWarden.

Objects are followed from before the first workload on, so that what was there only for a moment counts as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from podwarden.kube.client import Client, Json
from podwarden.kube.kinds import (
    CLAIM,
    CLAIM_TEMPLATE,
    CONFIG_MAP,
    DEPLOYMENT,
    JOB,
    NODE,
    POD,
    SECRET,
    SERVICE,
    SLICE,
    VOLUME_CLAIM,
    Kind,
)
from podwarden.kube.watch import Key, Source, Watch, key_of

FOLLOWED = (
    NODE, SLICE, CLAIM, POD, DEPLOYMENT, JOB, SERVICE, CONFIG_MAP, SECRET, CLAIM_TEMPLATE, VOLUME_CLAIM,
)  # fmt: skip
OWNER = "podwarden.io/name"  # label of everything that belongs to a workload
REVISION = "podwarden.io/revision"
FRAME = "podwarden.io/index-value"

Place = tuple[str, str, str]  # driver, pool, device: the cluster's own name of a GPU
_SIZES = {"": 1, "m": 0.001, "k": 1e3, "M": 1e6, "G": 1e9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_QUANTITY = re.compile(r"([0-9.]+)(m|k|M|G|Ki|Mi|Gi|)")


@dataclass(frozen=True, slots=True)
class Gpu:
    """memory_mib: what the node offers of it."""

    place: Place
    node: str
    model: str
    memory_mib: int


@dataclass(frozen=True, slots=True)
class Piece:
    """What the cluster has given of one GPU; whole = all of its shares."""

    gpu: Gpu
    shares: int
    memory_mib: int


@dataclass(frozen=True, slots=True)
class Copy:
    """One running or ended instance. exit_code: of the crash before, or of the end; None = none yet."""

    name: str
    node: str
    ready: bool
    ended: bool
    succeeded: bool
    going: bool
    restarts: int
    exit_code: int | None
    revision: str
    frame: str
    pieces: tuple[Piece, ...]

    @property
    def where(self) -> str:
        """`n5, GTX 1070`."""
        return ", ".join([self.node or "no node", *(piece.gpu.model for piece in self.pieces)])


class Seen:
    """Follows the API server between start() and close()."""

    def __init__(self, client: Client) -> None:
        self._objects: dict[Kind, dict[Key, Json]] = {kind: {} for kind in FOLLOWED}
        self._watches = [Watch(client, Source(kind), self) for kind in FOLLOWED]
        self._tasks: list[asyncio.Task[None]] = []
        self._stir = asyncio.Event()
        self._labels: dict[str, str] = {}  # instance -> workload, also when it is gone
        self._history: dict[Place, list[tuple[str, bool]]] = defaultdict(list)
        self._given: dict[Key, tuple[str, frozenset[Place]]] = {}  # instance and its GPUs
        self.ever: dict[str, set[str]] = defaultdict(set)  # workload -> objects it ever had
        self.ready_counts: dict[str, list[int]] = defaultdict(list)

    async def start(self, seconds: float = 20.0) -> None:
        """Returns once every list has been read. TimeoutError after `seconds`."""
        self._tasks = [asyncio.create_task(watch.run()) for watch in self._watches]
        async with asyncio.timeout(seconds):
            while not all(watch.synced for watch in self._watches):
                await self.change(1.0)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def change(self, seconds: float) -> None:
        """Until something changes, at most `seconds`."""
        stir = self._stir
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stir.wait(), seconds)

    # ---- what the watches tell (Sink)

    def put(self, kind: Kind, obj: Json) -> None:
        self._objects[kind][key_of(obj)] = obj
        owner = _label(obj, OWNER)
        if owner:
            self.ever[owner].add(f"{kind.plural}/{obj['metadata']['name']}")
        if kind == POD and owner:
            self._labels[obj["metadata"]["name"]] = owner
            self._count_ready(owner)
        elif kind == CLAIM:
            self._note(key_of(obj), obj)
        self._wake()

    def drop(self, kind: Kind, key: Key) -> None:
        gone = self._objects[kind].pop(key, None)
        if gone is not None and kind == POD and _label(gone, OWNER):
            self._count_ready(_label(gone, OWNER))
        elif kind == CLAIM:
            self._note(key, None)
        self._wake()

    def known(self, kind: Kind) -> Iterable[Key]:
        return tuple(self._objects[kind])

    def seen(self, kind: Kind) -> None:  # noqa: ARG002 - their face
        self._wake()

    # ---- what the objects say

    def copies(self, workload: str) -> list[Copy]:
        gpus = self.gpus()
        return [
            self._copy(pod, gpus)
            for pod in self._objects[POD].values()
            if _label(pod, OWNER) == workload
        ]

    def gpus(self) -> dict[Place, Gpu]:
        return {gpu.place: gpu for slice_ in self._objects[SLICE].values() for gpu in _gpus(slice_)}

    def gpu_nodes(self) -> set[str]:
        return {gpu.node for gpu in self.gpus().values()}

    def node_ready(self, name: str) -> bool:
        node = self._objects[NODE].get(("", name), {})
        return _condition(node, "Ready") == "True"

    def free_cpu(self, name: str, without: str = "") -> float:
        """Cores of a node that no instance asks for; those of the workload `without` are not counted."""
        node = self._objects[NODE][("", name)]
        used = sum(
            _cores(pod)
            for pod in self._objects[POD].values()
            if pod["spec"].get("nodeName") == name
            and not _ended(pod)
            and _label(pod, OWNER) != without
        )
        return amount(node["status"]["allocatable"]["cpu"]) - used

    def plain_nodes(self) -> list[str]:
        """Nodes without GPUs."""
        return sorted({name for _, name in self._objects[NODE]} - self.gpu_nodes())

    def asked_cpu(self, workload: str) -> float:
        return max(
            (_cores(p) for p in self._objects[POD].values() if _label(p, OWNER) == workload),
            default=0.0,
        )

    def given(self, workload: str) -> list[Place]:
        """GPUs that the cluster's books still give to the workload."""
        return [
            place
            for copy, places in self._given.values()
            if self._labels.get(copy) == workload
            for place in places
        ]

    def holders(self, place: Place) -> list[tuple[str, bool]]:
        """Who took (True) and gave back (False) a GPU, in order: (workload, taken)."""
        return [(self._labels.get(copy, copy), taken) for copy, taken in self._history[place]]

    def job(self, workload: str) -> Json:
        """The cluster's own words about a job, {} while there is none."""
        found = (j for j in self._objects[JOB].values() if _label(j, OWNER) == workload)
        job: Json = next(found, {}).get("status", {})
        return job

    # ---- keeping it

    def _copy(self, pod: Json, gpus: dict[Place, Gpu]) -> Copy:
        meta, status = pod["metadata"], pod.get("status", {})
        shown = (status.get("containerStatuses") or [{}])[0]
        last = (shown.get("state") or {}).get("terminated") or (shown.get("lastState") or {}).get(
            "terminated"
        )
        return Copy(
            name=meta["name"],
            node=pod["spec"].get("nodeName", ""),
            ready=_ready(pod),
            ended=_ended(pod),
            succeeded=status.get("phase") == "Succeeded",
            going="deletionTimestamp" in meta,
            restarts=int(shown.get("restartCount", 0)),
            exit_code=last.get("exitCode") if last else None,
            revision=_label(pod, REVISION),
            frame=(meta.get("annotations") or {}).get(FRAME, ""),
            pieces=tuple(self._pieces(meta["name"], gpus)),
        )

    def _pieces(self, copy: str, gpus: dict[Place, Gpu]) -> Iterator[Piece]:
        for key, claim in self._objects[CLAIM].items():
            if self._user(key) != copy:
                continue
            for result in _results(claim):
                gpu = gpus.get(_place(result))
                if gpu is not None:
                    used = result.get("consumedCapacity") or {}
                    yield Piece(
                        gpu,
                        round(amount(used.get("shares", "0"))),
                        round(amount(used.get("memory", "0")) / 2**20),
                    )

    def _user(self, key: Key) -> str:
        """The instance that a claim was made for."""
        claim = self._objects[CLAIM].get(key, {})
        owners = claim.get("metadata", {}).get("ownerReferences") or []
        return next((str(o["name"]) for o in owners if o["kind"] == "Pod"), "")

    def _note(self, key: Key, claim: Json | None) -> None:
        user, before = self._given.get(key, ("", frozenset()))
        after = frozenset(_place(result) for result in _results(claim or {}))
        user = self._user(key) or user
        for place in after - before:
            self._history[place].append((user, True))
        for place in before - after:
            self._history[place].append((user, False))
        self._given[key] = user, after

    def _count_ready(self, workload: str) -> None:
        ready = sum(
            _ready(pod)
            for pod in self._objects[POD].values()
            if _label(pod, OWNER) == workload and "deletionTimestamp" not in pod["metadata"]
        )
        self.ready_counts[workload].append(ready)

    def _wake(self) -> None:
        self._stir.set()
        self._stir = asyncio.Event()


def amount(quantity: str) -> float:
    """`250m`, `2`, `6Gi`, `23936Mi`."""
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        raise ValueError(f"no quantity: {quantity}")
    return float(match[1]) * _SIZES[match[2]]


def _gpus(slice_: Json) -> Iterator[Gpu]:
    spec = slice_["spec"]
    for device in spec.get("devices") or []:
        yield Gpu(
            (spec["driver"], spec["pool"]["name"], device["name"]),
            spec.get("nodeName", ""),
            device["attributes"]["model"]["string"],
            round(amount(device["capacity"]["memory"]["value"]) / 2**20),
        )


def _label(obj: Json, name: str) -> str:
    return str((obj["metadata"].get("labels") or {}).get(name, ""))


def _condition(obj: Json, type_: str) -> str:
    conditions = obj.get("status", {}).get("conditions") or []
    return next((str(c["status"]) for c in conditions if c["type"] == type_), "")


def _ready(pod: Json) -> bool:
    return _condition(pod, "Ready") == "True"


def _ended(pod: Json) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _cores(pod: Json) -> float:
    asked = (c.get("resources", {}).get("requests", {}) for c in pod["spec"]["containers"])
    return sum(amount(requests.get("cpu", "0")) for requests in asked)


def _results(claim: Json) -> list[Json]:
    allocation = claim.get("status", {}).get("allocation") or {}
    results: list[Json] = (allocation.get("devices") or {}).get("results") or []
    return results


def _place(result: Json) -> Place:
    return result["driver"], result["pool"], result["device"]
