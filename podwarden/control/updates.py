"""Updates and the way back: what will happen is decided, and said, before anything changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from podwarden import catalog
from podwarden.control import made, revising, wares, ways
from podwarden.control.answers import Made, Updated
from podwarden.control.ground import UseCases, allow, allow_host, find
from podwarden.control.ledger import Entry
from podwarden.control.made import Offer
from podwarden.control.reach import check_servers
from podwarden.control.wares import Lan
from podwarden.control.ways import Way
from podwarden.domain.access import User
from podwarden.domain.event import EventKind
from podwarden.domain.workload import (
    HOLDING,
    Desire,
    Kind,
    Revision,
    Spec,
    State,
    Volume,
    VolumeKind,
    Workload,
)
from podwarden.errors import Conflict, Invalid, Refused
from podwarden.store import Unit

TRIES = 5  # while PodWarden's own loops keep writing the row


class Updates(UseCases):
    async def update(
        self,
        actor: User,
        ref: str,
        spec: Spec,
        cluster: str = "",
        *,
        recreate: bool = False,
        dry_run: bool = False,
        generated: Sequence[catalog.Generated] = (),
    ) -> Updated:
        """A new revision. Without room for a second copy it needs `recreate`: Conflict UPDATE_NEEDS_DOWNTIME.

        Invalid: a field that cannot change. Conflict: a job that was started, a port that is taken. Refused: it can
        never run. generated: secrets that its template has made; those it has are kept.
        """
        row = await self._ledger.store.read(lambda unit: find(unit, ref, cluster))
        offer = Offer(spec, tuple(generated))
        return await self._revise(
            actor, row, offer, recreate=recreate, dry_run=dry_run, note="", kind=EventKind.UPDATED
        )

    async def rollback(
        self,
        actor: User,
        ref: str,
        cluster: str = "",
        *,
        revision: int | None = None,
        recreate: bool = False,
        dry_run: bool = False,
    ) -> Updated:
        """The spec of an earlier revision (None: the one before) again, as a new revision. NotFound."""
        row = await self._ledger.store.read(lambda unit: find(unit, ref, cluster))
        number = revision if revision is not None else row.revision - 1
        if number < 1 or number == row.revision:
            raise Conflict(
                f"{row.name} has no revision before revision {row.revision}."
                if revision is None
                else f"{row.name} is at revision {row.revision}: name another one."
            )
        before = await self._ledger.store.read(lambda unit: unit.workloads.revision(row.id, number))
        return await self._revise(
            actor,
            row,
            Offer(replace(before.spec, priority=row.spec.priority)),
            recreate=recreate,
            dry_run=dry_run,
            note=f"back to revision {number}",
            kind=EventKind.ROLLED_BACK,
        )

    async def _revise(
        self,
        actor: User,
        row: Workload,
        offer: Offer,
        *,
        recreate: bool,
        dry_run: bool,
        note: str,
        kind: EventKind,
    ) -> Updated:
        """Where a loop of PodWarden's own wrote the row meanwhile, the way is chosen anew; what another person
        did meanwhile is not overrun: Conflict STALE.
        """
        tries = TRIES
        while True:
            try:
                return await self._revise_once(
                    actor, row, offer, recreate=recreate, dry_run=dry_run, note=note, kind=kind
                )
            except Conflict as conflict:
                tries -= 1
                if conflict.code != "STALE" or not tries:
                    raise
                known = row
                row = await self._ledger.store.read(partial(_by_id, row.id))
                if (row.revision, row.desire) != (known.revision, known.desire):
                    raise

    async def _revise_once(
        self,
        actor: User,
        row: Workload,
        offer: Offer,
        *,
        recreate: bool,
        dry_run: bool,
        note: str,
        kind: EventKind,
    ) -> Updated:
        allow(actor, row)
        offer = made.kept(offer, row.spec)
        spec = offer.spec
        allow_host(actor, spec)
        spec = replace(spec, cluster=row.cluster)
        _check_fixed(row, spec)
        if row.desire is Desire.DELETE:
            raise Conflict(f"{row.name} is being deleted.", code="STATE_FORBIDS")
        await check_servers(self._ledger.store, self._servers, [spec])
        await self._check_fits(replace(row, spec=spec))
        lan = wares.lan_of(self._links.get(row.cluster).observe())
        asked = spec
        spec = await self._ledger.store.read(
            lambda unit: wares.check(unit, row, asked, lan, coming=offer.coming)
        )
        way = await self._way(row, spec, recreate=recreate)
        if dry_run or way.how == "nothing":
            return Updated(row, way.how, way.text)
        offer = replace(offer, spec=spec)
        stored, secrets_made = await self._ledger.write(
            lambda entry: _commit(
                entry, row, offer, way, lan=lan, actor=actor.name, note=note, kind=kind
            )
        )
        return Updated(stored, way.how, way.text, secrets_made)

    async def _check_fits(self, row: Workload) -> None:
        """Refused, with the reason's code: as at a submit, what can never run is not stored."""
        sight = await self._sight(row.cluster)
        await sight.past.know([row])
        reason = self._refusal(row, sight)
        if reason is not None:
            raise Refused(reason.text, code=str(reason.code))

    async def _way(self, row: Workload, spec: Spec, *, recreate: bool) -> Way:
        if spec == row.spec:
            return Way("nothing", f"{row.name} is as described already: nothing changes.")
        if row.state not in HOLDING:
            when = "when it starts" if row.state is State.QUEUED else "when it is started again"
            return Way("replace", f"Revision {row.revision + 1} of {row.name} counts {when}.")
        if row.desire is not Desire.RUN:
            raise Conflict(f"{row.name} is {row.state.value}: wait until it has stopped.")
        if row.kind is Kind.JOB:
            raise Conflict(
                f"{row.name} is a job that was started, and a started job cannot change: "
                "stop it first, then update and start it again.",
                code="STATE_FORBIDS",
            )
        sight = await self._sight(row.cluster)
        view = self._snapshot(sight)
        return ways.choose(view, sight, row, spec, self._clock.now(), recreate=recreate)


