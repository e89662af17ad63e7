"""Clusters: take one over, look at it, let it go. Nothing that runs in one is touched by any of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from podwarden.control.adoption import taken_over
from podwarden.control.answers import Adoption, ClusterView
from podwarden.control.clock import Clock
from podwarden.control.ground import allow_look
from podwarden.control.ledger import Entry, Ledger
from podwarden.control.link import Link
from podwarden.control.links import Links
from podwarden.control.queries import Queries
from podwarden.domain.access import Role, User
from podwarden.domain.cluster import Cluster
from podwarden.domain.event import EventKind
from podwarden.domain.inventory import Node
from podwarden.domain.observation import Observation
from podwarden.domain.workload import State, Workload
from podwarden.errors import Conflict, Forbidden, NotFound, Unavailable
from podwarden.kube.adopt import Adopted
from podwarden.store import Unit

MOST_SAID = 10  # records that could not be read, in what is said of a cluster
READ_WITHIN = 30.0  # seconds for the first complete look at a cluster

Probe = Callable[[str], Awaitable[tuple[str, str]]]  # kubeconfig -> (server, version)


class Clusters:
    """probe: one try to reach a cluster; Invalid, Unavailable or Refused with the cause and the fix."""

    def __init__(
        self,
        ledger: Ledger,
        links: Links,
        queries: Queries,
        clock: Clock,
        *,
        probe: Probe,
    ) -> None:
        self._ledger = ledger
        self._links = links
        self._clock = clock
        self._queries = queries
        self._probe = probe

    async def adopt(
        self, actor: User, name: str, kubeconfig: str, *, simulated: bool = False
    ) -> Adoption:
        """Reads the cluster as it is and takes over what PodWarden finds of its own in it.

        Invalid names a part of the kubeconfig; Unavailable: no answer, with the cause; Conflict: the name.
        """
        _admins(actor)
        if name in self._links.clusters:
            raise Conflict(f"There is a cluster named {name} already: choose another name.")
        server, version = await self._probe(kubeconfig)
        link = self._links.connect(name, kubeconfig)
        await link.start()
        try:
            seen = await self._complete(link, name)
            found = await link.adoptable()
            fence = await link.fence()
        finally:
            await link.close()
        unread = (f"Left alone in the cluster: {said}" for said in link.damaged[:MOST_SAID])
        notes = (*seen.capabilities.why, *unread)
        cluster = Cluster(name, server, self._clock.now(), version, simulated, notes)

        def work(entry: Entry) -> tuple[str, ...]:
            entry.unit.clusters.add(cluster, kubeconfig)
            for known in entry.unit.clusters.list():
                if known.server == server and known.name != name:
                    raise Conflict(f"{server} is looked after already, as {known.name}.")
            entry.unit.lease.lift(fence)
            names = tuple(n for a in found if (n := _take_over(entry, a, seen, name)))
            text = f"Cluster {name} ({server}, {version}) was added by {actor.name}."
            if names:
                text += f" {len(names)} workloads were taken over: {', '.join(names[:10])}."
            entry.tell(f"cluster/{name}", EventKind.CLUSTER, text, actor=actor.name, name=name)
            return names

        names = await self._ledger.write(work)
        await self._links.turn()
        # The link that stays reads the cluster once more: who asks next sees its nodes.
        with suppress(Unavailable, NotFound):
            await self._complete(self._links.get(name), name)
        return Adoption(cluster, names)

    async def list(self, actor: User) -> tuple[ClusterView, ...]:
        allow_look(actor)
        return self.views()

    def views(self) -> tuple[ClusterView, ...]:
        return tuple(self._view(name) for name in sorted(self._links.clusters))

    async def show(self, actor: User, name: str) -> ClusterView:
        allow_look(actor)
        if name not in self._links.clusters:
            raise NotFound(f"There is no cluster named {name}.")
        return self._view(name)

    async def kubeconfig(self, actor: User, name: str) -> str:
        """Admins only: whoever has it can do everything in the cluster."""
        _admins(actor)
        return await self._ledger.store.read(lambda unit: unit.clusters.kubeconfig(name))

    async def nodes(self, actor: User, cluster: str = "") -> tuple[tuple[str, Node], ...]:
        return await self._queries.nodes(actor, cluster)

    async def remove(self, actor: User, name: str) -> None:
        """Forgets the cluster and its workloads; what runs there goes on. Conflict: some wait in its queue."""
        _admins(actor)

        def work(entry: Entry) -> None:
            entry.unit.clusters.get(name)
            rows = _all_of(entry.unit, name)
            waiting = [row.name for row in rows if row.state is State.QUEUED]
            if waiting:
                many = "1 workload waits" if len(waiting) == 1 else f"{len(waiting)} workloads wait"
                raise Conflict(
                    f"{many} in the queue of {name} and would be lost: "
                    f"delete them first ({', '.join(waiting[:5])})."
                )
            for row in rows:
                entry.forget(row)
            entry.unit.clusters.remove(name)
            text = f"Cluster {name} was removed by {actor.name}; what runs there goes on."
            entry.tell(f"cluster/{name}", EventKind.CLUSTER, text, actor=actor.name, name=name)

        await self._ledger.write(work)
        await self._links.turn()

    def _view(self, name: str) -> ClusterView:
        cluster = self._links.clusters[name]
        seen = self._links.get(name).observe()
        return ClusterView(
            cluster,
            nodes=len(seen.nodes),
            gpus=sum(len(node.devices) for node in seen.nodes),
            reachable=seen.reachable,
            trouble=seen.trouble or self._queries.trouble(name),
        )

    async def _complete(self, link: Link, name: str) -> Observation:
        until = self._clock.monotonic() + READ_WITHIN
        seen = link.observe()
        while not seen.complete:
            left = until - self._clock.monotonic()
            if left <= 0:
                raise Unavailable(
                    seen.trouble or f"Cluster {name} was not read completely in 30 s."
                )
            await link.wait_change(seen.revision, left)
            seen = link.observe()
        return seen


def _take_over(entry: Entry, found: Adopted, seen: Observation, cluster: str) -> str:
    """Its name, "" when it is known already."""
    row, revisions = taken_over(found, seen, cluster, entry.now)
    try:
        entry.unit.workloads.get(row.id)
    except NotFound:
        pass
    else:
        return ""
    try:
        entry.add(row, *revisions)
    except Conflict:
        text = f"{row.name} was left in cluster {cluster}: its name is taken."
        entry.tell(f"cluster/{cluster}", EventKind.CLUSTER, text, name=row.name)
        return ""
    text = f"Taken over from cluster {cluster}: revision {row.revision}, {row.state.value}, owner {row.owner}."
    entry.note(row, EventKind.ADOPTED, text)
    return row.name


def _all_of(unit: Unit, cluster: str) -> list[Workload]:
    rows: list[Workload] = []
    after = ""
    while page := unit.workloads.list(cluster=cluster, limit=1000, after=after):
        rows.extend(page)
        after = page[-1].id
    return rows


def _admins(actor: User) -> None:
    if actor.role is not Role.ADMIN:
        raise Forbidden("Only admins may do this.")
