"""A PostgreSQL server of one's own, from Debian's package `postgresql`: in a temporary folder, on a Unix socket only.

It refuses to run as root, so root runs it as the package's user `postgres` (or, failing that, nobody).
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psycopg

MISSING = "PostgreSQL's programs are not here: apt-get install postgresql (make setup does it)."


def programs() -> Path:
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])
    )
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    if on_path is None:
        raise RuntimeError(MISSING)
    return Path(on_path).resolve().parent


class Postgres:
    """start, new_database, stop, start again, remove. durable False: fsync is off, tests lose nothing."""

    def __init__(self, *, durable: bool = False) -> None:
        self._durable = durable
        self._bin = programs()
        self._as: dict[str, Any] = _unprivileged()
        # Short: the path of a Unix socket has at most 107 characters.
        self._folder = Path(tempfile.mkdtemp(prefix="pw-pg-"))
        if self._as:
            os.chown(self._folder, self._as["user"], self._as["group"])
        self._data = self._folder / "data"
        self._running = False
        self._made = 0
        self._run(
            "initdb",
            "-D",
            str(self._data),
            "-U",
            "podwarden",
            "-A",
            "trust",
            "-N",
            "-E",
            "UTF8",
            "--no-locale",
        )

    def start(self) -> None:
        """Returns once it answers."""
        options = {
            "fsync": "on" if self._durable else "off",
            "max_connections": "60",
            "shared_buffers": "32MB",
            "listen_addresses": "",
            "unix_socket_directories": str(self._folder),
        }
        words = " ".join(f"-c {name}='{value}'" for name, value in options.items())
        self._control("start", "-o", words, "-l", str(self._folder / "log"))
        self._running = True

    def stop(self) -> None:
        """At once: sessions are ended, nothing is waited for."""
        if self._running:
            self._control("stop", "-m", "immediate")
            self._running = False

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder)

    def new_database(self) -> str:
        """The URL of a new empty database."""
        self._made += 1
        name = f"test_{self._made}"
        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        return self._address(name)

    def dump(self, url: str) -> bytes:
        """All data as text; bytea as hexadecimal and, decoded, once more as bytes."""
        whole = b""
        with psycopg.connect(url) as connection:
            tables = connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            )
            for (table,) in tables.fetchall():
                for row in connection.execute(f'SELECT * FROM "{table}"').fetchall():
                    whole += b" ".join(v if isinstance(v, bytes) else str(v).encode() for v in row)
        return whole

    def _address(self, database: str) -> str:
        return f"postgresql://podwarden@/{database}?host={self._folder}"

    def _control(self, *arguments: str) -> None:
        self._run("pg_ctl", "-D", str(self._data), "-w", "-t", "60", *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        said = self._folder / f"{program}.log"  # no pipe: the server would keep it open
        with said.open("wb") as stream:
            done = subprocess.run(
                [self._bin / program, *arguments],
                stdout=stream,
                stderr=stream,
                cwd=self._folder,
                check=False,
                start_new_session=True,  # a Ctrl-C at pytest is not for the server
                **self._as,
            )
        if done.returncode != 0:
            log = self._folder / "log"
            raise RuntimeError(said.read_text() + (log.read_text() if log.exists() else ""))


def _unprivileged() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = names.get("postgres") or names["nobody"]
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
