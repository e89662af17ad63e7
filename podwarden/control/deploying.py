"""Deploying: one workload or several in one transaction, all or none; and the preview of it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from podwarden import catalog, scheduling
from podwarden.control import made, wares
from podwarden.control.answers import Made, Submitted
from podwarden.control.ground import UseCases, allow_host, allow_new
from podwarden.control.ledger import Entry
from podwarden.control.made import Offer
from podwarden.control.reach import check_servers
from podwarden.control.sight import Sight
from podwarden.control.snapshot import new_claimant
from podwarden.control.wares import Lan
from podwarden.domain.access import User
from podwarden.domain.event import EventKind
from podwarden.domain.placement import Claimant
from podwarden.domain.workload import Desire, Revision, Spec, State, Workload
from podwarden.errors import Conflict, Invalid, NotFound
from podwarden.store import Unit

ANSWER_WITHIN = 0.25  # seconds that a submit waits for the plan's word
SHORT_QUEUE = 50  # waiting workloads up to which it waits at all


@dataclass(frozen=True, slots=True)
class Ask:
    """One order: the row it is to become, and the secrets its template has made for it."""

    row: Workload
    offer: Offer
    lan: Lan


class Deploying(UseCases):
    async def submit(
        self,
        actor: User,
        spec: Spec,
        *,
        dry_run: bool = False,
        idempotency: tuple[str, str] | None = None,
        generated: Sequence[catalog.Generated] = (),
    ) -> Submitted:
        """Accepts a workload into the queue, or says why it can never run; then nothing is stored.

        dry_run: the same code up to the commit. idempotency: (key, hash of the body); the same twice is
        answered alike. generated: secrets to be made with it, see `catalog.Catalogue.generated`.
        Invalid; Forbidden; Conflict: the name, a port or a secret's name is taken.
        """
        offer = Offer(spec, tuple(generated))
        (answer,) = await self.submit_all(actor, (offer,), dry_run=dry_run, idempotency=idempotency)
        return answer

    async def submit_all(
        self,
        actor: User,
        offers: Sequence[Offer],
        *,
        dry_run: bool = False,
        idempotency: tuple[str, str] | None = None,
    ) -> tuple[Submitted, ...]:
        """Several in this order, in one transaction: where one is refused, or raises, nothing is stored.

        The answers stand in the order of the offers; after a refusal the others are empty.
        """
        allow_new(actor)
        asks: list[Ask] = []
        for offer in offers:
            allow_host(actor, offer.spec)
            cluster = self._cluster_for(offer.spec.cluster)
            row = self._new_row(actor, replace(offer.spec, cluster=cluster), len(asks))
            asks.append(Ask(row, offer, wares.lan_of(self._links.get(cluster).observe())))
        await check_servers(self._ledger.store, self._servers, [a.row.spec for a in asks])
        sights = {a.row.cluster: await self._sight(a.row.cluster) for a in asks}
        for cluster, sight in sights.items():
            await sight.past.know([a.row for a in asks if a.row.cluster == cluster])
        refusals = [self._refusal(a.row, sights[a.row.cluster]) for a in asks]
        if any(refusals):
            return tuple(Submitted(refusal=refusal) for refusal in refusals)
        if dry_run:
            return await self._preview(asks, sights)
        done = await self._ledger.write(lambda entry: _store(entry, asks, actor, idempotency))
        return await self._answer(done)

    def _new_row(self, actor: User, spec: Spec, place: int) -> Workload:
        """place: among those submitted with it; they stand in line in this order."""
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
            queued_at=now + timedelta(microseconds=place),
        )

    async def _preview(
        self, asks: Sequence[Ask], sights: dict[str, Sight]
    ) -> tuple[Submitted, ...]:
        """Each is judged with all of them in line."""

        def check(unit: Unit) -> list[Workload]:
            return [_checked(unit, a, alone=len(asks) == 1) for a in asks]

        rows = await self._ledger.store.read(check)
        now = self._clock.now()
        answers: dict[str, Submitted] = {}
        for cluster, sight in sights.items():
            wishes: list[Claimant] = [
                new_claimant(row, sight.seen, sight.past, now.astimezone())
                for row in rows
                if row.cluster == cluster
            ]
            view = self._snapshot(sight)
            view = replace(view, claimants=(*view.claimants, *wishes[:-1]))
            plan, _, _ = scheduling.preview(view, wishes[-1], now)
            places = {placement.workload: placement for placement in plan.placements}
            for wish in wishes:
                verdict = plan.verdict(wish.workload)
                answers[wish.workload] = Submitted(
                    verdict=verdict, placement=places.get(wish.workload)
                )
        return tuple(answers[row.id] for row in rows)

    async def _answer(
        self, done: Sequence[tuple[Workload, tuple[Made, ...]]]
    ) -> tuple[Submitted, ...]:
        """With the word of the plan that was made for them, where that comes soon."""
        for cluster in dict.fromkeys(row.cluster for row, _ in done):
            books, room = self._ledger.books(cluster), self._room(cluster)
            if books is None or room is None or room.admission is None:
                continue
            if len(books.queued) <= SHORT_QUEUE:
                await room.admission.planned(books.revision, ANSWER_WITHIN)
        answers = []
        for stored, secrets_made in done:
            books = self._ledger.books(stored.cluster)
            if books is None or self._room(stored.cluster) is None:
                answers.append(Submitted(stored, made=secrets_made))
                continue
            now = books.get(stored.id) or stored
            verdict = books.verdicts.get(stored.id)
            answers.append(Submitted(now, verdict, now.placement, made=secrets_made))
        return tuple(answers)


def _store(
    entry: Entry, asks: Sequence[Ask], actor: User, idempotency: tuple[str, str] | None
) -> list[tuple[Workload, tuple[Made, ...]]]:
    """What was answered once is answered again, whatever became of names and ports since then."""
    unit = entry.unit
    if idempotency is not None:
        known = unit.idempotency.get(actor.name, *idempotency)
        if known is not None:
            return [_again(unit, one) for one in known["workloads"]]
    done = [_store_one(entry, ask, actor, alone=len(asks) == 1) for ask in asks]
    if idempotency is not None:
        told = [
            {"id": row.id, "made": [[m.name, m.parameter, m.title] for m in secrets_made]}
            for row, secrets_made in done
        ]
        unit.idempotency.put(actor.name, *idempotency, {"workloads": told})
    return done


def _again(unit: Unit, told: dict[str, list[list[str]]]) -> tuple[Workload, tuple[Made, ...]]:
    row = unit.workloads.get(str(told["id"]))
    return row, made.told_again(unit, row.name, told["made"])


def _store_one(
    entry: Entry, ask: Ask, actor: User, *, alone: bool
) -> tuple[Workload, tuple[Made, ...]]:
    unit = entry.unit
    row = _checked(unit, ask, alone=alone)
    secrets_made = made.make(unit, row.name, actor.name, ask.offer.generated)
    first = Revision(row.id, 1, row.spec, entry.now, actor.name)
    stored = entry.add(row, first)
    text = f"Submitted as {row.name}."
    if inside := wares.inside(ask.row.spec, row.spec):
        taken = ", ".join(str(port) for port in inside)
        text += (
            f" Port {taken} is taken on the local network: it is reached inside the cluster only."
        )
    if secrets_made:
        text += f" Secrets made for it: {', '.join(one.name for one in secrets_made)}."
    entry.note(stored, EventKind.SUBMITTED, text, actor=actor.name)
    return stored, secrets_made


def _checked(unit: Unit, ask: Ask, *, alone: bool) -> Workload:
    """The new row with what only the store knows: its name is free, its ports are, its secrets exist."""
    row = ask.row
    try:
        unit.workloads.by_name(row.name, row.cluster)
    except NotFound:
        pass
    else:
        raise Conflict(
            f"There is a workload named {row.name} in cluster {row.cluster} already: choose another name.",
            code="NAME_TAKEN",
        )
    made.check(unit, row.name, row.owner, ask.offer.generated)
    try:
        spec = wares.check(unit, row, row.spec, ask.lan, coming=ask.offer.coming)
        return replace(row, spec=spec)
    except Invalid as error:
        if alone:
            raise
        raise Invalid(error.problems, source=row.name) from error
