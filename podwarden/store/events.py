"""Append-only facts. Writers come one at a time (dialect.py), so an id that is seen has no lower one still to come.

The newest KEPT are kept: something that goes wrong again and again must not fill the disk.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import Row, delete, func, select

from podwarden.domain.event import Event, EventKind
from podwarden.store import tables
from podwarden.store.book import Book

KEPT = 200_000  # events, about 60 MB
_table = tables.events


class Events(Book):
    def append(self, event: Event) -> Event:
        """The event with its id. event.id is not looked at."""
        number = self._insert(
            _table,
            at=event.at,
            subject=event.subject,
            kind=event.kind.value,
            text=event.text,
            actor=event.actor,
            code=event.code,
            name=event.name,
        )
        assert number is not None
        return replace(event, id=int(number))

    def of(self, subject: str, after: int = 0, limit: int = 100) -> tuple[Event, ...]:
        """Events of one subject with ids above `after`, oldest first."""
        rows = self._run(
            select(_table)
            .where(_table.c.subject == subject, _table.c.id > after)
            .order_by(_table.c.id)
            .limit(limit)
        )
        return tuple(_event(row) for row in rows)

    def latest(self, subject: str, limit: int = 100) -> tuple[Event, ...]:
        """The newest `limit` events of one subject, oldest of them first."""
        rows = self._run(
            select(_table)
            .where(_table.c.subject == subject)
            .order_by(_table.c.id.desc())
            .limit(limit)
        ).all()
        return tuple(_event(row) for row in reversed(rows))

    def since(self, id_: int, limit: int = 1000) -> tuple[Event, ...]:
        """Events of all subjects with ids above `id_`, oldest first."""
        rows = self._run(select(_table).where(_table.c.id > id_).order_by(_table.c.id).limit(limit))
        return tuple(_event(row) for row in rows)

    def last_id(self) -> int:
        """0 when nothing ever happened."""
        newest = self._run(select(_table.c.id).order_by(_table.c.id.desc()).limit(1)).scalar()
        return int(newest or 0)

    def prune(self, most: int, kept: int = KEPT) -> int:
        """Takes away what is older than the newest `kept`, at most about `most` at a time; how many went."""
        oldest = self._run(select(func.min(_table.c.id))).scalar()
        if oldest is None:
            return 0
        last = min(self.last_id() - kept, int(oldest) + most - 1)
        return self._run(delete(_table).where(_table.c.id <= last)).rowcount


def _event(row: Row[Any]) -> Event:
    return Event(
        at=row.at,
        subject=row.subject,
        kind=EventKind(row.kind),
        text=row.text,
        actor=row.actor,
        code=row.code,
        id=row.id,
        name=row.name,
    )
