"""Workloads and their revisions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, bindparam, delete, or_, select, text, update

from podwarden.domain.workload import (
    ENDED,
    TRANSITIONS,
    Desire,
    Revision,
    State,
    Workload,
)
from podwarden.errors import Conflict, NotFound
from podwarden.store import codec, tables
from podwarden.store.book import Book
from podwarden.store.specs import spec_of, spec_text

STALE = "STALE"
NAME_TAKEN = "NAME_TAKEN"
AMBIGUOUS = "AMBIGUOUS"
STATE_FORBIDS = "STATE_FORBIDS"

MOST_LISTED = 1000
_CHUNK = 500  # rows asked for by number in one statement
_table = tables.workloads
_exists = text(tables.EXISTS)  # the words of the partial indexes, or they are not used
_active = text(tables.ACTIVE)

_BEFORE: dict[State, tuple[str, ...]] = {
    state: (
        state.value,
        *sorted(old.value for old, following in TRANSITIONS.items() if state in following),
    )
    for state in State
}
# Built once: the guards are in the WHERE, so that two savers of one version cannot both succeed.
_SAVE = {
    state: update(_table).where(
        _table.c.id == bindparam("of_id"),
        _exists,
        _table.c.version == bindparam("of_version"),
        _table.c.state.in_(before),
    )
    for state, before in _BEFORE.items()
}


def is_active(workload: Workload) -> bool:
    """Something is still to be done or watched: it has not ended, or its owner asked for more than that."""
    match workload.desire:
        case Desire.DELETE:
            return True
        case Desire.STOP:
            return workload.state not in (State.STOPPED, State.SUCCEEDED)
        case Desire.RUN:
            return workload.state not in ENDED or workload.state is State.STOPPED


class Workloads(Book):
    def add(self, workload: Workload, revision: Revision) -> None:
        """Stores it with its first (or, adopted, its current) revision. Conflict NAME_TAKEN: another one of this
        name is in the cluster, or this very workload is stored already.
        """
        seq = self._insert(
            _table,
            id=workload.id,
            created_at=workload.created_at,
            deleted_at=None,
            version=workload.version,
            **_columns(workload),
        )
        if seq is None:
            raise Conflict(
                f"The name {workload.name} is taken in cluster {workload.cluster}: choose another name, "
                "or delete the other workload first.",
                code=NAME_TAKEN,
            )
        self._add_revision(seq, revision)

    def get(self, id_: str) -> Workload:
        """NotFound: there is none, or it was deleted."""
        row = self._run(select(_table).where(_table.c.id == id_, _exists)).one_or_none()
        if row is None:
            raise _not_found(id_)
        return self._workload(row)

    def by_name(self, name: str, cluster: str | None = None) -> Workload:
        """NotFound; Conflict AMBIGUOUS where cluster is None and several have one of this name."""
        statement = select(_table).where(_table.c.name == name, _exists)
        if cluster is not None:
            statement = statement.where(_table.c.cluster == cluster)
        rows = self._run(statement.order_by(_table.c.cluster)).all()
        if not rows:
            where = f" in cluster {cluster}" if cluster else ""
            raise NotFound(f"There is no workload named {name}{where}.")
        if len(rows) > 1:
            raise Conflict(
                f"Several clusters have a workload named {name}: {', '.join(row.cluster for row in rows)}. "
                "Say which cluster is meant.",
                code=AMBIGUOUS,
            )
        return self._workload(rows[0])

    def list(
        self,
        *,
        states: Collection[State] | None = None,
        owner: str = "",
        cluster: str = "",
        search: str = "",
        limit: int = 100,
        after: str = "",
    ) -> tuple[Workload, ...]:
        """Oldest first. "" and None do not filter; search: a part of the name or owner. limit: at most 1,000.
        after: the id of the last one of the page before, also when that was deleted since.
        """
        statement = select(_table.c.seq, _table.c.version).where(_exists)
        if states is not None:
            statement = statement.where(_table.c.state.in_([state.value for state in states]))
        if owner:
            statement = statement.where(_table.c.owner == owner)
        if cluster:
            statement = statement.where(_table.c.cluster == cluster)
        if search:
            part = search.lower()
            statement = statement.where(
                or_(
                    _table.c.name.contains(part, autoescape=True),
                    _table.c.owner.contains(part, autoescape=True),
                )
            )
        if after:
            statement = statement.where(_table.c.seq > self._seq_of_any(after))
        return self._fetch(statement.limit(max(0, min(limit, MOST_LISTED))))

    def active(self, cluster: str | None = None) -> tuple[Workload, ...]:
        """Everything that is not at rest, oldest first: not ended, or ended otherwise than its owner asked."""
        statement = select(_table.c.seq, _table.c.version).where(_active)
        if cluster is not None:
            statement = statement.where(_table.c.cluster == cluster)
        return self._fetch(statement)

    def save(self, workload: Workload) -> Workload:
        """Stores a changed workload and returns it with its new version.

        Conflict STALE: somebody changed it since it was read (nothing is stored; read again, decide again).
        Conflict STATE_FORBIDS: the stored state cannot become this one. NotFound.
        """
        values = {
            "of_id": workload.id,
            "of_version": workload.version,
            "version": workload.version + 1,
            **_columns(workload),
        }
        if self._connection.execute(_SAVE[workload.state], values).rowcount != 1:
            raise self._refusal(workload)
        return replace(workload, version=workload.version + 1)

    def delete(self, id_: str) -> None:
        """Takes it out of every list and frees its name; its events stay. NotFound."""
        done = self._run(
            update(_table)
            .where(_table.c.id == id_, _exists)
            .values(deleted_at=self._now(), active=False, version=_table.c.version + 1)
        )
        if done.rowcount != 1:
            raise _not_found(id_)

    def prune(self, deleted_before: datetime, most: int) -> int:
        """Takes rows away that were deleted so long ago, with their revisions, at most `most`; how many went."""
        old = select(_table.c.seq).where(_table.c.deleted_at < deleted_before).limit(most)
        seqs = self._run(old).scalars().all()
        for chunk in _chunks(seqs):
            self._run(delete(_table).where(_table.c.seq.in_(chunk)))
        return len(seqs)

    def add_revision(self, revision: Revision) -> None:
        """NotFound; Conflict STALE: there is a revision of this number, made by somebody quicker."""
        self._add_revision(self._seq(revision.workload), revision)

    def revisions(self, id_: str) -> tuple[Revision, ...]:
        """Oldest first."""
        rows = self._run(
            select(tables.revisions)
            .where(tables.revisions.c.workload == self._seq(id_))
            .order_by(tables.revisions.c.number)
        )
        return tuple(_revision(id_, row) for row in rows)

    def revision(self, id_: str, number: int) -> Revision:
        row = self._run(
            select(tables.revisions).where(
                tables.revisions.c.workload == self._seq(id_), tables.revisions.c.number == number
            )
        ).one_or_none()
        if row is None:
            raise NotFound(f"This workload has no revision {number}.")
        return _revision(id_, row)

    def _add_revision(self, seq: int, revision: Revision) -> None:
        added = self._insert(
            tables.revisions,
            workload=seq,
            number=revision.number,
            spec=spec_text(revision.spec),
            made_at=revision.made_at,
            made_by=revision.made_by,
            note=revision.note,
        )
        if added is None:
            raise Conflict(
                f"Revision {revision.number} was made by somebody else at the same moment: look at it, then try again.",
                code=STALE,
            )

    def _refusal(self, workload: Workload) -> Conflict | NotFound:
        row = self._run(
            select(_table.c.version, _table.c.state).where(_table.c.id == workload.id, _exists)
        ).one_or_none()
        if row is None:
            return _not_found(workload.id)
        if row.version != workload.version:
            return Conflict(
                f"{workload.name} was changed by somebody else in the meantime: look at it, then try again.",
                code=STALE,
            )
        return Conflict(
            f"{workload.name} is {row.state} and cannot become {workload.state} from there.",
            code=STATE_FORBIDS,
        )

    def _seq(self, id_: str) -> int:
        seq = self._run(select(_table.c.seq).where(_table.c.id == id_, _exists)).scalar()
        if seq is None:
            raise _not_found(id_)
        return int(seq)

    def _seq_of_any(self, id_: str) -> int:
        """Of a deleted one too: a page goes on after what it showed last."""
        newest = select(_table.c.seq).where(_table.c.id == id_).order_by(_table.c.seq.desc())
        seq = self._run(newest.limit(1)).scalar()
        if seq is None:
            raise _not_found(id_)
        return int(seq)

    def _fetch(self, keys: Select[tuple[int, int]]) -> tuple[Workload, ...]:
        """The workloads of these (seq, version), decoding only those never read before."""
        wanted = [(row[0], row[1]) for row in self._run(keys.order_by(_table.c.seq))]
        found: dict[int, Workload] = {}
        missing: list[int] = []
        for seq, version in wanted:
            workload = self._means.recall.get(seq, version)
            if workload is None:
                missing.append(seq)
            else:
                found[seq] = workload
        for chunk in _chunks(missing):
            rows = self._run(select(_table).where(_table.c.seq.in_(chunk)))
            found.update((row.seq, self._workload(row)) for row in rows)
        return tuple(found[seq] for seq, _ in wanted)

    def _workload(self, row: Row[Any]) -> Workload:
        known = self._means.recall.get(row.seq, row.version)
        if known is not None:
            return known
        workload = _workload(row)
        if not self._writes:
            self._means.recall.keep(row.seq, workload)
        return workload


def _not_found(id_: str) -> NotFound:
    return NotFound(f"There is no workload with the id {id_}.")


def _chunks(seqs: Sequence[int]) -> Iterable[Sequence[int]]:
    return (seqs[start : start + _CHUNK] for start in range(0, len(seqs), _CHUNK))


def _columns(workload: Workload) -> dict[str, Any]:
    """Everything that may change."""
    return {
        "name": workload.name,
        "owner": workload.owner,
        "cluster": workload.cluster,
        "kind": workload.kind.value,
        "state": workload.state.value,
        "desire": workload.desire.value,
        "active": is_active(workload),
        "priority": int(workload.spec.priority),
        "revision": workload.revision,
        "applied_revision": workload.applied_revision,
        "changed_at": workload.changed_at,
        "queued_at": workload.queued_at,
        "started_at": workload.started_at,
        "ended_at": workload.ended_at,
        "keep_volumes": workload.keep_volumes,
        "spec": spec_text(workload.spec),
        "placement": codec.placement_data(workload.placement),
        "reason": codec.reason_data(workload.reason),
        "counts": workload.counts,
        "nodes": workload.nodes,
        "devices": workload.devices,
        "facts": workload.facts,
    }


def _workload(row: Row[Any]) -> Workload:
    return Workload(
        id=row.id,
        name=row.name,
        owner=row.owner,
        cluster=row.cluster,
        spec=spec_of(row.spec, row.name),
        revision=row.revision,
        state=State(row.state),
        desire=Desire(row.desire),
        created_at=row.created_at,
        changed_at=row.changed_at,
        queued_at=row.queued_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        placement=codec.placement_of(row.placement),
        reason=codec.reason_of(row.reason),
        applied_revision=row.applied_revision,
        keep_volumes=row.keep_volumes,
        version=row.version,
        counts=codec.pairs(row.counts),
        nodes=tuple(row.nodes),
        devices=tuple(row.devices),
        facts=codec.pairs(row.facts),
    )


def _revision(id_: str, row: Row[Any]) -> Revision:
    return Revision(
        workload=id_,
        number=row.number,
        spec=spec_of(row.spec, f"revision {row.number} of {id_}"),
        made_at=row.made_at,
        made_by=row.made_by,
        note=row.note,
    )
