"""Everything that differs between SQLite and PostgreSQL, and nothing else.

Two classes with one face. SQLite: write-ahead log, every commit on the disk before it counts (synchronous FULL),
writes BEGIN IMMEDIATE. PostgreSQL: writes READ COMMITTED behind one advisory lock, reads REPEATABLE READ; a session
whose process went silent inside a transaction is ended by the server, so that a stopped PodWarden cannot
hold up the one that takes over.
"""

from __future__ import annotations

import os
import sqlite3
from abc import ABC, abstractmethod
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine, Executable, Table, create_engine, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from podwarden.errors import PodWardenError, SetupFailed, Unavailable

READERS = 4  # reading connections of one process
WRITE_LOCK = 0x706F6477  # "podw": the advisory lock of writers and migrations
PATIENCE_S = 5  # for another process' write, for a lock, for a silent session


class Transient(PodWardenError):
    """The database undid the transaction for its own reasons; the same work may be tried again."""

    code = "TRANSIENT"


class Dialect(ABC):
    """One database. `where` names it in sentences, without password."""

    where: str

    @abstractmethod
    def prepare(self) -> None:
        """Before the first connection. SetupFailed."""

    @abstractmethod
    def reader(self) -> Engine: ...

    @abstractmethod
    def writer(self) -> Engine: ...

    @abstractmethod
    def insert(self, table: Table) -> Executable:
        """Inserts the row given as parameters and returns the first column of its primary key, or no row where
        a unique index has it already. The transaction stays usable in both cases.
        """

    @abstractmethod
    def now(self, connection: Connection, process_clock: datetime, /) -> datetime:
        """The time that all PodWardens of this database share: a lease is compared on it."""

    @abstractmethod
    def explain(self, error: DBAPIError) -> PodWardenError | None:
        """The failure in our words; None: it is none of the world's failures but a fault of ours."""


