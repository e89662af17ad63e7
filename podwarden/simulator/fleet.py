"""A simulated fleet in a real cluster: nodes that KWOK keeps alive, with GPUs published as the node agent does.

Starting is idempotent: what is there already and right is not written again, a node that was switched off stays off
and a GPU that was lost stays lost. Only objects that carry the label of simulated nodes are ever touched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from podwarden.domain.inventory import Device, DeviceHealth
from podwarden.errors import Conflict, NotFound
from podwarden.kube.client import MERGE, Client, Json
from podwarden.kube.devices import DRIVER, device_slice, read_slice, slice_name
from podwarden.kube.kinds import DEVICE_CLASS, NODE, SLICE, Kind
from podwarden.kube.labels import SIMULATED
from podwarden.kube.quantity import parse_quantity
from podwarden.kube.standing import device_class
from podwarden.simulator.fleet_file import SimulatedNode
from podwarden.simulator.fleet_volumes import STORAGE_CLASS, storage_class

MANAGER = "podwarden-simulator"
POWER = "simulator.podwarden.io/power"
GPU_TAINT = {"key": "podwarden.io/gpu", "effect": "PreferNoSchedule"}
AT_ONCE = 48  # requests in flight

_SERVER_LABEL = "node-role.kubernetes.io/control-plane"


class Fleet:
    """The nodes of one cluster. client: of an administrator."""

    def __init__(self, client: Client, nodes: Sequence[SimulatedNode]) -> None:
        self.nodes: Mapping[str, SimulatedNode] = {node.name: node for node in nodes}
        self._places = {node.name: place for place, node in enumerate(nodes)}
        self._client = client
        self._room = asyncio.Semaphore(AT_ONCE)

    async def start(self) -> None:
        """Makes the cluster's simulated nodes those of this fleet; others that are simulated go."""
        await self._create(DEVICE_CLASS, device_class())
        await self._create(STORAGE_CLASS, storage_class())
        found = await self._client.list(NODE.path(), params={"labelSelector": f"{SIMULATED}=true"})
        have = {node["metadata"]["name"]: node for node in found}
        chosen = {"fieldSelector": f"spec.driver={DRIVER}"}
        slices = await self._client.list(SLICE.path(), params=chosen)
        published = {slice_["spec"].get("nodeName", ""): slice_ for slice_ in slices}
        await self._all(
            self._ensure(node, have.get(name), published.get(name))
            for name, node in self.nodes.items()
        )
        await self._all(self._remove(name) for name in have.keys() - self.nodes.keys())

    async def switch_off(self, name: str) -> None:
        """As by the plug: no heartbeats, and nothing on it changes any more."""
        await self._power(name, "off")

    async def switch_on(self, name: str) -> None:
        await self._power(name, "on")

    async def set_health(self, name: str, index: int, health: DeviceHealth) -> None:
        """A GPU falls off the bus (LOST), its driver goes silent (UNKNOWN), or it is well again (OK)."""
        node = self._node(name)
        wanted = next((d.uuid for d in node.devices if d.index == index), None)
        if wanted is None:
            raise NotFound(f"{name} has no GPU {index}: it has {len(node.devices)}.")
        slice_ = await self._client.get(SLICE.path(name=slice_name(name)))
        devices = [
            replace(device, health=health) if device.uuid == wanted else device
            for device in _with_health(node.devices, slice_)
        ]
        owner = slice_["metadata"]["ownerReferences"][0]["uid"]
        await self._publish(name, owner, devices, slice_)

    # --- one node --------------------------------------------------------------------------

    async def _ensure(self, node: SimulatedNode, have: Json | None, published: Json | None) -> None:
        wanted = node_object(node, self._places[node.name])
        if have is None:
            have = await self._made(wanted)
        else:
            await self._mend(wanted, have)
        uid = have["metadata"]["uid"]
        if published is not None and _owner(published) != uid:  # of an earlier node of this name
            await self._delete(SLICE, slice_name(node.name))
            published = None
        if node.devices:
            await self._publish(node.name, uid, _with_health(node.devices, published), published)
        elif published is not None:
            await self._delete(SLICE, slice_name(node.name))

    async def _made(self, wanted: Json) -> Json:
        name = wanted["metadata"]["name"]
        try:
            return await self._client.request(
                "POST", NODE.path(), f"make node {name}", params=_BY_US, body=wanted
            )
        except Conflict:  # a repeated request whose first answer was lost
            return await self._client.get(NODE.path(name=name))

    async def _mend(self, wanted: Json, have: Json) -> None:
        path = NODE.path(name=wanted["metadata"]["name"])
        change = _difference(wanted, have)
        if change:
            await self._patch(path, change)
        sizes = wanted["status"]["allocatable"]
        if not _same_sizes(sizes, have.get("status", {}).get("allocatable") or {}):
            await self._patch(
                f"{path}/status", {"status": {"capacity": sizes, "allocatable": sizes}}
            )

    async def _publish(
        self, node: str, uid: str, devices: Sequence[Device], published: Json | None
    ) -> None:
        generation = 1
        if published is not None:
            generation = published["spec"]["pool"]["generation"] + 1
        wanted = device_slice(node, uid, devices, generation)
        if published is None:
            await self._create(SLICE, wanted)
        elif read_slice(published) != read_slice(wanted):
            wanted["metadata"]["resourceVersion"] = published["metadata"]["resourceVersion"]
            path = SLICE.path(name=slice_name(node))
            await self._client.request(
                "PUT", path, f"publish the GPUs of {node}", params=_BY_US, body=wanted
            )

    async def _remove(self, name: str) -> None:
        await self._delete(SLICE, slice_name(name))
        await self._delete(NODE, name)

    async def _power(self, name: str, state: str) -> None:
        self._node(name)
        await self._patch(NODE.path(name=name), {"metadata": {"labels": {POWER: state}}})

    def _node(self, name: str) -> SimulatedNode:
        if name not in self.nodes:
            raise NotFound(f"There is no simulated node {name}.")
        return self.nodes[name]

    # --- requests ----------------------------------------------------------------------------

    async def _all(self, works: Iterable[Awaitable[None]]) -> None:
        async def limited(work: Awaitable[None]) -> None:
            async with self._room:
                await work

        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(limited(work))

    async def _create(self, kind: Kind, obj: Json) -> None:
        """Makes it where it is absent; what is there stays."""
        try:
            await self._client.request(
                "POST", kind.path(), f"make {kind.name}", params=_BY_US, body=obj
            )
        except Conflict:
            return

    async def _delete(self, kind: Kind, name: str) -> None:
        try:
            await self._client.request("DELETE", kind.path(name=name), f"remove {name}")
        except NotFound:
            return

    async def _patch(self, path: str, body: Json) -> None:
        await self._client.request(
            "PATCH", path, f"change {path}", params=_BY_US, body=body, content_type=MERGE
        )


