"""Writes to one cluster, each behind the fence.

A write names PodWarden as its field manager and carries the fence as an annotation, which the cluster's policy
compares. A delete carries none: the object is marked first and then deleted in exactly the marked version.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from podwarden.domain.placement import Hold
from podwarden.errors import Conflict, FenceLost, NotFound
from podwarden.kube import kinds
from podwarden.kube.client import MERGE, METADATA_ONLY, Client, Json
from podwarden.kube.fencing import TRIES, stamped
from podwarden.kube.gates import opening
from podwarden.kube.holds import hold_object, read_hold
from podwarden.kube.index import Index
from podwarden.kube.kinds import Kind, path_of
from podwarden.kube.labels import FENCE, MANAGER, NAMESPACE, PREFIX, REVISION, WORKLOAD
from podwarden.kube.parts import CONTROLLERS, PartFacts
from podwarden.kube.render import Rendered

T = TypeVar("T")

AT_ONCE = 16  # requests of one call that run side by side

_MAIN = (kinds.DEPLOYMENT, kinds.JOB)
# What starts copies goes first and stays until they are gone, a record of its own goes last: a removal that broke off can
# still be found and ended.
_REMOVED = (
    kinds.DEPLOYMENT,
    kinds.JOB,
    kinds.SERVICE,
    kinds.CLAIM_TEMPLATE,
    kinds.SECRET,
    kinds.VOLUME_CLAIM,
    kinds.CONFIG_MAP,
)
_BY_NAME = {kind.name: kind for kind in _REMOVED}
_REPLICA_SET = Kind("ReplicaSet", "apps/v1", "replicasets")


class Writer:
    """complete: whether the index holds everything; until then it is not relied on for what exists."""

    def __init__(
        self,
        client: Client,
        index: Index,
        complete: Callable[[], bool],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._index = index
        self._complete = complete
        self._sleep = sleep
        # What was written here may not have come back by watch yet.
        self._written: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)

    # --- workloads -------------------------------------------------------------------------------

    async def apply(self, rendered: Rendered, fence: int) -> None:
        *before, last = (stamped(obj, fence) for obj in rendered.objects)
        names = {(obj["kind"], obj["metadata"]["name"]) for obj in (*before, last)}
        self._written[rendered.workload] |= names
        await _side_by_side(self._client.apply(obj) for obj in before)
        if self._edited(rendered.workload):
            await self._take_back(last)
        await self._client.apply(last)
        await self._prune(rendered, fence)
        self._written[rendered.workload] = names

    def _edited(self, workload: str) -> bool:
        return any(part.edited for part in self._index.parts_of(workload))

    async def _take_back(self, obj: Json) -> None:
        """What somebody else set in it goes. An apply alone takes back only the fields that it names: an added
        container, a pause, and the other's claim to a field would stay for good.
        """
        path = path_of(obj)
        for attempt in range(TRIES):
            try:
                live = await self._client.get(path)
                await self._client.request(
                    "PUT",
                    path,
                    f"take back {path}",
                    params={"fieldManager": MANAGER},
                    body=_as_rendered(live, obj),
                )
            except NotFound:
                return
            except Conflict:
                if attempt == TRIES - 1:
                    raise
                await self._sleep(0.05 * 2**attempt)
            else:
                return

    async def _prune(self, rendered: Rendered, fence: int) -> None:
        found = await self._parts(rendered.workload, _REMOVED)
        left = [
            (kind, name)
            for kind, name, meta in found
            if (kind.api_version, kind.plural) in rendered.prune.kinds
            and rendered.prune.drops({"kind": kind.name, "metadata": meta})
        ]
        await _side_by_side(self._delete(kind, name, fence) for kind, name in left)

    async def remove(self, workload: str, *, keep_volumes: bool, fence: int) -> None:
        found = await self._parts(workload, _REMOVED)
        owned = False
        for group in (_MAIN, _REMOVED[2:-1], _REMOVED[-1:]):
            going = [
                (kind, name)
                for kind, name, meta in found
                if kind in group
                and not meta.get("deletionTimestamp")
                and not (keep_volumes and kind is kinds.VOLUME_CLAIM)
            ]
            removed = await _side_by_side(
                self._delete(kind, name, fence, foreground=kind in _MAIN) for kind, name in going
            )
            owned = owned or (group is _MAIN and any(removed))
        if not owned and not any(
            kind in _MAIN and "deletionTimestamp" in m for kind, _, m in found
        ):
            await self._remove_strays(workload, fence)
        self._written.pop(workload, None)

    async def _remove_strays(self, workload: str, fence: int) -> None:
        """Somebody removed the owner and kept its copies."""
        if self._complete() and not self._index.pods_of(workload):
            return
        for kind in (_REPLICA_SET, kinds.POD):
            listed = await self._client.list(
                kind.path(NAMESPACE),
                params={"labelSelector": f"{WORKLOAD}={workload}"},
                accept=METADATA_ONLY,
            )
            await _side_by_side(
                self._delete(kind, item["metadata"]["name"], fence)
                for item in listed
                if not item["metadata"].get("deletionTimestamp")
                and not any(
                    o.get("controller") for o in item["metadata"].get("ownerReferences") or ()
                )
            )

    async def remove_instance(self, workload: str, instance: str, fence: int) -> None:
        await self._checked(workload, instance)
        await self._delete(kinds.POD, instance, fence)

    async def scale(self, workload: str, replicas: int, fence: int) -> None:
        mains = [(kind, name) for kind, name, _ in await self._parts(workload, _MAIN)]
        if not mains:
            raise NotFound(f"{self._client.server} has nothing of workload {workload} to scale.")
        for kind, name in mains:
            spec: Json = {"replicas": replicas}
            if kind is kinds.JOB:
                spec = {"suspend": replicas == 0, **({"parallelism": replicas} if replicas else {})}
            body = {"metadata": {"annotations": {FENCE: str(fence)}}, "spec": spec}
            await self._client.patch(kind.path(NAMESPACE, name), body)

    async def _parts(
        self, workload: str, wanted: Sequence[Kind]
    ) -> list[tuple[Kind, str, Mapping[str, Any]]]:
        """(kind, name, metadata) of what exists of a workload, from memory where memory is complete."""
        if not self._complete():
            return await self._listed(workload, wanted)
        parts = {(part.kind, part.name): part for part in self._index.parts_of(workload)}
        found = [(_BY_NAME[kind], name, _meta(part)) for (kind, name), part in parts.items()]
        fresh = self._written.get(workload, set()) - parts.keys()
        found += [(_BY_NAME[kind], name, {"name": name}) for kind, name in sorted(fresh)]
        return [each for each in found if each[0] in wanted]

    async def _listed(
        self, workload: str, wanted: Sequence[Kind]
    ) -> list[tuple[Kind, str, Mapping[str, Any]]]:
        lists = await asyncio.gather(
            *(
                self._client.list(
                    kind.path(NAMESPACE),
                    params={"labelSelector": f"{WORKLOAD}={workload}"},
                    accept=METADATA_ONLY,
                )
                for kind in wanted
            )
        )
        return [
            (kind, item["metadata"]["name"], item["metadata"])
            for kind, items in zip(wanted, lists, strict=True)
            for item in items
        ]

    async def _delete(self, kind: Kind, name: str, fence: int, *, foreground: bool = False) -> bool:
        """False when it was gone. The marked version and no other: what a newer leader touched stays."""
        path = kind.path(NAMESPACE, name)
        mark = {"metadata": {"annotations": {FENCE: str(fence)}}}
        for attempt in range(TRIES):
            try:
                meta = (await self._client.patch(path, mark))["metadata"]
                body = {
                    "apiVersion": "v1",
                    "kind": "DeleteOptions",
                    "propagationPolicy": "Foreground" if foreground else "Background",
                    "preconditions": {
                        "uid": meta["uid"],
                        "resourceVersion": meta["resourceVersion"],
                    },
                }
                await self._client.request("DELETE", path, f"remove {path}", body=body)
            except NotFound:
                return False
            except Conflict:
                if attempt == TRIES - 1:
                    raise
                await self._sleep(0.05 * 2**attempt)
            else:
                return True
        return False

    # --- arrays ------------------------------------------------------------------------------------

    async def open_gates(self, workload: str, slots: Sequence[tuple[str, str]], fence: int) -> None:
        known = {pod.name: pod for pod in self._index.pods_of(workload)}
        await _side_by_side(
            self._open(workload, name, node, known[name].opening if name in known else None, fence)
            for name, node in slots
        )

    async def _open(
        self, workload: str, name: str, node: str, pod: Mapping[str, Any] | None, fence: int
    ) -> None:
        path = kinds.POD.path(NAMESPACE, name)
        for attempt in range(TRIES):
            try:
                if pod is None:
                    pod = await self._checked(workload, name)
                if not _gated(pod):
                    return
                await self._client.patch(path, opening(pod, node, fence), content_type=MERGE)
            except NotFound:
                return
            except Conflict:
                pod = None  # it changed meanwhile: read it again
                if attempt == TRIES - 1:
                    raise
            else:
                return

    async def _checked(self, workload: str, name: str) -> Json:
        """A pod, if it is one of this workload; NotFound otherwise, so that nothing else is ever touched."""
        pod = await self._client.get(kinds.POD.path(NAMESPACE, name))
        if (pod["metadata"].get("labels") or {}).get(WORKLOAD) != workload:
            raise NotFound(f"{name} is none of workload {workload}.")
        return pod

    # --- holds -------------------------------------------------------------------------------------

    async def set_holds(self, holds: Sequence[Hold], fence: int) -> None:
        standing: dict[str, tuple[str, str]] = {}
        if self._complete():
            standing = {key[1]: held for key, held in self._index.rules.items()}
        else:
            for item in await self._client.list(kinds.TAINT_RULE.path()):
                held = read_hold(item)
                if held is not None:
                    standing[item["metadata"]["name"]] = held
        wanted = {(hold.device, hold.workload): hold for hold in holds}
        there = set(standing.values())
        await _side_by_side(
            [
                *(
                    self._client.apply(stamped(hold_object(hold), fence))
                    for key, hold in wanted.items()
                    if key not in there
                ),
                *(
                    self._delete(kinds.TAINT_RULE, name, fence)
                    for name, held in standing.items()
                    if held not in wanted
                ),
            ]
        )


def _meta(part: PartFacts) -> Mapping[str, Any]:
    gone = {"deletionTimestamp": "set"} if part.deleting else {}
    return {"name": part.name, "labels": {REVISION: str(part.revision)}, **gone}


def _as_rendered(live: Json, obj: Json) -> Json:
    """The live object with the rendered wish, owned by nobody but the cluster's own controllers. What a job wishes
    cannot change once it started: there only the claims of others go.
    """
    meta = live["metadata"]
    annotations = {**(meta.get("annotations") or {}), **obj["metadata"]["annotations"]}
    labels = {**(meta.get("labels") or {}), **obj["metadata"]["labels"]}
    ours = [
        entry
        for entry in meta.get("managedFields") or ()
        if entry.get("manager") in CONTROLLERS or entry.get("subresource") == "status"
    ]
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": {
            **meta,
            "annotations": annotations,
            "labels": labels,
            "managedFields": ours or [{}],  # an empty list would leave them as they are
        },
        "spec": live["spec"] if obj["kind"] == kinds.JOB.name else obj["spec"],
    }


def _gated(pod: Mapping[str, Any]) -> bool:
    gates = pod["spec"].get("schedulingGates") or ()
    return any(gate["name"].startswith(PREFIX) for gate in gates)


async def _side_by_side(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All of them, a bounded number at once; the first error after all have ended, FenceLost before any other."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(call: Coroutine[Any, Any, T]) -> T:
        async with room:
            return await call

    answers = await asyncio.gather(*(one(call) for call in calls), return_exceptions=True)
    errors = [answer for answer in answers if isinstance(answer, BaseException)]
    for error in sorted(errors, key=lambda error: not isinstance(error, FenceLost)):
        raise error
    return [answer for answer in answers if not isinstance(answer, BaseException)]
