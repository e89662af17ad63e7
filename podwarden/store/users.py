"""Users: names, roles, passwords."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, delete, func, select, update

from podwarden.domain.access import Role, User
from podwarden.errors import Conflict, NotFound
from podwarden.store import tables
from podwarden.store.book import Book, check_name
from podwarden.store.passwords import hash_password, password_fits

_table = tables.users


class Users(Book):
    def add(self, name: str, role: Role, password: str) -> User:
        """Invalid names `name` or `password`; Conflict: the name is taken."""
        check_name("name", name)
        user = User(name=name, role=role, created_at=self._now())
        added = self._insert(
            _table,
            name=name,
            role=role.value,
            password=hash_password(password),
            created_at=user.created_at,
            disabled=False,
        )
        if added is None:
            raise Conflict(f"There is a user named {name} already: choose another name.")
        return user

    def get(self, name: str) -> User:
        row = self._run(select(_table).where(_table.c.name == name)).one_or_none()
        if row is None:
            raise _not_found(name)
        return user_of(row)

    def list(self) -> tuple[User, ...]:
        return tuple(user_of(row) for row in self._run(select(_table).order_by(_table.c.name)))

    def count(self) -> int:
        return int(self._run(select(func.count()).select_from(_table)).scalar_one())

    def remove(self, name: str) -> None:
        """With the tokens. What the user owned keeps its owner's name. NotFound."""
        if self._run(delete(_table).where(_table.c.name == name)).rowcount != 1:
            raise _not_found(name)

    def set_password(self, name: str, password: str) -> None:
        """The user's tokens stay valid: revoke them where the old password may be known. Invalid; NotFound."""
        change = update(_table).where(_table.c.name == name)
        if self._run(change.values(password=hash_password(password))).rowcount != 1:
            raise _not_found(name)

    def set_disabled(self, name: str, *, disabled: bool) -> None:
        change = update(_table).where(_table.c.name == name).values(disabled=disabled)
        if self._run(change).rowcount != 1:
            raise _not_found(name)

    def verify(self, name: str, password: str) -> User | None:
        """The user, or None for a wrong name, a wrong password and a disabled user, each after the same time."""
        row = self._run(select(_table).where(_table.c.name == name)).one_or_none()
        fits = password_fits(None if row is None else row.password, password)
        return user_of(row) if row is not None and fits and not row.disabled else None


def user_of(row: Row[Any]) -> User:
    return User(
        name=row.name, role=Role(row.role), created_at=row.created_at, disabled=row.disabled
    )


def _not_found(name: str) -> NotFound:
    return NotFound(f"There is no user named {name}.")
