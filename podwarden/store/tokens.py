"""Tokens: the secret is shown once and stored as a hash."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import timedelta
from typing import Any

from sqlalchemy import Row, and_, delete, or_, select, update

from podwarden.domain.access import Role, Token, User
from podwarden.errors import Invalid, NotFound
from podwarden.store import tables
from podwarden.store.book import Book

PREFIX = "pw_"
USE_NOTED_EVERY = timedelta(minutes=1)
LONGEST_LABEL = 100
_table = tables.tokens


class Tokens(Book):
    def create(
        self, user: str, label: str, ttl: timedelta | None, session: bool = False
    ) -> tuple[Token, str]:
        """The token and its secret, which is never shown again. ttl None: without an end. NotFound: the user.

        Sessions and tokens that have ended are cleared away on the way.
        """
        now = self._now()
        if len(label) > LONGEST_LABEL:
            raise Invalid.of("label", label, f"at most {LONGEST_LABEL} characters")
        if not label.isprintable():  # it is shown on pages and terminals, and in events
            raise Invalid.of("label", label, "one line without control or invisible characters")
        if ttl is not None and ttl <= timedelta(0):
            raise Invalid.of("ttl", ttl, "a time above zero")
        users = tables.users
        if self._run(select(users.c.name).where(users.c.name == user)).scalar() is None:
            raise NotFound(f"There is no user named {user}.")
        self._run(delete(_table).where(_table.c.expires_at < now))
        token = Token(
            id=secrets.token_hex(6),
            user=user,
            label=label,
            created_at=now,
            expires_at=None if ttl is None else now + ttl,
            session=session,
        )
        secret = PREFIX + secrets.token_urlsafe(32)
        added = self._insert(
            _table,
            id=token.id,
            user=user,
            label=label,
            hash=_hash(secret),
            created_at=now,
            expires_at=token.expires_at,
            last_used_at=None,
            session=session,
        )
        assert added is not None
        return token, secret

    def find(self, secret: str) -> tuple[Token, User] | None:
        """Who this secret belongs to; None: nobody, ended, or its user is disabled.

        It is looked up by its hash, so that the time taken says nothing about stored secrets. In a write, the
        use is noted (`touch`); in a read nothing changes.
        """
        if not secret.startswith(PREFIX):
            return None
        digest = _hash(secret)
        users = tables.users
        row = self._run(
            select(
                _table, users.c.role, users.c.disabled, users.c.created_at.label("user_created_at")
            ).where(_table.c.user == users.c.name, _table.c.hash == digest)
        ).one_or_none()
        if row is None or not hmac.compare_digest(row.hash, digest):
            return None
        if row.disabled or (row.expires_at is not None and row.expires_at <= self._now()):
            return None
        if self._writes:
            self.touch(row.id)
        user = User(name=row.user, role=Role(row.role), created_at=row.user_created_at)
        return _token(row), user

    def due(self, token: Token) -> bool:
        """Its use has not been noted for a minute: worth a write with `touch`."""
        last = token.last_used_at
        return last is None or last <= self._now() - USE_NOTED_EVERY

    def touch(self, id_: str) -> None:
        """Notes that it was used, at most once a minute."""
        now = self._now()
        last = _table.c.last_used_at
        self._run(
            update(_table)
            .where(and_(_table.c.id == id_, or_(last.is_(None), last <= now - USE_NOTED_EVERY)))
            .values(last_used_at=now)
        )

    def list(self, user: str | None = None) -> tuple[Token, ...]:
        """Oldest first, ended ones included until they are cleared away."""
        statement = select(_table).order_by(_table.c.created_at, _table.c.id)
        if user is not None:
            statement = statement.where(_table.c.user == user)
        return tuple(_token(row) for row in self._run(statement))

    def get(self, id_: str) -> Token:
        row = self._run(select(_table).where(_table.c.id == id_)).one_or_none()
        if row is None:
            raise _not_found(id_)
        return _token(row)

    def revoke(self, id_: str) -> None:
        """NotFound."""
        if self._run(delete(_table).where(_table.c.id == id_)).rowcount != 1:
            raise _not_found(id_)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _not_found(id_: str) -> NotFound:
    return NotFound(f"There is no token with the id {id_}.")


def _token(row: Row[Any]) -> Token:
    return Token(
        id=row.id,
        user=row.user,
        label=row.label,
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
        session=row.session,
    )
