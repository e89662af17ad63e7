"""Orders: submit, stop, start, delete, priority. Each is one transaction and a hint; the loops do the rest."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace

from podwarden import scheduling
from podwarden.control import wares
from podwarden.control.answers import Submitted
from podwarden.control.ground import Sight, allow, allow_new, find
from podwarden.control.ledger import Entry
from podwarden.control.queries import Queries
from podwarden.control.snapshot import new_claimant
from podwarden.control.updates import Updates
from podwarden.domain.access import Role, User
from podwarden.domain.event import EventKind
from podwarden.domain.workload import (
    ENDED,
    HOLDING,
    Desire,
    Priority,
    Revision,
    Spec,
    State,
    Workload,
)
from podwarden.errors import Conflict, Forbidden, NotFound
from podwarden.store import Unit

ANSWER_WITHIN = 0.25  # seconds that a submit waits for the plan's word
SHORT_QUEUE = 50  # waiting workloads up to which it waits at all


class Workloads(Updates, Queries):
    """All use cases about workloads; see `Queries` and `Updates` too."""

    async def submit(
        self,
        actor: User,
        spec: Spec,
        *,
        dry_run: bool = False,
        idempotency: tuple[str, str] | None = None,
    ) -> Submitted:
        """Accepts a workload into the queue, or says why it can never run; then nothing is stored.

        dry_run: the same code up to the commit. idempotency: (key, hash of the body); the same twice is
        answered alike. Invalid; Forbidden; Conflict: the name or a port is taken.
        """
        allow_new(actor)
        _allow_devices(actor, spec)
        cluster = self._cluster_for(spec.cluster)
        row = self._new_row(actor, replace(spec, cluster=cluster))
        sight = await self._sight(cluster)
        await sight.past.know([row])
        refusal = self._refusal(row, sight)
        if refusal is not None:
            return Submitted(refusal=refusal)
        if dry_run:
            return await self._preview(row, sight)
        stored = await self._ledger.write(lambda entry: _store(entry, row, actor, idempotency))
        return await self._answer(stored)

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

        def order(row: Workload, entry: Entry) -> Workload:
            if row.state not in ENDED or row.desire is Desire.DELETE:
                raise Conflict(
                    f"{row.name} is {row.state.value}: only what has ended can be started.",
                    code="STATE_FORBIDS",
                )
            wares.check_start(entry.unit, row)
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

    def _new_row(self, actor: User, spec: Spec) -> Workload:
        now = self._clock.now()
        return Workload(
            id=secrets.token_hex(8),
            name=spec.name,
            owner=actor.name,
            cluster=spec.cluster,
            spec=spec,
            revision=1,
            state=State.QUEUED,
            desire=Desire.RUN,
            created_at=now,
            changed_at=now,
            queued_at=now,
        )

    async def _preview(self, row: Workload, sight: Sight) -> Submitted:
        row = await self._ledger.store.read(lambda unit: _checked(unit, row))
        now = self._clock.now()
        wish = new_claimant(row, sight.seen, sight.past, now.astimezone())
        _, verdict, placement = scheduling.preview(self._snapshot(sight), wish, now)
        return Submitted(verdict=verdict, placement=placement)

    async def _answer(self, stored: Workload) -> Submitted:
        """With the word of the plan that was made for it, where that comes soon."""
        books = self._ledger.books(stored.cluster)
        room = self._room(stored.cluster)
        if books is None or room is None or room.admission is None:
            return Submitted(stored)
        if len(books.queued) <= SHORT_QUEUE:
            await room.admission.planned(books.revision, ANSWER_WITHIN)
        now = books.get(stored.id) or stored
        return Submitted(now, books.verdicts.get(stored.id), now.placement)


def _store(
    entry: Entry, asked: Workload, actor: User, idempotency: tuple[str, str] | None
) -> Workload:
    """What was answered once is answered again, whatever became of names and ports since then."""
    unit = entry.unit
    if idempotency is not None:
        known = unit.idempotency.get(actor.name, *idempotency)
        if known is not None:
            return unit.workloads.get(str(known["workload"]))
    row = _checked(unit, asked)
    first = Revision(row.id, 1, row.spec, entry.now, actor.name)
    stored = entry.add(row, first)
    text = f"Submitted as {row.name}."
    if inside := wares.inside(asked.spec, row.spec):
        taken = ", ".join(str(port) for port in inside)
        text += (
            f" Port {taken} is taken on the local network: it is reached inside the cluster only."
        )
    entry.note(stored, EventKind.SUBMITTED, text, actor=actor.name)
    if idempotency is not None:
        unit.idempotency.put(actor.name, *idempotency, {"workload": row.id})
    return stored


def _checked(unit: Unit, row: Workload) -> Workload:
    """The new row with what only the store knows: its name is free, its ports are, its secrets exist."""
    try:
        unit.workloads.by_name(row.name, row.cluster)
    except NotFound:
        pass
    else:
        raise Conflict(
            f"There is a workload named {row.name} in cluster {row.cluster} already: choose another name.",
            code="NAME_TAKEN",
        )
    return replace(row, spec=wares.check(unit, row, row.spec))


def _allow_devices(actor: User, spec: Spec) -> None:
    if spec.devices and actor.role is not Role.ADMIN:
        raise Forbidden("Only admins may give a workload devices of its host (`devices`).")


def _saved(entry: Entry, row: Workload) -> Workload:
    """Writers come one at a time, and the row was read in this transaction: it cannot be stale."""
    saved = entry.save(row)
    assert saved is not None
    return saved
