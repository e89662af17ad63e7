"""Opens the database and runs work on it: reads beside each other, writes one after the other."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Engine, select, union
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from podwarden.domain.access import Token, User
from podwarden.errors import SetupFailed, Unavailable
from podwarden.store import tables
from podwarden.store.book import Means
from podwarden.store.dialect import READERS, Dialect, Transient, dialect_for
from podwarden.store.keys import load_keyring
from podwarden.store.migrate import migrate
from podwarden.store.recall import Recall
from podwarden.store.unit import Unit

T = TypeVar("T")

TRIES = 6
FIRST_PAUSE_S = (
    0.01  # doubled with each try, with chance, so that two that collided do not do so again
)


def utc_now() -> datetime:
    return datetime.now(UTC)


class Store:
    """Made by `open`. Work functions run in threads: READERS at a time for reads, one for writes."""

    def __init__(self, dialect: Dialect, reader: Engine, writer: Engine, means: Means) -> None:
        self._dialect = dialect
        self._reader = reader
        self._writer = writer
        self._means = means
        self._reads = ThreadPoolExecutor(READERS, thread_name_prefix="store-read")
        self._writes = ThreadPoolExecutor(1, thread_name_prefix="store-write")
        self._urgent: deque[Callable[[], None]] = deque()
        self._waiting: deque[Callable[[], None]] = deque()
        self._closed = False

    def __repr__(self) -> str:
        return f"Store({self._dialect.where})"

    @classmethod
    def open(cls, url: str, key_file: Path, *, clock: Callable[[], datetime] = utc_now) -> Store:
        """url: `sqlite:///path` or `postgresql://…`. Brings the schema up to date, reads or makes the key file.
        SetupFailed, in a sentence. Blocks: call it before the event loop has work.
        """
        dialect = dialect_for(url)
        dialect.prepare()
        writer = dialect.writer()
        try:
            migrate(writer, dialect)
            keyring = load_keyring(key_file, _used_keys(writer, dialect))
        except BaseException:
            writer.dispose()
            raise
        means = Means(dialect, keyring, clock, Recall())
        return cls(dialect, dialect.reader(), writer, means)

    async def read(self, work: Callable[[Unit], T]) -> T:
        """The result of work, from one moment of the database. Whatever work raises; Unavailable."""
        return await self._run(self._reads, lambda: self._attempt(self._reader, work, None))

    async def write(
        self, work: Callable[[Unit], T], *, fence: int | None = None, urgent: bool = False
    ) -> T:
        """The result of work, once it is committed; undone when work raises. FenceLost: `fence` does not lead any more
        (checked in the same transaction). Unavailable: nothing was stored, except that a connection that breaks
        in the very commit leaves it open whether it was. urgent: before whatever else waits its turn.
        """
        turns = self._urgent if urgent else self._waiting
        return await self._run(
            self._writes, lambda: self._attempt(self._writer, work, fence), turns
        )

    async def authenticate(self, secret: str) -> tuple[Token, User] | None:
        """`tokens.find` as every request wants it: a read, and at most once a minute a write that notes the use."""

        def find(unit: Unit) -> tuple[tuple[Token, User], bool] | None:
            found = unit.tokens.find(secret)
            return None if found is None else (found, unit.tokens.due(found[0]))

        result = await self.read(find)
        if result is None:
            return None
        found, due = result
        if due:
            await self.write(lambda unit: unit.tokens.touch(found[0].id))
        return found

    async def close(self) -> None:
        """Waits for work that has begun. After it, everything is refused as Unavailable."""
        self._closed = True
        for pool in (self._reads, self._writes):
            await asyncio.to_thread(pool.shutdown)
        self._reader.dispose()
        self._writer.dispose()

    async def _run(
        self,
        pool: ThreadPoolExecutor,
        attempt: Callable[[], T],
        turns: deque[Callable[[], None]] | None = None,
    ) -> T:
        """turns: of writes; None = in the order of the pool."""
        loop = asyncio.get_running_loop()
        for tried in range(1, TRIES + 1):
            if self._closed:
                raise Unavailable("The database was closed: this PodWarden is stopping.")
            try:
                if turns is None:
                    return await loop.run_in_executor(pool, attempt)
                return await self._in_turn(pool, attempt, turns)
            except Transient as error:
                if tried == TRIES:
                    raise Unavailable(f"{error.message} It was tried {TRIES} times.") from error
                pause = FIRST_PAUSE_S * 2**tried
                await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
        raise AssertionError

    async def _in_turn(
        self, pool: ThreadPoolExecutor, attempt: Callable[[], T], turns: deque[Callable[[], None]]
    ) -> T:
        """A lease must be renewed in time however many orders wait: each run of the pool takes what is most urgent."""
        result: Future[T] = Future()

        def act() -> None:
            if not result.set_running_or_notify_cancel():
                return
            try:
                result.set_result(attempt())
            except BaseException as error:  # noqa: BLE001 - whoever waits gets it
                result.set_exception(error)

        turns.append(act)
        pool.submit(self._next)
        return await asyncio.wrap_future(result)

    def _next(self) -> None:
        """One run for each that was appended, so that one of the two always has something."""
        turn = self._urgent.popleft() if self._urgent else self._waiting.popleft()
        turn()

    def _attempt(self, engine: Engine, work: Callable[[Unit], T], fence: int | None) -> T:
        try:
            with engine.begin() as connection:
                unit = Unit(connection, self._means, writes=engine is self._writer)
                if fence is not None:
                    unit.lease.require(fence)
                return work(unit)
        except DBAPIError as error:
            known = self._dialect.explain(error)
            if known is None:
                raise
            raise known from error
        except PoolTimeout as error:
            raise Unavailable(f"{self._dialect.where} has no connection left.") from error


def _used_keys(engine: Engine, dialect: Dialect) -> set[str]:
    statement = union(select(tables.clusters.c.key_id), select(tables.secrets.c.key_id))
    try:
        with engine.begin() as connection:
            return set(connection.execute(statement).scalars())
    except DBAPIError as error:
        known = dialect.explain(error)
        if known is None:
            raise
        raise SetupFailed(known.message) from error
