"""Storages: named places for data. Added and removed, never changed: what workloads refer to stays what it was."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from sqlalchemy import Row, delete, select

from podwarden.domain.storage import Storage
from podwarden.errors import Conflict, NotFound
from podwarden.store import tables
from podwarden.store.book import Book, check_name

_table = tables.storages


class Storages(Book):
    def add(self, storage: Storage) -> None:
        """Invalid names `name`; Conflict: the name is taken."""
        check_name("name", storage.name)
        if self._insert(_table, **asdict(storage)) is None:
            raise Conflict(
                f"There is a storage named {storage.name} already: choose another name.",
                code="NAME_TAKEN",
            )

    def get(self, name: str) -> Storage:
        row = self._run(select(_table).where(_table.c.name == name)).one_or_none()
        if row is None:
            raise _not_found(name)
        return _storage(row)

    def list(self, names: Collection[str] | None = None) -> tuple[Storage, ...]:
        """By name; names: only these, as far as they exist."""
        statement = select(_table).order_by(_table.c.name)
        if names is not None:
            statement = statement.where(_table.c.name.in_(list(names)))
        return tuple(_storage(row) for row in self._run(statement))

    def remove(self, name: str) -> None:
        """NotFound. Whether something uses it is the caller's business."""
        if self._run(delete(_table).where(_table.c.name == name)).rowcount != 1:
            raise _not_found(name)


def _storage(row: Row[Any]) -> Storage:
    return Storage(
        name=row.name,
        path=row.path,
        added_at=row.added_at,
        added_by=row.added_by,
        server=row.server,
        cluster=row.cluster,
        node=row.node,
        checked=row.checked,
    )


def _not_found(name: str) -> NotFound:
    return NotFound(f"There is no storage named {name}.")
