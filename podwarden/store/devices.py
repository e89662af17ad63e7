"""Everything ever seen: nodes and GPUs, so that "can never fit" is not said of hardware that is only away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import delete, insert, select, update

from podwarden.domain.inventory import Device, Node
from podwarden.errors import NotFound
from podwarden.store import codec, tables
from podwarden.store.book import Book
from podwarden.store.columns import dump, load

_nodes = tables.known_nodes
_devices = tables.known_devices


class Devices(Book):
    def remember(self, cluster: str, nodes: tuple[Node, ...]) -> None:
        """Adds what is new and notes what changed; nothing is forgotten. Only changed rows are written.

        A GPU of a named node that is not listed any more stays, as not present; one that turns up in another
        node moves there. `memory_mib` is the most that was ever promised of it. NotFound: the cluster.
        """
        clusters = tables.clusters
        if self._run(select(clusters.c.name).where(clusters.c.name == cluster)).scalar() is None:
            raise NotFound(f"There is no cluster named {cluster}.")
        self._remember_nodes(cluster, nodes)
        self._remember_devices(cluster, nodes)

    def known(self, cluster: str) -> tuple[Node, ...]:
        """Nodes by name, as last seen but without use: ready, nothing used, devices in the order of a slice."""
        by_node: dict[str, list[Device]] = {}
        for row in self._run(select(_devices).where(_devices.c.cluster == cluster)):
            device = codec.device_of(load(row.text), present=row.present)
            by_node.setdefault(row.node, []).append(device)
        rows = self._run(select(_nodes).where(_nodes.c.cluster == cluster).order_by(_nodes.c.name))
        return tuple(
            codec.node_of(load(row.text), tuple(sorted(by_node.get(row.name, []), key=_order)))
            for row in rows
        )

    def forget(self, cluster: str, node: str) -> None:
        """A person removed it: the node and its GPUs. NotFound."""
        self._run(delete(_devices).where(_devices.c.cluster == cluster, _devices.c.node == node))
        gone = delete(_nodes).where(_nodes.c.cluster == cluster, _nodes.c.name == node)
        if self._run(gone).rowcount != 1:
            raise NotFound(f"No node named {node} was ever seen in cluster {cluster}.")

    def _remember_nodes(self, cluster: str, nodes: tuple[Node, ...]) -> None:
        stored = {
            row.name: row.text
            for row in self._run(select(_nodes).where(_nodes.c.cluster == cluster))
        }
        new: list[dict[str, Any]] = []
        for node in nodes:
            text = dump(codec.node_data(node))
            if node.name not in stored:
                new.append({"cluster": cluster, "name": node.name, "text": text})
            elif stored[node.name] != text:
                self._run(
                    update(_nodes)
                    .where(_nodes.c.cluster == cluster, _nodes.c.name == node.name)
                    .values(text=text)
                )
        if new:
            self._connection.execute(insert(_nodes), new)

    def _remember_devices(self, cluster: str, nodes: tuple[Node, ...]) -> None:
        rows = self._run(select(_devices).where(_devices.c.cluster == cluster))
        stored = {row.uuid: (row.node, row.present, row.text) for row in rows}
        seen = {device.uuid: device for node in nodes for device in node.devices if device.present}
        new: list[dict[str, Any]] = []
        for uuid, device in seen.items():
            before = stored.get(uuid)
            text = dump(codec.device_data(_largest(device, before and before[2])))
            columns = {"node": device.node, "present": True, "text": text}
            if before is None:
                new.append({"cluster": cluster, "uuid": uuid, **columns})
            elif before != (device.node, True, text):
                self._change(cluster, uuid, columns)
        if new:
            self._connection.execute(insert(_devices), new)
        named = {node.name for node in nodes}
        for uuid, (node, present, _) in stored.items():
            if present and uuid not in seen and node in named:
                self._change(cluster, uuid, {"present": False})

    def _change(self, cluster: str, uuid: str, columns: dict[str, Any]) -> None:
        self._run(
            update(_devices)
            .where(_devices.c.cluster == cluster, _devices.c.uuid == uuid)
            .values(**columns)
        )


def _largest(device: Device, before: str | None) -> Device:
    """memory_mib as the most ever promised of this GPU; its own total changed (ECC, MIG): start anew."""
    if before is None:
        return device
    old = codec.device_of(load(before), present=True)
    if old.vram_mib != device.vram_mib:
        return device
    return replace(device, memory_mib=max(old.memory_mib, device.memory_mib))


def _order(device: Device) -> tuple[int, str]:
    return device.vram_mib, device.uuid
