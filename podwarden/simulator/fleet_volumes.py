"""Volumes of simulated nodes: what K3s' local-path provisioner does, without folders.

A claim waits until the scheduler has chosen a node for its first user; then a volume is made that only this node
has. A volume whose claim is gone goes too. The rest (binding, protection while in use) is Kubernetes' own work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from podwarden.errors import Conflict, NotFound, PodWardenError
from podwarden.kube.client import Client, Json
from podwarden.kube.kinds import VOLUME, VOLUME_CLAIM, Kind
from podwarden.kube.labels import SIMULATED
from podwarden.kube.watch import Key, Source, Watch, key_of

CLASS = "local-path"
PROVISIONER = "rancher.io/local-path"
STORAGE_CLASS = Kind("StorageClass", "storage.k8s.io/v1", "storageclasses", namespaced=False)

_CHOSEN = "volume.kubernetes.io/selected-node"
_MADE_BY = "pv.kubernetes.io/provisioned-by"


def storage_class() -> Json:
    """As K3s ships it: the default class, bound when first used."""
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS, "annotations": default},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def volume_for(claim: Json) -> Json | None:
    """The volume that a claim waits for; None while no node is chosen, or when it is not ours to make."""
    metadata, spec = claim["metadata"], claim["spec"]
    node = (metadata.get("annotations") or {}).get(_CHOSEN)
    mine = spec.get("storageClassName") == CLASS and not spec.get("volumeName")
    if not mine or not node or metadata.get("deletionTimestamp"):
        return None
    name = f"pvc-{metadata['uid']}"
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": name,
            "labels": {SIMULATED: "true"},
            "annotations": {_MADE_BY: PROVISIONER},
        },
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec["accessModes"],
            "volumeMode": "Filesystem",
            "storageClassName": CLASS,
            "persistentVolumeReclaimPolicy": "Delete",
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
            "hostPath": {"path": f"/var/lib/rancher/k3s/storage/{name}", "type": ""},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }


def is_left_over(volume: Json) -> bool:
    """A volume of ours whose claim is gone."""
    metadata = volume["metadata"]
    ours = (metadata.get("labels") or {}).get(SIMULATED) == "true"
    released = (volume.get("status") or {}).get("phase") in {"Released", "Failed"}
    return ours and released and not metadata.get("deletionTimestamp")


class VolumeBinder:
    """Follows claims and volumes until cancelled. retry: seconds to wait while the server is away."""

    def __init__(self, client: Client, *, retry: float = 1.0) -> None:
        self._client = client
        self._retry = retry
        self._seen: dict[Kind, set[Key]] = {VOLUME: set(), VOLUME_CLAIM: set()}
        self._work: asyncio.Queue[tuple[Kind, Json]] = asyncio.Queue()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for kind in self._seen:
                group.create_task(Watch(self._client, Source(kind), self).run())
            group.create_task(self._worker())

    # --- what the watches tell (Sink) --------------------------------------------------------

    def put(self, kind: Kind, obj: Json) -> None:
        self._seen[kind].add(key_of(obj))
        self._work.put_nowait((kind, obj))

    def drop(self, kind: Kind, key: Key) -> None:
        self._seen[kind].discard(key)

    def known(self, kind: Kind) -> Iterable[Key]:
        return tuple(self._seen[kind])

    def seen(self, kind: Kind) -> None:
        """Nothing to do: each object is handled as it comes."""

    # --- work --------------------------------------------------------------------------------

    async def _worker(self) -> None:
        while True:
            kind, obj = await self._work.get()
            try:
                await self._handle(kind, obj)
            except (Conflict, NotFound):
                continue  # made or removed already
            except PodWardenError:  # the server is away: the object is still to be handled
                await asyncio.sleep(self._retry)
                self._work.put_nowait((kind, obj))

    async def _handle(self, kind: Kind, obj: Json) -> None:
        if kind == VOLUME:
            if is_left_over(obj):
                path = VOLUME.path(name=obj["metadata"]["name"])
                await self._client.request("DELETE", path, "remove a volume")
            return
        volume = volume_for(obj)
        if volume is not None:
            await self._client.request("POST", VOLUME.path(), "make a volume", body=volume)