def _check_fixed(row: Workload, spec: Spec) -> None:
    """What an update cannot change. Invalid names the field."""
    if spec.name != row.name:
        raise Invalid.of("name", spec.name, f"{row.name}, since an update keeps the name")
    if spec.kind is not row.kind:
        raise Invalid.of(
            "kind", spec.kind.value, f"{row.kind.value}, since an update keeps the kind"
        )
    before = {v.name: v for v in row.spec.volumes if v.kind is VolumeKind.DISK}
    for number, volume in enumerate(spec.volumes):
        old: Volume | None = before.get(volume.name)
        if old is not None and volume.kind is VolumeKind.DISK and _smaller(volume, old):
            raise Invalid.of(
                f"volumes[{number}].size",
                f"{volume.size_mib} MiB",
                f"at least {old.size_mib} MiB, as it is",
            )


def _smaller(new: Volume, old: Volume) -> bool:
    return (new.size_mib or 0) < (old.size_mib or 0)


def _by_id(key: str, unit: Unit) -> Workload:
    return unit.workloads.get(key)


def _commit(
    entry: Entry,
    row: Workload,
    offer: Offer,
    way: Way,
    *,
    lan: Lan,
    actor: str,
    note: str,
    kind: EventKind,
) -> tuple[Workload, tuple[Made, ...]]:
    """Conflict STALE: somebody changed it since the way was chosen."""
    number, spec = row.revision + 1, offer.spec
    if wares.check(entry.unit, row, spec, lan, coming=offer.coming) != spec:
        raise _stale(row)  # a port was taken since the way was chosen
    if way.how == "wait":
        until = entry.now + timedelta(seconds=spec.surge_wait_s)
        order = revising.Pending(spec, actor, note, until)
        made_now = made.make(entry.unit, row.name, row.owner, offer.generated)
        saved = entry.save(revising.waiting(row, order))
        if saved is None:
            raise _stale(row)
        entry.note(saved, kind, way.text, actor=actor)
        return saved, made_now
    if way.how == "replace":
        new = replace(revising.waiting(row, None), spec=spec, revision=number, changed_at=entry.now)
    else:
        new = revising.begun(row, spec, way.placement, mode=way.how, number=number, now=entry.now)
    secrets_made = made.make(entry.unit, row.name, row.owner, offer.generated)
    saved = entry.save(new)
    if saved is None:
        raise _stale(row)
    entry.unit.workloads.add_revision(Revision(row.id, number, spec, entry.now, actor, note))
    said = f"Revision {number}{f' ({note})' if note else ''}: {way.text}"
    entry.note(saved, kind, said, actor=actor)
    return saved, secrets_made


def _stale(row: Workload) -> Conflict:
    return Conflict(
        f"{row.name} was changed by somebody else in the meantime: look at it, then try again.",
        code="STALE",
    )
