"""Answers kept for a day, so that a request that is sent twice is done once.

Either `get` … work … `put` in one write, or, where the work takes more than one transaction: `claim`, work, `put`
(`drop` when it failed). Two requests of one key at the same time: one is told that the other is at work.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import Row, delete, select, update

from podwarden.errors import Conflict, Invalid
from podwarden.store import tables
from podwarden.store.book import Book

KEPT = timedelta(hours=24)
ABANDONED = timedelta(minutes=2)  # a claim whose process died
LONGEST_KEY = 200
KEY_REUSED = "IDEMPOTENCY_KEY_REUSED"
IN_PROGRESS = "IN_PROGRESS"
_table = tables.idempotency


class Idempotency(Book):
    def get(self, user: str, key: str, body_hash: str) -> Any | None:
        """The stored answer (JSON data); None: not seen before. Conflict IDEMPOTENCY_KEY_REUSED: the key came with
        another body; IN_PROGRESS: the first request is at work.
        """
        row = self._row(user, key)
        if row is None:
            return None
        if row.body_hash != body_hash:
            raise Conflict(
                "This Idempotency-Key was used for another request: give each request its own key.",
                code=KEY_REUSED,
            )
        if row.response is None:
            raise Conflict(
                "A request with this Idempotency-Key is at work: ask again in a moment.",
                code=IN_PROGRESS,
            )
        return row.response

    def claim(self, user: str, key: str, body_hash: str) -> Any | None:
        """As `get`, and where that says None the key is taken by this request, for 2 minutes. Needs a write."""
        stored = self.get(user, key, body_hash)
        if stored is None:
            self._store(user, key, body_hash, None)
        return stored

    def put(self, user: str, key: str, body_hash: str, response: Any) -> None:
        """response: JSON data, not None. The first answer stays; Conflict IDEMPOTENCY_KEY_REUSED or IN_PROGRESS when
        somebody else stored one meanwhile.
        """
        if response is None:
            raise ValueError("an answer that is kept has a body")
        done = self._run(
            update(_table)
            .where(
                _table.c.user == user,
                _table.c.key == key,
                _table.c.body_hash == body_hash,
                _table.c.response.is_(None),
            )
            .values(response=response)
        )
        if done.rowcount != 1:
            self._store(user, key, body_hash, response)

    def drop(self, user: str, key: str) -> None:
        """Gives a claim back: the work was refused or failed, and may be tried again."""
        self._run(
            delete(_table).where(
                _table.c.user == user, _table.c.key == key, _table.c.response.is_(None)
            )
        )

    def _row(self, user: str, key: str) -> Row[Any] | None:
        """Not too old, and not a claim that was left behind."""
        row = self._run(
            select(_table).where(_table.c.user == user, _table.c.key == key)
        ).one_or_none()
        if row is None:
            return None
        kept = ABANDONED if row.response is None else KEPT
        return row if row.created_at > self._now() - kept else None

    def _store(self, user: str, key: str, body_hash: str, response: Any | None) -> None:
        if not 1 <= len(key) <= LONGEST_KEY:
            raise Invalid.of("Idempotency-Key", key, f"1 to {LONGEST_KEY} characters")
        self._prune(user, key)
        added = self._insert(
            _table,
            user=user,
            key=key,
            body_hash=body_hash,
            created_at=self._now(),
            response=response,
        )
        if added is None:
            self.get(user, key, body_hash)  # says which of the two conflicts it is
            raise Conflict(
                "A request with this Idempotency-Key was answered already.", code=IN_PROGRESS
            )

    def _prune(self, user: str, key: str) -> None:
        now = self._now()
        self._run(delete(_table).where(_table.c.created_at <= now - KEPT))
        self._run(
            delete(_table).where(
                _table.c.user == user,
                _table.c.key == key,
                _table.c.response.is_(None),
                _table.c.created_at <= now - ABANDONED,
            )
        )
