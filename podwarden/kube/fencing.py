"""Raising the fence of a cluster, and making what a cluster has once. After it, no older leader can write."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from podwarden.errors import Conflict, FenceLost, NotFound, Unavailable
from podwarden.kube import kinds
from podwarden.kube.client import APPLY, Client, Json
from podwarden.kube.devices import CLASS
from podwarden.kube.fence import RAISED, fence_map, fence_policy, probe_object
from podwarden.kube.kinds import path_of
from podwarden.kube.labels import EXTENDED_RESOURCE, FENCE, FENCE_MAP, MANAGER, NAMESPACE
from podwarden.kube.standing import bootstrap_objects, namespace

POLICY = "ValidatingAdmissionPolicy"
TRIES = 5  # of a read and the write that depends on it
PROBES = 200


class Fencing:
    """One cluster's fence."""

    def __init__(
        self, client: Client, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._client = client
        self._sleep = sleep

    async def carried(self) -> int:
        try:
            return _carried(await self._client.get(kinds.CONFIG_MAP.path(NAMESPACE, FENCE_MAP)))
        except NotFound:
            return 0

    async def raise_to(self, fence: int, served: frozenset[str]) -> None:
        await self._ensure_namespace()
        await self._swap_fence(fence)
        guarded = True
        for obj in bootstrap_objects(await self._wanted(served), fence):
            try:
                if obj["kind"] == POLICY:
                    await self._raise_policy(fence)
                else:
                    await self._client.apply(stamped(obj, fence))
            except NotFound:  # the API is older than this kind
                if not obj["kind"].startswith(POLICY):
                    raise
                guarded = False
        if guarded:
            await self._until_refused(fence - 1)

    async def _raise_policy(self, fence: int) -> None:
        """No policy guards the policy itself: it is exchanged in the version that was read, and its number only rises."""
        path = path_of(fence_policy(fence))
        for _ in range(TRIES):
            wanted = fence_policy(fence)
            try:
                seen = await self._client.get(path)
            except NotFound:
                method, where = "POST", path.rpartition("/")[0]
            else:
                known = _number((seen["metadata"].get("annotations") or {}).get(RAISED, ""))
                if known > fence:
                    raise FenceLost(
                        f"Another PodWarden leads {self._client.server} with fence {known}; this one has {fence}."
                    )
                method, where = "PUT", path
                wanted["metadata"]["resourceVersion"] = seen["metadata"]["resourceVersion"]
            try:
                await self._client.request(
                    method,
                    where,
                    "set the fence policy",
                    params={"fieldManager": MANAGER},
                    body=wanted,
                )
            except Conflict:
                continue
            return
        raise Unavailable(
            f"{self._client.server}: the fence policy changes faster than it can be set."
        )

    async def _ensure_namespace(self) -> None:
        """Not under PodWarden's name: a fence whose number was deleted would refuse even this."""
        try:
            await self._client.get(kinds.NAMESPACE.path("", NAMESPACE))
        except NotFound:
            with suppress(Conflict):
                await self._client.request(
                    "POST",
                    kinds.NAMESPACE.path(),
                    "make PodWarden's namespace",
                    params={"fieldManager": "podwarden-setup"},
                    body=namespace(),
                )

    async def _swap_fence(self, fence: int) -> None:
        path = kinds.CONFIG_MAP.path(NAMESPACE, FENCE_MAP)
        wanted = fence_map(fence)
        asked = {"fieldManager": MANAGER}
        for _ in range(TRIES):
            try:
                seen = await self._client.get(path)
            except NotFound:
                method, body, where = "POST", wanted, kinds.CONFIG_MAP.path(NAMESPACE)
            else:
                carried = _carried(seen)
                if carried > fence:
                    raise FenceLost(
                        f"Another PodWarden leads {self._client.server} with fence {carried}; this one has {fence}."
                    )
                if carried == fence:
                    return
                version = seen["metadata"]["resourceVersion"]
                body = {**wanted, "metadata": {**wanted["metadata"], "resourceVersion": version}}
                method, where = "PUT", path
            try:
                await self._client.request(
                    method, where, "raise the fence", params=asked, body=body
                )
            except (Conflict, NotFound):
                continue  # somebody was faster: look again
            return
        raise Unavailable(f"{self._client.server}: the fence changes faster than it can be raised.")

    async def _until_refused(self, outdated: int) -> None:
        """The API server enforces a changed policy a little later than it answers."""
        probe = probe_object(outdated)
        path = kinds.CONFIG_MAP.path(NAMESPACE, probe["metadata"]["name"])
        for attempt in range(PROBES):
            try:
                await self._client.request(
                    "PATCH",
                    path,
                    "try the fence",
                    params={"fieldManager": MANAGER, "force": "true", "dryRun": "All"},
                    body=probe,
                    content_type=APPLY,
                )
            except FenceLost:
                return
            await self._sleep(min(0.01 * (attempt + 1), 0.2))
        raise Unavailable(
            f"{self._client.server} does not enforce the fence. PodWarden does not act there."
        )

    async def _wanted(self, served: frozenset[str]) -> frozenset[str]:
        """Without our GPU class where somebody else answers `nvidia.com/gpu`: never two for one GPU."""
        if "deviceclasses" not in served:
            return served
        classes = await self._client.list(kinds.DEVICE_CLASS.path())
        others = any(
            (item.get("spec") or {}).get("extendedResourceName") == EXTENDED_RESOURCE
            and item["metadata"]["name"] != CLASS
            for item in classes
        )
        nodes = await self._client.list(kinds.NODE.path()) if not others else []
        plugin = any(
            str(((node.get("status") or {}).get("allocatable") or {}).get(EXTENDED_RESOURCE, "0"))
            != "0"
            for node in nodes
        )
        return served - {"deviceclasses"} if others or plugin else served


def stamped(obj: Mapping[str, Any], fence: int) -> Json:
    """A copy with the fence on the object itself, never on its pod template: that would restart it."""
    meta = obj["metadata"]
    annotations = {**(meta.get("annotations") or {}), FENCE: str(fence)}
    return {**obj, "metadata": {**meta, "annotations": annotations}}


def _carried(config_map: Mapping[str, Any]) -> int:
    return _number(str((config_map.get("data") or {}).get("fence", "")))


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() else 0
