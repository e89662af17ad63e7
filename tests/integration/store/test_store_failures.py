"""What the world does to a store: disks, permissions, other processes, a server that goes away, a lost key."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from nouns import an_event
from postgres import Postgres
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

from podwarden.errors import SetupFailed, Unavailable
from podwarden.store import Store

WORKER = Path(__file__).parent / "worker.py"


def open_at(folder: Path, url: str = "") -> Store:
    return Store.open(url or f"sqlite:///{folder}/podwarden.db", folder / "secrets.key")


def start(role: str, url: str, key_file: Path) -> subprocess.Popen[str]:
    words = [sys.executable, str(WORKER), role, url, str(key_file)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "mysql://u:topsecret@h/d",
        "sqlite://",
        "sqlite:///:memory:",
        "postgresql://u:topsecret@h:port/d",
        "oracle+x://topsecret@h",
    ],
)
def test_urls_that_are_none(url, tmp_path):
    with pytest.raises(SetupFailed) as caught:
        Store.open(url, tmp_path / "secrets.key")
    assert "postgresql://user:password@host/name" in caught.value.message
    assert "topsecret" not in caught.value.message
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupFailed, match="cannot be written"):
        open_at(tmp_path / "file" / "data")


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "podwarden.db").write_bytes(b"something else entirely" * 100)
    with pytest.raises(SetupFailed, match=r"damaged or is no PodWarden database"):
        open_at(tmp_path)
    assert (tmp_path / "podwarden.db").read_bytes().startswith(b"something else")


def test_a_folder_that_became_read_only(tmp_path):
    """Root may write anywhere, so it is run without that right."""
    data = tmp_path / "data"
    asyncio.run(open_at(data).close())
    (data / "podwarden.db").chmod(0o400)
    data.chmod(0o500)
    without = (
        ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    )
    words = [*without, sys.executable, str(WORKER), "open", f"sqlite:///{data}/podwarden.db"]
    done = subprocess.run(
        [*words, str(data / "secrets.key")], capture_output=True, text=True, check=False
    )
    data.chmod(0o700)
    assert done.stdout.startswith("SetupFailed: The database"), done.stdout + done.stderr
    assert "writ" in done.stdout


async def test_a_full_disk(tmp_path):
    store = open_at(tmp_path)
    await store.write(lambda unit: unit.events.append(an_event("before")))

    def no_more_pages(unit):
        pages = unit.events._connection.execute(text("PRAGMA page_count")).scalar_one()
        unit.events._connection.execute(text(f"PRAGMA max_page_count = {pages}"))

    await store.write(no_more_pages)
    with pytest.raises(Unavailable, match=r"disk of .* is full"):
        await store.write(lambda unit: unit.events.append(an_event("lost", "x" * 100_000)))
    assert [e.subject for e in await store.read(lambda unit: unit.events.since(0))] == ["before"]

    def room_again(unit):
        unit.events._connection.execute(text("PRAGMA max_page_count = 1000000"))

    await store.write(room_again)
    await store.write(lambda unit: unit.events.append(an_event("after", "x" * 100_000)))
    await store.close()


@pytest.mark.parametrize("replaced", [False, True])
async def test_a_file_that_was_taken_away_while_it_was_open(tmp_path, replaced):
    """What would be written into it then is lost with the process: it is refused, and taken again once it is back."""
    store = open_at(tmp_path)
    file, away = tmp_path / "podwarden.db", tmp_path / "away"
    try:
        file.rename(away)
        if replaced:
            file.touch()
        with pytest.raises(Unavailable) as caught:
            await store.write(lambda unit: unit.events.append(an_event()))
        assert "was removed or replaced" in caught.value.message
        away.rename(file)
        await store.write(lambda unit: unit.events.append(an_event()))
    finally:
        await store.close()


async def test_a_database_held_by_another_process(tmp_path):
    store = open_at(tmp_path)
    other = sqlite3.connect(tmp_path / "podwarden.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writing = store.write(lambda unit: unit.events.append(an_event()))
    with pytest.raises(Unavailable, match="held by another process"):
        await asyncio.wait_for(writing, 30)
    assert await store.read(lambda unit: unit.events.since(0)) == ()
    with pytest.raises(SetupFailed, match="held by another process"):
        await asyncio.to_thread(open_at, tmp_path)
    other.execute("ROLLBACK")
    other.close()
    await store.write(lambda unit: unit.events.append(an_event()))
    await store.close()


async def test_a_closed_store_refuses(store):
    await store.close()
    for run in (store.read, store.write):
        with pytest.raises(Unavailable, match="stopping"):
            await run(lambda unit: unit.events.since(0))


async def test_what_is_urgent_does_not_wait_behind_a_long_line(store):
    """A burst of orders must not cost the lease."""
    begun, go_on, order = threading.Event(), threading.Event(), []

    def hold(unit):
        begun.set()
        assert go_on.wait(10)

    holds = asyncio.create_task(store.write(hold))
    await asyncio.to_thread(begun.wait, 10)
    waiting = [
        asyncio.create_task(store.write(lambda unit, n=n: order.append(n))) for n in range(20)
    ]
    await asyncio.sleep(0)  # they stand in line
    gone = asyncio.create_task(store.write(lambda unit: order.append("gone"), urgent=True))
    lease = asyncio.create_task(store.write(lambda unit: order.append("lease"), urgent=True))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(holds, lease, *waiting)
    assert order == ["lease", *range(20)]


async def test_a_mistake_in_our_own_code_is_not_dressed_up(store):
    def wrong(unit):
        unit.events._connection.execute(text("SELECT nothing FROM nowhere"))

    with pytest.raises(DBAPIError):
        await store.write(wrong)


# ---- PostgreSQL


@pytest.fixture
def own_server():
    server = Postgres()
    server.start()
    yield server
    server.remove()


async def test_postgresql_goes_away_and_comes_back(own_server, tmp_path):
    url = own_server.new_database()
    store = open_at(tmp_path, url)
    await store.write(lambda unit: unit.events.append(an_event("before")))
    await store.read(lambda unit: unit.events.since(0))
    own_server.stop()
    for run in (store.read, store.write):
        with pytest.raises(Unavailable, match="does not answer"):
            await run(lambda unit: unit.events.since(0))
    with pytest.raises(SetupFailed, match="does not answer"):
        open_at(tmp_path, url)
    own_server.start()
    await store.write(lambda unit: unit.events.append(an_event("after")))
    seen = await store.read(lambda unit: unit.events.since(0))
    assert [e.subject for e in seen] == ["before", "after"]
    await store.close()


async def test_postgresql_ends_the_session_inside_a_write(postgres, tmp_path):
    store = open_at(tmp_path, postgres.new_database())

    def cut(unit):
        unit.events.append(an_event("lost"))
        pid = unit.events._connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        killer = create_engine(str(unit.events._connection.engine.url).replace("***", ""))
        with killer.begin() as connection:
            connection.execute(text(f"SELECT pg_terminate_backend({pid})"))
        killer.dispose()
        unit.events.append(an_event("lost too"))

    with pytest.raises(Unavailable, match="does not answer"):
        await store.write(cut)
    await store.write(lambda unit: unit.events.append(an_event("kept")))
    assert [e.subject for e in await store.read(lambda unit: unit.events.since(0))] == ["kept"]
    await store.close()


async def test_an_unknown_database_or_user(postgres, tmp_path):
    url = postgres.new_database()
    for wrong in (url.replace("/test_", "/nothing_"), url.replace("podwarden@", "eve:topsecret@")):
        with pytest.raises(SetupFailed, match="does not answer") as caught:
            open_at(tmp_path, wrong)
        assert "topsecret" not in caught.value.message


async def test_a_deadlock_is_tried_again(postgres, tmp_path):
    """What PostgreSQL says of a deadlock, said on purpose, twice."""
    store = open_at(tmp_path, postgres.new_database())
    runs = 0

    def unlucky(unit):
        nonlocal runs
        runs += 1
        unit.events.append(an_event(f"run {runs}"))
        if runs < 3:
            raise_it = "DO $$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = '40P01'; END $$"
            unit.events._connection.execute(text(raise_it))

    await store.write(unlucky)
    assert [e.subject for e in await store.read(lambda unit: unit.events.since(0))] == ["run 3"]

    def hopeless(unit):
        raise_it = "DO $$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = '40001'; END $$"
        unit.events._connection.execute(text(raise_it))

    with pytest.raises(Unavailable, match="tried 6 times"):
        await store.write(hopeless)
    await store.close()


async def test_a_stopped_process_does_not_hold_up_the_next_one(postgres, tmp_path):
    """SIGSTOP inside a transaction: the server ends its session, the next leader goes on."""
    url = postgres.new_database()
    store = open_at(tmp_path, url)
    stopped = start("hold", url, tmp_path / "secrets.key")
    try:
        assert line_of(stopped) == "holding"
        stopped.send_signal(signal.SIGSTOP)
        async with asyncio.timeout(30):
            while True:
                try:
                    fence = await store.write(lambda unit: unit.lease.acquire("next", 60))
                    break
                except Unavailable:
                    continue
        assert fence == 1
        assert await store.read(lambda unit: unit.events.since(0)) == ()
    finally:
        stopped.kill()
        stopped.wait()
        stopped.stdout.close()
    await store.close()


# ---- the process dies


@pytest.mark.parametrize("seed", range(3))
async def test_killed_at_any_moment_it_has_stored_what_it_said_and_nothing_by_half(
    database_url, tmp_path, seed
):
    moment = random.Random(seed)
    url, key_file = database_url, tmp_path / "data" / "secrets.key"
    process = start("write", url, key_file)
    said = [line_of(process) for _ in range(moment.randint(20, 120))]
    await asyncio.sleep(moment.uniform(0, 0.005))  # the moment itself, somewhere inside a write
    process.kill()
    said += process.stdout.read().splitlines()
    process.wait()
    process.stdout.close()

    store = Store.open(url, key_file)
    if url.startswith("sqlite"):
        check = await store.read(
            lambda unit: unit.events._connection.execute(
                text("PRAGMA integrity_check")
            ).scalar_one()
        )
        assert check == "ok"
    workloads = {w.id: w for w in await store.read(lambda unit: unit.workloads.active())}
    events = await store.read(lambda unit: unit.events.since(0, 100_000))
    for line in filter(None, said):
        id_, version = line.split()
        assert workloads[id_].version >= int(version), "said, but not stored"
    assert len(workloads) * 2 >= len(said)
    for id_, workload in workloads.items():
        texts = [e.text for e in events if e.subject == id_]
        assert texts == [f"version {n}" for n in range(1, workload.version + 1)], "stored by half"
        assert len(await store.read(lambda unit, i=id_: unit.workloads.revisions(i))) == 1
    await store.close()


# ---- the key file


async def with_secret(folder: Path) -> None:
    store = open_at(folder)
    await store.write(lambda unit: unit.secrets.set("hf", "value", "bo"))
    await store.close()


async def get_secret(store: Store) -> str:
    try:
        return await store.read(lambda unit: unit.secrets.get("hf"))
    finally:
        await store.close()


async def test_a_key_file_that_others_may_read(tmp_path):
    await with_secret(tmp_path)
    key_file = tmp_path / "secrets.key"
    for mode in (0o640, 0o604, 0o660, 0o644):
        key_file.chmod(mode)
        with pytest.raises(SetupFailed, match=f"chmod 600 {key_file}"):
            open_at(tmp_path)
    key_file.chmod(0o600)
    assert await get_secret(open_at(tmp_path)) == "value"


async def test_a_lost_key_is_said_and_not_replaced(tmp_path):
    await with_secret(tmp_path)
    key_file = tmp_path / "secrets.key"
    key_file.rename(tmp_path / "kept")
    with pytest.raises(SetupFailed, match=f"key file {key_file} is missing"):
        open_at(tmp_path)
    assert not key_file.exists()
    # on purpose: an empty file is a new key
    key_file.touch(0o600)
    store = open_at(tmp_path)
    with pytest.raises(Unavailable, match=f"not in {key_file}"):
        await store.read(lambda unit: unit.secrets.get("hf"))
    await store.write(lambda unit: unit.secrets.set("hf", "entered again", "bo"))
    assert await get_secret(store) == "entered again"
    assert key_file.stat().st_mode & 0o777 == 0o600


async def test_a_second_key_rotates(tmp_path):
    await with_secret(tmp_path)
    other = tmp_path / "other"
    await with_secret(other)
    key_file = tmp_path / "secrets.key"
    old, new = key_file.read_text(), (other / "secrets.key").read_text()
    key_file.write_text(f"# rotated\n{new}{old}")
    store = open_at(tmp_path)
    await store.write(lambda unit: unit.secrets.set("second", "with the new key", "bo"))
    assert await get_secret(store) == "value"
    key_file.write_text(new)
    store = open_at(tmp_path)
    assert await store.read(lambda unit: unit.secrets.get("second")) == "with the new key"
    with pytest.raises(Unavailable):
        await get_secret(store)


@pytest.mark.parametrize(
    "text_", ["rubbish", "0123abcd", "0123abcd AAAA", "# only a comment", "0123abcd ÄÖÜ", "\0" * 50]
)
async def test_a_damaged_key_file(tmp_path, text_):
    await with_secret(tmp_path)
    (tmp_path / "secrets.key").write_text(text_)
    with pytest.raises(SetupFailed, match=r"secrets.key (is damaged in line 1|holds no key)"):
        open_at(tmp_path)


async def test_a_wrong_key_of_the_same_id(tmp_path):
    await with_secret(tmp_path)
    key_file = tmp_path / "secrets.key"
    await with_secret(tmp_path / "other")
    id_ = key_file.read_text().split()[0]
    key_file.write_text(f"{id_} {(tmp_path / 'other' / 'secrets.key').read_text().split()[1]}\n")
    with pytest.raises(Unavailable, match="does not decrypt"):
        await get_secret(open_at(tmp_path))


async def test_the_folder_can_be_copied_while_stopped(tmp_path):
    await with_secret(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert await get_secret(open_at(tmp_path / "b")) == "value"
