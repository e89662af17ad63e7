"""Databases for every integration test: each test that takes `store` runs on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from opening import HandClock, Opener
from postgres import Postgres

from podwarden.store import Store


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    server.start()
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that nobody has opened yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/data/podwarden.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def open_store(database_url: str, tmp_path: Path, clock: HandClock) -> AsyncIterator[Opener]:
    """Opens one more store on the same database and key file, as another process would."""
    opened: list[Store] = []

    def open_one() -> Store:
        store = Store.open(database_url, tmp_path / "data" / "secrets.key", clock=clock)
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        await store.close()


@pytest.fixture
def store(open_store: Opener) -> Store:
    return open_store()
