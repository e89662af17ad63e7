"""Secrets of users: values that workloads refer to by name. Encrypted; owners are shown, values only to rendering."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, select, update

from podwarden.errors import Conflict, Invalid, NotFound
from podwarden.store import tables
from podwarden.store.book import Book, check_name
from podwarden.store.keys import Sealed

LONGEST = 256 * 1024  # characters
_table = tables.secrets


@dataclass(frozen=True, slots=True)
class SecretName:
    """What may be shown of a secret."""

    name: str
    owner: str
    changed_at: datetime
    registry: str = ""  # the host that it is a login of, "" for any other value
    made_for: str = ""  # the workload that PodWarden made it for, "" where somebody stored it


class Secrets(Book):
    def set(self, name: str, value: str, owner: str, *, registry: str = "") -> None:
        """Stores a new value; a secret that exists keeps its owner. Invalid names `name` or `value`.

        registry: the host that the value is a login of.
        """
        check_name("name", name)
        if not value or len(value) > LONGEST:
            raise Invalid.of("value", "", f"between 1 and {LONGEST:,} characters")
        sealed = self._means.keyring.seal(_label(name), value)
        columns = {
            "value": sealed.data,
            "key_id": sealed.key_id,
            "changed_at": self._now(),
            "registry": registry or None,
        }
        change = update(_table).where(_table.c.name == name).values(**columns)
        if self._run(change).rowcount != 1:
            self._insert(_table, name=name, owner=owner, **columns)

    def make(self, name: str, value: str, owner: str, workload: str) -> None:
        """A value that PodWarden made up for a workload. Invalid; Conflict: there is a secret of that name."""
        check_name("name", name)
        sealed = self._means.keyring.seal(_label(name), value)
        made = self._insert(
            _table,
            name=name,
            owner=owner,
            value=sealed.data,
            key_id=sealed.key_id,
            changed_at=self._now(),
            made_for=workload,
        )
        if made is None:
            raise Conflict(f"There is a secret named {name} already.")

    def get(self, name: str) -> str:
        """The value. NotFound; Unavailable: it cannot be decrypted, and what to do about it."""
        row = self._run(
            select(_table.c.value, _table.c.key_id).where(_table.c.name == name)
        ).one_or_none()
        if row is None:
            raise _not_found(name)
        return self._means.keyring.unseal(_label(name), Sealed(row.key_id, row.value))

    def names(self) -> tuple[str, ...]:
        return tuple(secret.name for secret in self.list())

    def list(self) -> tuple[SecretName, ...]:
        columns = ("name", "owner", "changed_at", "registry", "made_for")
        rows = self._run(select(*(_table.c[name] for name in columns)).order_by(_table.c.name))
        return tuple(
            SecretName(row.name, row.owner, row.changed_at, row.registry or "", row.made_for or "")
            for row in rows
        )

    def delete(self, name: str) -> None:
        if self._run(delete(_table).where(_table.c.name == name)).rowcount != 1:
            raise _not_found(name)


def _label(name: str) -> str:
    return f"secret/{name}"  # bound to the value: stored ones would not decrypt under another


def _not_found(name: str) -> NotFound:
    return NotFound(f"There is no secret named {name}.")