_BY_US = {"fieldManager": MANAGER}


def node_object(node: SimulatedNode, place: int) -> Json:
    """A Node with its status. place: numbers its address, out of the range kept for benchmarks."""
    sizes = {
        "cpu": f"{node.cpu_milli}m",
        "memory": f"{node.memory_mib}Mi",
        "pods": str(node.pods),
    }
    labels = {
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        # The node controller would write these two itself, one more write a node.
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
        SIMULATED: "true",
        POWER: "on",
        **dict(node.labels),
    }
    if node.server:
        labels[_SERVER_LABEL] = "true"
    address = f"198.{18 + place // 65_000}.{place % 65_000 // 250}.{place % 250 + 1}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": labels},
        "spec": {"taints": [GPU_TAINT]} if node.devices else {},
        "status": {
            "capacity": sizes,
            "allocatable": sizes,
            "addresses": [{"type": "InternalIP", "address": address}],
        },
    }


def _difference(wanted: Json, have: Json) -> Json:
    """A merge patch for labels and the GPU taint; {} where all is right. The power switch is left as it is."""
    change: Json = {}
    have_labels = have["metadata"].get("labels") or {}
    labels = {
        name: value
        for name, value in wanted["metadata"]["labels"].items()
        if have_labels.get(name) != value and (name != POWER or POWER not in have_labels)
    }
    if labels:
        change["metadata"] = {"labels": labels}
    taints = have.get("spec", {}).get("taints") or []
    others = [taint for taint in taints if taint["key"] != GPU_TAINT["key"]]
    right = [*others, *wanted["spec"].get("taints", ())]
    if len(right) != len(taints):
        change["spec"] = {"taints": right or None}
    return change


def _same_sizes(wanted: Mapping[str, str], have: Mapping[str, Any]) -> bool:
    return all(
        name in have and parse_quantity(have[name]) == parse_quantity(size)
        for name, size in wanted.items()
    )


def _with_health(devices: Sequence[Device], published: Json | None) -> list[Device]:
    """The file's GPUs with the health that the cluster shows."""
    shown = {} if published is None else {d.uuid: d.health for _, d in read_slice(published)}
    return [replace(device, health=shown.get(device.uuid, device.health)) for device in devices]


def _owner(slice_: Json) -> str:
    owners = slice_["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("uid", ""))
