"""What every repository has: its transaction, and the means of this store."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, CursorResult, Executable, Table

from podwarden.errors import Invalid
from podwarden.store.dialect import Dialect
from podwarden.store.keys import Keyring
from podwarden.store.recall import Recall

NAME_FIX = "lower-case letters, digits and hyphens, at most 63, with a letter or digit at both ends"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Means:
    """What a store lends to its repositories. clock: the process' wall time, UTC."""

    dialect: Dialect
    keyring: Keyring
    clock: Callable[[], datetime]
    recall: Recall
    inserts: dict[str, Executable] = field(default_factory=dict)

    def insert(self, table: Table) -> Executable:
        """Built once a table: building costs more than running."""
        statement = self.inserts.get(table.name)
        if statement is None:
            statement = self.inserts[table.name] = self.dialect.insert(table)
        return statement


class Book:
    """One noun's repository. It lives as long as the transaction."""

    def __init__(self, connection: Connection, means: Means, *, writes: bool) -> None:
        self._connection = connection
        self._means = means
        self._writes = writes

    def _run(self, statement: Executable) -> CursorResult[*tuple[Any, ...]]:
        result = self._connection.execute(statement)
        assert isinstance(result, CursorResult)
        return result

    def _insert(self, table: Table, **values: Any) -> Any | None:
        """The key of the new row, or None where a unique index has it already."""
        statement = self._means.insert(table)
        return self._connection.execute(statement, values).scalar_one_or_none()

    def _now(self) -> datetime:
        return self._means.clock()


def check_name(field: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise Invalid.of(field, name, NAME_FIX)
    return name
