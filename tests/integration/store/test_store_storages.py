"""Storages, and logins of registries, on both databases."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from nouns import NOON
from sqlalchemy import create_engine, text

import podwarden.store
from podwarden.domain.storage import Storage
from podwarden.errors import Conflict, Invalid, NotFound
from podwarden.store.migrate import VERSION_TABLE

MEDIA = Storage("media", "/media é", NOON, "ada", server="fd00::5", checked=False)
RENDERS = Storage("renders", "/srv/r", NOON + timedelta(days=1), "bo", cluster="home", node="gpu1")


async def test_storages_from_first_to_last(store, open_store):
    for noun in (RENDERS, MEDIA):
        await store.write(lambda unit, noun=noun: unit.storages.add(noun))
    other = open_store()
    assert await other.read(lambda unit: unit.storages.list()) == (MEDIA, RENDERS)
    assert await other.read(lambda unit: unit.storages.list(["renders", "gone"])) == (RENDERS,)
    assert await other.read(lambda unit: unit.storages.list([])) == ()
    assert await other.read(lambda unit: unit.storages.get("media")) == MEDIA
    await store.write(lambda unit: unit.storages.remove("media"))
    with pytest.raises(NotFound, match="media"):
        await other.read(lambda unit: unit.storages.get("media"))
    with pytest.raises(NotFound, match="media"):
        await store.write(lambda unit: unit.storages.remove("media"))


async def test_a_name_is_given_once(store, open_store):
    await store.write(lambda unit: unit.storages.add(MEDIA))
    with pytest.raises(Conflict) as caught:
        await open_store().write(lambda unit: unit.storages.add(MEDIA))
    assert caught.value.code == "NAME_TAKEN"
    bad = Storage("Bad Name", "/m", NOON, "ada", server="nas")
    with pytest.raises(Invalid) as refused:
        await store.write(lambda unit: unit.storages.add(bad))
    assert refused.value.problems[0].field == "name"
    assert await store.read(lambda unit: unit.storages.list()) == (MEDIA,)


async def test_a_secret_says_which_registry_it_opens(store):
    await store.write(lambda unit: unit.secrets.set("pull", "v", "bo", registry="r.home:5000"))
    await store.write(lambda unit: unit.secrets.set("plain", "v", "bo"))
    found = {s.name: s.registry for s in await store.read(lambda unit: unit.secrets.list())}
    assert found == {"pull": "r.home:5000", "plain": ""}
    await store.write(lambda unit: unit.secrets.set("pull", "no login any more", "bo"))
    assert {s.registry for s in await store.read(lambda unit: unit.secrets.list())} == {""}


async def test_secrets_of_the_first_schema_are_kept(database_url, open_store, tmp_path):
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "data" / "secrets.key").touch(mode=0o600)  # the old key is given up on purpose
    engine = create_engine(database_url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        config = Config()
        folder = Path(podwarden.store.__file__).parent / "migrations"
        config.set_main_option("script_location", str(folder))
        config.attributes["connection"] = connection
        config.attributes["version_table"] = VERSION_TABLE
        command.upgrade(config, "0001")
        connection.execute(
            text(
                "INSERT INTO secrets (name, owner, value, key_id, changed_at) VALUES ('old', 'bo', :value, 'k', :at)"
            ),
            {"value": b"x", "at": NOON},
        )
    engine.dispose()
    (found,) = await open_store().read(lambda unit: unit.secrets.list())
    assert (found.name, found.owner, found.registry) == ("old", "bo", "")
