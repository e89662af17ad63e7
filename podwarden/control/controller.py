"""All use cases in one hand, as the API and the pages are given them."""

from __future__ import annotations

from dataclasses import dataclass

from podwarden.catalog import Catalogue
from podwarden.control.access import Access
from podwarden.control.answers import Status
from podwarden.control.clusters import Clusters
from podwarden.control.feed import Feed
from podwarden.control.leader import Leader
from podwarden.control.secrets import Secrets
from podwarden.control.storage import Storages
from podwarden.control.workloads import Workloads
from podwarden.store import Store


@dataclass(frozen=True, slots=True)
class Controller:
    workloads: Workloads
    clusters: Clusters
    access: Access
    storage: Storages
    secrets: Secrets
    feed: Feed
    catalogue: Catalogue
    leader: Leader
    store: Store

    async def status(self) -> Status:
        """What this process does, and who leads."""
        holder, _, _ = await self.store.read(lambda unit: unit.lease.current())
        sentences = [
            f"{loop.name}: {loop.trouble or loop.said}"
            for room in self.leader.rooms.values()
            for loop in room.loops
            if loop.trouble or loop.said
        ]
        views = self.clusters.views()
        return Status(self.leader.leading, holder, views, tuple(sentences))
