"""The schema: what the migrations make is what the code expects; processes that start at once do not collide."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, inspect, text

from podwarden.errors import SetupFailed
from podwarden.store import Store
from podwarden.store.dialect import dialect_for
from podwarden.store.migrate import VERSION_TABLE
from podwarden.store.tables import metadata

WORKER = Path(__file__).parent / "worker.py"


def engine_of(url: str):
    return create_engine(url.replace("postgresql://", "postgresql+psycopg://"))


def definitions(url: str) -> set[str]:
    """Every table, index and constraint in the database's own words, spaces and quotes aside."""
    engine = engine_of(url)
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            rows = connection.execute(
                text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
            ).all()
            found = {f"{name}: {part}" for name, sql in rows for part in _parts(sql)}
        else:
            found = {
                str(row)
                for query in (
                    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
                    "SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace",
                    "SELECT table_name, column_name, data_type, is_nullable, column_default, is_identity FROM information_schema.columns WHERE table_schema = 'public'",
                )
                for row in connection.execute(text(query))
            }
    engine.dispose()
    return {line for line in found if VERSION_TABLE not in line}


def _parts(sql: str) -> list[str]:
    plain = " ".join(sql.replace('"', "").split())
    return [part.strip(" ,)(") for part in plain.split(", ")]


async def test_migrated_and_declared_schema_are_one(open_store, database_url, tmp_path, postgres):
    open_store()
    engine = engine_of(database_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "compare_server_default": True,
                "version_table": VERSION_TABLE,
            },
        )
        assert compare_metadata(context, metadata) == []
    engine.dispose()
    if database_url.startswith("sqlite"):
        declared = f"sqlite:///{tmp_path}/declared.db"
    else:
        declared = postgres.new_database()
    engine = engine_of(declared)
    metadata.create_all(engine)
    engine.dispose()
    assert definitions(database_url) == definitions(declared)


async def test_opening_again_changes_nothing_and_keeps_data(open_store, database_url):
    first = open_store()
    await first.write(lambda unit: unit.secrets.set("hf", "value", "bo"))
    before = definitions(database_url)
    assert await open_store().read(lambda unit: unit.secrets.get("hf")) == "value"
    assert definitions(database_url) == before


async def test_processes_that_start_at_once_do_not_collide(open_store, database_url, tmp_path):
    key_file = tmp_path / "data" / "secrets.key"
    said = await asyncio.gather(*(_open(database_url, key_file, str(n)) for n in range(4)))
    assert said == ["ok"] * 4
    store = open_store()
    for n in range(4):  # one key for all of them
        assert await store.read(lambda unit, n=n: unit.secrets.get(f"s{n}")) == f"value {n}"
    assert len(await store.read(lambda unit: unit.events.since(0))) == 4


async def _open(url: str, key_file: Path, number: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "error", str(WORKER), "open", url, str(key_file), number,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await process.communicate()
    return out.decode().strip()


async def test_a_database_of_a_newer_version_is_left_alone(open_store, database_url, tmp_path):
    await open_store().close()
    engine = engine_of(database_url)
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    engine.dispose()
    before = definitions(database_url)
    with pytest.raises(SetupFailed, match=r"newer PodWarden \(schema 9999"):
        Store.open(database_url, tmp_path / "data" / "secrets.key")
    assert definitions(database_url) == before


async def test_a_database_of_somebody_else_is_left_alone(database_url, tmp_path):
    (tmp_path / "data").mkdir()
    engine = engine_of(database_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE users (id INTEGER)"))
    with pytest.raises(SetupFailed, match=r"not PodWarden's \(users\)"):
        Store.open(database_url, tmp_path / "data" / "secrets.key")
    assert inspect(engine).get_table_names() == ["users"]
    engine.dispose()
    assert not (tmp_path / "data" / "secrets.key").exists()


async def test_a_migration_that_fails_leaves_nothing_behind(database_url, tmp_path):
    """The first step fails in its last table; all of it must be undone."""
    dialect = dialect_for(database_url)
    dialect.prepare()
    engine = dialect.writer()
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE ix_idempotency_created_at (id INTEGER)"))
    with pytest.raises(Exception, match="ix_idempotency_created_at"):
        Store.open(database_url, tmp_path / "data" / "secrets.key")
    assert inspect(engine).get_table_names() == ["ix_idempotency_created_at"]
    engine.dispose()
