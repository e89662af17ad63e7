"""Questions about workloads, the queue and the GPUs. Nothing here changes anything."""

from __future__ import annotations

from collections.abc import AsyncIterator

from podwarden.control import addresses
from podwarden.control.answers import Gpu, Queued
from podwarden.control.books import Books
from podwarden.control.ground import UseCases, allow_look, find
from podwarden.control.snapshot import holdings, merge_known
from podwarden.domain.access import User
from podwarden.domain.event import Event
from podwarden.domain.inventory import Holding, Node
from podwarden.domain.placement import Snapshot, Verdict
from podwarden.domain.workload import Desire, Revision, State, Workload
from podwarden.errors import NotFound, shorten
from podwarden.store import Unit

MOST = 1000  # rows or events per answer


class Queries(UseCases):
    async def list(
        self,
        actor: User,
        *,
        states: frozenset[State] = frozenset(),
        owner: str = "",
        cluster: str = "",
        search: str = "",
        limit: int = 100,
        after: str = "",
    ) -> tuple[Workload, ...]:
        """Oldest first. after: the id of the last one of the page before (NotFound)."""
        allow_look(actor)
        return await self._ledger.store.read(
            lambda unit: unit.workloads.list(
                states=states or None,
                owner=owner,
                cluster=cluster,
                search=search,
                limit=min(limit, MOST),
                after=after,
            )
        )

    async def show(self, actor: User, ref: str, cluster: str = "") -> Workload:
        allow_look(actor)
        return await self._ledger.store.read(lambda unit: find(unit, ref, cluster))

    def verdict(self, workload: str) -> Verdict | None:
        """The last plan's word on a waiting workload; None when it does not wait, or another process leads."""
        for books in self._ledger.all_books():
            if workload in books.queued:
                return books.verdicts.get(workload)
        return None

    def urls(self, workload: Workload) -> tuple[str, ...]:
        """Where it can be reached from the local network."""
        try:
            seen = self._links.get(workload.cluster).observe()
        except NotFound:
            return ()
        return addresses.urls(workload, seen)

    async def revisions(self, actor: User, ref: str, cluster: str = "") -> tuple[Revision, ...]:
        allow_look(actor)

        def read(unit: Unit) -> tuple[Revision, ...]:
            return tuple(unit.workloads.revisions(find(unit, ref, cluster).id))

        return await self._ledger.store.read(read)

    async def events(
        self, actor: User, ref: str, cluster: str = "", *, after: int = 0, limit: int = 200
    ) -> tuple[Event, ...]:
        """Oldest first; also of a deleted workload, by its id."""
        allow_look(actor)

        def read(unit: Unit) -> tuple[Event, ...]:
            try:
                subject = find(unit, ref, cluster).id
            except NotFound:
                subject = ref
                if not unit.events.of(ref, 0, 1):
                    raise
            return unit.events.of(subject, after, min(limit, MOST))

        return await self._ledger.store.read(read)

    async def logs(
        self,
        actor: User,
        ref: str,
        cluster: str = "",
        *,
        instance: str | None = None,
        follow: bool = False,
        tail: int | None = None,
    ) -> AsyncIterator[str]:
        """Lines. NotFound at once, not with the first line; nothing comes of a workload that never ran."""
        row = await self.show(actor, ref, cluster)
        link = self._links.get(row.cluster)
        if instance is not None:
            known = link.observe().instances.get(row.id, ())
            if instance not in {each.name for each in known}:
                raise NotFound(f"There is no {shorten(instance)} of {row.name} now.")
        return link.logs(row.id, instance=instance, follow=follow, tail=tail)

    async def queue(self, actor: User, cluster: str = "") -> tuple[Queued, ...]:
        """In the order of the last plan; what no plan has seen yet comes last, by age."""
        allow_look(actor)
        lines: list[Queued] = []
        for name in self._clusters(cluster):
            books = self._ledger.books(name) or (await self._sight(name)).books
            lines.extend(_in_line(books))
        return tuple(lines)

    async def gpus(self, actor: User, cluster: str = "") -> tuple[Gpu, ...]:
        """Every GPU ever seen, by cluster, node and index."""
        allow_look(actor)
        found: list[Gpu] = []
        now = self._clock.now()
        for name in self._clusters(cluster):
            sight = await self._sight(name)
            simulated = self._links.clusters[name].simulated
            held: dict[str, list[Holding]] = {}
            for holding in holdings(sight.seen, sight.books, sight.past, now):
                held.setdefault(holding.device, []).append(holding)
            kept = self._kept(name, sight.books)
            for node in merge_known(sight.seen.nodes, sight.known):
                found.extend(
                    Gpu(
                        name,
                        device,
                        tuple(held.get(device.uuid, ())),
                        kept.get(device.uuid, ""),
                        simulated or node.simulated,
                    )
                    for device in sorted(node.devices, key=lambda d: (d.index, d.uuid))
                )
        return tuple(found)

    async def nodes(self, actor: User, cluster: str = "") -> tuple[tuple[str, Node], ...]:
        allow_look(actor)
        found: list[tuple[str, Node]] = []
        for name in self._clusters(cluster):
            sight = await self._sight(name)
            found.extend((name, node) for node in merge_known(sight.seen.nodes, sight.known))
        return tuple(found)

    async def snapshot(self, actor: User, cluster: str) -> Snapshot:
        """What a plan would be made from now. cluster may be "" where there is one."""
        allow_look(actor)
        return self._snapshot(await self._sight(self._cluster_for(cluster)))

    def _kept(self, cluster: str, books: Books) -> dict[str, str]:
        """GPU -> the workload it is kept for: the head of the queue, or one that was just admitted."""
        kept: dict[str, str] = {}
        room = self._room(cluster)
        if room is not None and room.admission is not None:
            for hold in room.admission.plan.holds:
                row = books.get(hold.workload)
                kept[hold.device] = row.name if row is not None else ""
        for row in books.holding.values():
            if row.placement is not None and row.state is State.STARTING and not row.devices:
                kept.update((d, row.name) for slot in row.placement.slots for d in slot.devices)
        return kept


def _in_line(books: Books) -> list[Queued]:
    def place(row: Workload) -> tuple[int, int, float]:
        verdict = books.verdicts.get(row.id)
        since = (row.queued_at or row.created_at).timestamp()
        if verdict is not None and verdict.position:
            return verdict.position, 0, since
        return 1 << 30, -int(row.spec.priority), since

    rows = [row for row in books.queued.values() if row.desire is Desire.RUN]
    return [Queued(row, books.verdicts.get(row.id)) for row in sorted(rows, key=place)]