def dialect_for(url: str) -> Dialect:
    """`sqlite:///path`, `postgresql://…` or `postgresql+psycopg://…`; SetupFailed for all else.

    The URL itself is never repeated: it may carry a password.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise SetupFailed(
            "The database URL cannot be read: give postgresql://user:password@host/name, or leave it out for SQLite."
        ) from None
    if parsed.drivername in ("postgresql", "postgresql+psycopg", "postgres"):
        return Postgres(parsed.set(drivername="postgresql+psycopg"))
    if parsed.drivername == "sqlite" and parsed.database and parsed.database != ":memory:":
        return Sqlite(Path(parsed.database))
    raise SetupFailed(
        f"A database URL that starts with {parsed.drivername}:// is not supported: give "
        "postgresql://user:password@host/name, or leave it out for SQLite."
    )


class Sqlite(Dialect):
    def __init__(self, path: Path) -> None:
        self.path = path
        self.where = str(path)
        self._file: tuple[int, int] | None = None

    def prepare(self) -> None:
        """The folder (0700) and an empty file (0600): password hashes are nobody else's to read."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self._file = _identity(self.path)
        except OSError as error:
            raise SetupFailed(
                f"The database {self.path} cannot be written: {error.strerror}. "
                "Give a data folder that this user may write."
            ) from error

    def reader(self) -> Engine:
        return self._engine("BEGIN", READERS, "PRAGMA query_only = ON")

    def writer(self) -> Engine:
        engine = self._engine("BEGIN IMMEDIATE", 1, "PRAGMA query_only = OFF")
        event.listen(engine, "begin", self._still_there)
        return engine

    def _still_there(self, _connection: Connection) -> None:
        """SQLite goes on writing into a file that was deleted; what is stored there is lost with the process."""
        if self._file is not None and _identity(self.path) != self._file:
            raise Unavailable(
                f"The database {self.where} was removed or replaced while PodWarden ran: the change was not stored. "
                "Put the file back, or start PodWarden again."
            )

    def _engine(self, begin: str, connections: int, extra: str) -> Engine:
        engine = create_engine(
            URL.create("sqlite", database=str(self.path)),
            hide_parameters=True,
            pool_size=connections,
            max_overflow=0,
            connect_args={"isolation_level": None, "timeout": PATIENCE_S},
        )

        def prepare(connection: sqlite3.Connection, _record: object) -> None:
            for pragma in (
                "PRAGMA journal_mode = WAL",
                "PRAGMA synchronous = FULL",
                "PRAGMA foreign_keys = ON",
                "PRAGMA temp_store = MEMORY",
                extra,
            ):
                connection.execute(pragma).close()

        event.listen(engine, "connect", prepare)
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
        return engine

    def insert(self, table: Table) -> Executable:
        key = next(iter(table.primary_key))
        return sqlite.insert(table).on_conflict_do_nothing().returning(key)

    def now(self, _connection: Connection, process_clock: datetime) -> datetime:
        return process_clock

    def explain(self, error: DBAPIError) -> PodWardenError | None:
        name = getattr(error.orig, "sqlite_errorname", "") or ""
        if name.startswith("SQLITE_FULL"):
            return Unavailable(
                f"The disk of {self.where} is full: the change was not stored. Free some space there."
            )
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return Unavailable(
                f"The database {self.where} has been held by another process for {PATIENCE_S} s: the change was not "
                "stored. Several PodWardens at once need PostgreSQL."
            )
        if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            return Unavailable(
                f"The database {self.where} cannot be written: make the file and its folder writable for this user."
            )
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            return Unavailable(
                f"The file {self.where} is damaged or is no PodWarden database: put a backup in its place."
            )
        if name.startswith("SQLITE_IOERR"):
            return Unavailable(
                f"The disk of {self.where} failed: the change was not stored ({name})."
            )
        return None


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file it is, whatever it is called; None when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Postgres(Dialect):
    def __init__(self, url: URL) -> None:
        self.url = url
        host = url.host or url.query.get("host") or "localhost"
        self.where = f"PostgreSQL {url.database or ''} at {host}"

    def prepare(self) -> None:
        """Nothing: the database is made by whoever runs the server."""

    def reader(self) -> Engine:
        return self._engine("REPEATABLE READ", READERS, read_only=True)

    def writer(self) -> Engine:
        engine = self._engine("READ COMMITTED", 1, read_only=False)
        lock = f"SELECT pg_advisory_xact_lock({WRITE_LOCK})"
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(lock))
        return engine

    def _engine(self, isolation: Any, connections: int, *, read_only: bool) -> Engine:
        engine = create_engine(
            self.url,
            hide_parameters=True,
            pool_size=connections,
            max_overflow=0,
            pool_pre_ping=True,
            isolation_level=isolation,
            connect_args={"connect_timeout": PATIENCE_S, "application_name": "podwarden"},
        )
        patience = f"'{PATIENCE_S}s'"
        settings = (
            "SET timezone = 'UTC'",
            f"SET lock_timeout = {patience}",
            f"SET idle_in_transaction_session_timeout = {patience}",
            "SET statement_timeout = '30s'",
            f"SET default_transaction_read_only = {'on' if read_only else 'off'}",
        )

        def prepare(connection: psycopg.Connection[Any], _record: object) -> None:
            connection.execute("; ".join(settings))
            connection.commit()

        event.listen(engine, "connect", prepare)
        return engine

    def insert(self, table: Table) -> Executable:
        key = next(iter(table.primary_key))
        return postgresql.insert(table).on_conflict_do_nothing().returning(key)

    def now(self, connection: Connection, _process_clock: datetime) -> datetime:
        moment: datetime = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
        return moment

    def explain(self, error: DBAPIError) -> PodWardenError | None:
        state = getattr(error.orig, "sqlstate", None) or ""
        if state in ("40001", "40P01"):
            return Transient(f"{self.where} undid the change to let another one pass.")
        if state in _POSTGRES_SAYS:
            return Unavailable(f"{self.where} {_POSTGRES_SAYS[state]}")
        if _away(error, state):
            return Unavailable(f"{self.where} does not answer ({_first_line(error)}).")
        return None


_FULL = "has no disk or memory left: the change was not stored."
_RIGHTS = "does not let this user write: grant it the right to."
_POSTGRES_SAYS = {
    "55P03": f"has been held by another process for {PATIENCE_S} s: the change was not stored.",
    "53100": _FULL,
    "53200": _FULL,
    "25006": _RIGHTS,
    "42501": _RIGHTS,
    "57014": "took longer than 30 s for one answer and was stopped.",
}


def _away(error: DBAPIError, state: str) -> bool:
    """Not there, shutting down, out of connections, wrong password, or it ended our session."""
    if error.connection_invalidated or state.startswith(("08", "57P", "53", "28", "3D", "25P03")):
        return True
    return isinstance(error.orig, psycopg.OperationalError) and not state


def _first_line(error: DBAPIError) -> str:
    lines = str(error.orig).strip().splitlines()
    return lines[0].strip() if lines else "no reason given"
