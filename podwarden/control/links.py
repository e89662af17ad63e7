"""The connections of this process: one per cluster, leading or not, so that every process can answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from podwarden.control.link import Link
from podwarden.control.loop import Turn
from podwarden.domain.cluster import Cluster
from podwarden.errors import NotFound, PodWardenError
from podwarden.store import Store, Unit

log = logging.getLogger("podwarden.control")

LOOK = 10.0  # seconds between looks at the list of clusters without a hint
Connect = Callable[[str, str], Link]  # name, kubeconfig; raises Invalid


class Links:
    """changed: set after clusters came or went."""

    def __init__(self, store: Store, connect: Connect) -> None:
        self._store = store
        self._connect = connect
        self._links: dict[str, Link] = {}
        self._clusters: dict[str, Cluster] = {}
        self.changed = asyncio.Event()
        self._one = asyncio.Lock()

    def get(self, cluster: str) -> Link:
        """NotFound: no such cluster (or not connected yet)."""
        link = self._links.get(cluster)
        if link is None:
            raise NotFound(f"There is no cluster named {cluster}.")
        return link

    @property
    def clusters(self) -> Mapping[str, Cluster]:
        return self._clusters

    def connect(self, name: str, kubeconfig: str) -> Link:
        """A connection of its own, for adoption; the caller closes it."""
        return self._connect(name, kubeconfig)

    async def turn(self) -> Turn:
        """Connect to clusters that came, close those that went."""
        async with self._one:
            return await self._sync()

    async def _sync(self) -> Turn:
        stored = {c.name: c for c in await self._store.read(lambda unit: unit.clusters.list())}
        gone = [
            name
            for name in self._links
            if name not in stored or stored[name].added_at != self._clusters[name].added_at
        ]
        for name in gone:
            del self._clusters[name]
            await self._links.pop(name).close()
        new = [cluster for name, cluster in stored.items() if name not in self._links]
        for cluster in new:
            await self._open(cluster)
        self._clusters = {name: stored[name] for name in self._links}
        if gone or new:
            self.changed.set()
        said = f"{len(new)} clusters came, {len(gone)} went" if gone or new else ""
        return Turn(said, LOOK)

    async def close(self) -> None:
        links = list(self._links.values())
        self._links.clear()
        for link in links:
            await link.close()

    async def _open(self, cluster: Cluster) -> None:
        def read(unit: Unit) -> str:
            return unit.clusters.kubeconfig(cluster.name)

        try:
            link = self._connect(cluster.name, await self._store.read(read))
            await link.start()
        except PodWardenError as error:
            log.warning("cluster %s: %s", cluster.name, error)
            return
        self._links[cluster.name] = link
