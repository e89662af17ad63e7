"""Orders: stop, start, delete, priority. Each is one transaction and a hint; the loops do the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from podwarden.control import made, wares
from podwarden.control.deploying import Deploying
from podwarden.control.fits import Fits
from podwarden.control.ground import allow, find
from podwarden.control.ledger import Entry
from podwarden.control.queries import Queries
from podwarden.control.updates import Updates
from podwarden.domain.access import User
from podwarden.domain.event import EventKind
from podwarden.domain.workload import ENDED, HOLDING, Desire, Priority, State, Workload
from podwarden.errors import Conflict


class Workloads(Deploying, Updates, Queries, Fits):
    """All use cases about workloads; see `Deploying`, `Updates`, `Queries` and `Fits` too."""

    async def stop(self, actor: User, ref: str, cluster: str = "") -> Workload:
        """Ends it and keeps it: its volumes, its revisions, its place in lists. Conflict: it has ended."""

        def order(row: Workload, entry: Entry) -> Workload:
            if row.desire is Desire.DELETE:
                raise Conflict(f"{row.name} is being deleted.", code="STATE_FORBIDS")
            if row.state in ENDED:
                raise Conflict(f"{row.name} is {row.state.value} already.", code="STATE_FORBIDS")
            waiting = row.state is State.QUEUED
            return replace(
                row,
                desire=Desire.STOP,
                state=State.STOPPED if waiting else State.STOPPING,
                ended_at=entry.now if waiting else None,
                reason=None,
                changed_at=entry.now,
            )

        told = EventKind.STOP_ASKED, "Stop asked for."
        return await self._order(actor, ref, cluster, order, told=told)

    async def start(self, actor: User, ref: str, cluster: str = "") -> Workload:
        """Into the queue again. Conflict: it has not ended, is being deleted, or a port of it was taken meanwhile."""
        lans = {name: wares.lan_of(self._links.get(name).observe()) for name in self._clusters("")}

        def order(row: Workload, entry: Entry) -> Workload:
            if row.state not in ENDED or row.desire is Desire.DELETE:
                raise Conflict(
                    f"{row.name} is {row.state.value}: only what has ended can be started.",
                    code="STATE_FORBIDS",
                )
            wares.check_start(entry.unit, row, lans.get(row.cluster, wares.Lan()))
            return replace(
                row,
                desire=Desire.RUN,
                state=State.QUEUED,
                queued_at=entry.now,
                ended_at=None,
                placement=None,
                reason=None,
                counts=(),
                nodes=(),
                devices=(),
                facts=(),
                changed_at=entry.now,
            )

        told = EventKind.START_ASKED, "Start asked for."
        return await self._order(actor, ref, cluster, order, told=told)

    async def delete(
        self, actor: User, ref: str, cluster: str = "", *, keep_volumes: bool = True
    ) -> Workload:
        """Takes it out of the cluster, then out of the store. What was never started is gone at once."""

        def work(entry: Entry) -> Workload:
            row = find(entry.unit, ref, cluster)
            allow(actor, row)
            going = row.state in HOLDING or row.state is State.QUEUED
            new = replace(
                row,
                desire=Desire.DELETE,
                state=State.STOPPING if going else row.state,
                keep_volumes=keep_volumes,
                reason=None,
                changed_at=entry.now,
            )
            kept = "Its volumes are kept" if keep_volumes else "Its volumes go, too"
            entry.note(row, EventKind.DELETE_ASKED, f"Delete asked for. {kept}.", actor=actor.name)
            saved = _saved(entry, new)
            if row.state is State.QUEUED and row.placement is None and not row.applied_revision:
                entry.note(row, EventKind.DELETED, f"{row.name} is gone; it was never started.")
                if not keep_volumes:
                    made.forget(entry.unit, row)
                entry.forget(saved)
            return saved

        return await self._ledger.write(work)

    async def set_priority(
        self, actor: User, ref: str, cluster: str = "", *, priority: Priority
    ) -> Workload:
        """Where it stands in the queue from now on. Nothing that runs is touched."""

        def order(row: Workload, entry: Entry) -> Workload:
            return replace(row, spec=replace(row.spec, priority=priority), changed_at=entry.now)

        told = EventKind.PRIORITY, f"Priority set to {priority.word}."
        return await self._order(actor, ref, cluster, order, told=told)

    async def _order(
        self,
        actor: User,
        ref: str,
        cluster: str,
        order: Callable[[Workload, Entry], Workload],
        *,
        told: tuple[EventKind, str],
    ) -> Workload:
        def work(entry: Entry) -> Workload:
            row = find(entry.unit, ref, cluster)
            allow(actor, row)
            saved = _saved(entry, order(row, entry))
            entry.note(saved, *told, actor=actor.name)
            return saved

        return await self._ledger.write(work)


def _saved(entry: Entry, row: Workload) -> Workload:
    """Writers come one at a time, and the row was read in this transaction: it cannot be stale."""
    saved = entry.save(row)
    assert saved is not None
    return saved
