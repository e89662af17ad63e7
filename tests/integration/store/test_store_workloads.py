"""Workloads and revisions: every field survives, guards hold, races have one winner, lists use their indexes."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from nouns import NOON, a_placement, a_reason, a_revision, a_spec, a_workload, later
from opening import Opener
from sqlalchemy import text
from sqlalchemy.exc import StatementError

from podwarden.domain.workload import TRANSITIONS, Desire, JobSpec, Kind, State, Workload
from podwarden.errors import Conflict, Invalid, NotFound, Unavailable
from podwarden.store import Store


async def add(store: Store, *workloads: Workload) -> None:
    def work(unit):
        for workload in workloads:
            unit.workloads.add(workload, a_revision(workload))

    await store.write(work)


async def code_of(awaitable) -> str:
    try:
        await awaitable
    except Conflict as conflict:
        return conflict.code
    return "ok"


async def test_every_field_survives(store, open_store):
    full = a_workload(
        state=State.RUNNING,
        desire=Desire.STOP,
        started_at=later(1),
        ended_at=later(2),
        placement=a_placement(),
        reason=a_reason(),
        applied_revision=3,
        revision=4,
        keep_volumes=False,
        version=7,
        counts=(("done", 3), ("total", 250)),
        nodes=("n3", "n4"),
        devices=("gpu-a",),
        facts=(("address", "http://n3:1"), ("note", "é\N{SNOWMAN}")),
    )
    await add(store, full)
    other = open_store()  # nothing is remembered there
    assert await other.read(lambda unit: unit.workloads.get("w1")) == full
    assert await store.read(lambda unit: unit.workloads.by_name("ollama")) == full
    bare = a_workload(
        "w2", "bare", spec=a_spec("bare", gpu=None, kind=Kind.JOB, job=JobSpec()), queued_at=None
    )
    await add(store, bare)
    assert await other.read(lambda unit: unit.workloads.get("w2")) == bare


async def test_save_raises_the_version_and_stores_all_changes(store, open_store):
    await add(store, a_workload())
    changed = a_workload(
        state=State.STARTING,
        placement=a_placement(),
        reason=a_reason(),
        changed_at=later(5),
        counts=(("done", 1),),
        spec=a_spec(image="other:2"),
    )
    saved = await store.write(lambda unit: unit.workloads.save(changed))
    assert saved == replace(changed, version=2)
    for reader in (store, open_store()):
        assert await reader.read(lambda unit: unit.workloads.get("w1")) == saved
        assert await reader.read(lambda unit: unit.workloads.active()) == (saved,)


async def test_an_outdated_save_is_refused_and_stores_nothing(store):
    await add(store, a_workload())
    await store.write(lambda unit: unit.workloads.save(a_workload(state=State.STARTING)))
    late = a_workload(state=State.STOPPED, owner="eve")
    assert await code_of(store.write(lambda unit: unit.workloads.save(late))) == "STALE"
    kept = await store.read(lambda unit: unit.workloads.get("w1"))
    assert (kept.state, kept.owner, kept.version) == (State.STARTING, "bo", 2)


@pytest.mark.parametrize("old", list(State))
async def test_only_drawn_transitions_are_stored(store, old):
    def try_all(unit):
        outcomes = {}
        for new in State:
            stored = a_workload(f"{old}-{new}", f"{old}-{new}", state=old)
            unit.workloads.add(stored, a_revision(stored))
            try:
                unit.workloads.save(replace(stored, state=new))
                outcomes[new] = "ok"
            except Conflict as conflict:
                outcomes[new] = conflict.code
        return outcomes

    outcomes = await store.write(try_all)
    allowed = {new for new, outcome in outcomes.items() if outcome == "ok"}
    assert allowed == TRANSITIONS[old] | {old}
    assert set(outcomes.values()) <= {"ok", "STATE_FORBIDS"}


async def test_two_saves_of_one_version_have_one_winner(open_store):
    first, second = open_store(), open_store()
    await add(first, a_workload())
    for round_ in range(10):
        seen = await first.read(lambda unit: unit.workloads.get("w1"))
        mine, yours = replace(seen, owner="mine"), replace(seen, owner="yours")
        results = await asyncio.gather(
            code_of(first.write(lambda unit, w=mine: unit.workloads.save(w))),
            code_of(second.write(lambda unit, w=yours: unit.workloads.save(w))),
        )
        assert sorted(results) == ["STALE", "ok"], f"round {round_}"
    assert (await second.read(lambda unit: unit.workloads.get("w1"))).version == 11


async def test_two_adds_of_one_name_have_one_winner(open_store):
    first, second = open_store(), open_store()
    for round_ in range(10):
        name = f"n{round_}"
        results = await asyncio.gather(
            code_of(add(first, a_workload(f"a{round_}", name))),
            code_of(add(second, a_workload(f"b{round_}", name))),
        )
        assert sorted(results) == ["NAME_TAKEN", "ok"]
    listed = await first.read(lambda unit: unit.workloads.list())
    assert [w.name for w in listed] == [f"n{n}" for n in range(10)]


async def test_a_taken_name_leaves_the_transaction_usable(store):
    await add(store, a_workload())

    def work(unit):
        try:
            unit.workloads.add(a_workload("w2"), a_revision(a_workload("w2")))
        except Conflict:
            second = a_workload("w2", "ollama-2")
            unit.workloads.add(second, a_revision(second))

    await store.write(work)
    assert (await store.read(lambda unit: unit.workloads.by_name("ollama-2"))).id == "w2"


async def test_names_are_unique_per_cluster_and_free_after_delete(store):
    await add(store, a_workload(), a_workload("w2", cluster="lab"))
    assert await code_of(add(store, a_workload("w3"))) == "NAME_TAKEN"
    with pytest.raises(Conflict, match="home, lab"):
        await store.read(lambda unit: unit.workloads.by_name("ollama"))
    assert (await store.read(lambda unit: unit.workloads.by_name("ollama", "lab"))).id == "w2"
    await store.write(lambda unit: unit.workloads.delete("w1"))
    with pytest.raises(NotFound):
        await store.read(lambda unit: unit.workloads.get("w1"))
    with pytest.raises(NotFound):
        await store.write(lambda unit: unit.workloads.delete("w1"))
    with pytest.raises(NotFound):
        await store.write(lambda unit: unit.workloads.save(a_workload()))
    await add(store, a_workload("w3"))


async def test_a_deleted_id_can_be_adopted_again(open_store):
    """Another process that remembers the first life must not show it in the second."""
    store, other = open_store(), open_store()
    await add(store, a_workload(owner="before"))
    assert (await other.read(lambda unit: unit.workloads.active()))[0].owner == "before"
    await store.write(lambda unit: unit.workloads.delete("w1"))
    await add(store, a_workload(owner="after"))
    assert (await other.read(lambda unit: unit.workloads.active()))[0].owner == "after"
    assert (await other.read(lambda unit: unit.workloads.get("w1"))).owner == "after"
    assert len(await other.read(lambda unit: unit.workloads.revisions("w1"))) == 1


async def test_what_was_undone_is_not_remembered(store):
    await add(store, a_workload())

    def fail_after_save(unit):
        unit.workloads.save(a_workload(owner="undone"))
        assert unit.workloads.get("w1").owner == "undone"
        assert unit.workloads.active()[0].owner == "undone"
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError):
        await store.write(fail_after_save)
    await store.write(lambda unit: unit.workloads.save(a_workload(owner="kept")))
    assert (await store.read(lambda unit: unit.workloads.get("w1"))).owner == "kept"
    assert (await store.read(lambda unit: unit.workloads.active()))[0].owner == "kept"


async def test_active_is_what_is_not_at_rest(store):
    rest = {
        (State.STOPPED, Desire.STOP),
        (State.SUCCEEDED, Desire.STOP),
        (State.SUCCEEDED, Desire.RUN),
        (State.FAILED, Desire.RUN),
    }
    combinations = [(state, desire) for state in State for desire in Desire]
    await add(
        store,
        *(
            a_workload(f"{state}-{desire}", f"{state}-{desire}", state=state, desire=desire)
            for state, desire in combinations
        ),
    )
    active = await store.read(lambda unit: unit.workloads.active())
    assert [(w.state, w.desire) for w in active] == [c for c in combinations if c not in rest]
    await store.write(lambda unit: unit.workloads.delete("queued-run"))
    assert len(await store.read(lambda unit: unit.workloads.active())) == len(active) - 1
    assert await store.read(lambda unit: unit.workloads.active("elsewhere")) == ()


async def test_list_filters_and_pages(store):
    await add(
        store,
        *(
            a_workload(
                f"w{n}",
                f"name-{n}",
                owner="bo" if n % 2 else "ada",
                cluster="home" if n < 6 else "lab",
                state=State.RUNNING if n % 3 == 0 else State.QUEUED,
            )
            for n in range(10)
        ),
        a_workload("w10", "x50", owner="cy"),
    )

    async def ids(**filters):
        return [w.id for w in await store.read(lambda unit: unit.workloads.list(**filters))]

    assert await ids() == [f"w{n}" for n in range(11)]
    assert await ids(states=[State.RUNNING]) == ["w0", "w3", "w6", "w9"]
    assert await ids(states=[]) == []
    assert await ids(owner="bo", cluster="lab") == ["w7", "w9"]
    assert await ids(search="NAME-3") == ["w3"]
    assert await ids(search="cy") == ["w10"]
    assert await ids(search="%") == []
    assert await ids(search="_") == []
    assert await ids(search="\0") == []
    assert await ids(limit=3) == ["w0", "w1", "w2"]
    assert await ids(limit=3, after="w2") == ["w3", "w4", "w5"]
    assert await ids(limit=-1) == []
    await store.write(lambda unit: unit.workloads.delete("w5"))
    assert await ids(limit=2, after="w5") == ["w6", "w7"]
    with pytest.raises(NotFound):
        await ids(after="nothing")


@pytest.mark.parametrize("id_", ["", "nothing", "a\0b", "\ud800", "x" * 10_000, "' OR 1=1 --"])
async def test_strange_ids_are_not_found(store, id_):
    for look in (
        lambda unit: unit.workloads.get(id_),
        lambda unit: unit.workloads.by_name(id_),
        lambda unit: unit.workloads.revisions(id_),
    ):
        with pytest.raises(NotFound):
            await store.read(look)


async def test_revisions(store):
    workload = a_workload()
    await add(store, workload)
    second = a_revision(workload, 2, spec=a_spec(image="new:2"), note="")
    await store.write(lambda unit: unit.workloads.add_revision(second))
    assert await code_of(store.write(lambda unit: unit.workloads.add_revision(second))) == "STALE"
    assert await store.read(lambda unit: unit.workloads.revisions("w1")) == (
        a_revision(workload),
        second,
    )
    assert await store.read(lambda unit: unit.workloads.revision("w1", 2)) == second
    with pytest.raises(NotFound, match="revision 3"):
        await store.read(lambda unit: unit.workloads.revision("w1", 3))
    with pytest.raises(NotFound):
        await store.write(lambda unit: unit.workloads.add_revision(replace(second, workload="w9")))


async def test_a_naive_time_is_refused(store):
    with pytest.raises(StatementError, match="without time zone"):
        await add(store, a_workload(queued_at=datetime(2026, 3, 1)))  # noqa: DTZ001
    assert await store.read(lambda unit: unit.workloads.list()) == ()


async def test_moments_are_utc_whatever_zone_they_came_in(store, open_store):
    east = NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))
    await add(store, a_workload(queued_at=east))
    read = await open_store().read(lambda unit: unit.workloads.get("w1"))
    assert read.queued_at == NOON
    assert read.queued_at.utcoffset() == timedelta(0)


async def test_hostile_text_is_stored_readably(store, open_store):
    await add(store, a_workload(owner="a\0b\ud800c"))
    read = await open_store().read(lambda unit: unit.workloads.get("w1"))
    assert read.owner == "a\ufffdb\ufffdc"


async def test_the_queue_of_10000_is_read_by_its_index_in_time(store):
    many = [a_workload(f"w{n}", f"name-{n}", reason=a_reason()) for n in range(10_000)]
    await add(store, *many)
    assert await store.read(lambda unit: unit.workloads.active()) == tuple(many)
    durations = []
    for _ in range(3):
        begun = time.perf_counter()
        await store.read(lambda unit: unit.workloads.active())
        durations.append(time.perf_counter() - begun)
    assert min(durations) < 0.3

    def plan(unit):
        connection = unit.workloads._connection
        if connection.dialect.name != "sqlite":
            return "ix_workloads_active"
        words = "EXPLAIN QUERY PLAN SELECT seq, version FROM workloads WHERE active ORDER BY seq"
        return str(connection.execute(text(words)).all())

    assert "ix_workloads_active" in await store.read(plan)


async def test_work_sees_one_moment(open_store):
    """A read that lasts over another one's commit sees the database as it was at its beginning."""
    reading, writing = open_store(), open_store()
    await add(reading, a_workload())
    begun, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow(unit):
        before = unit.workloads.get("w1").version
        loop.call_soon_threadsafe(begun.set)
        assert go_on.wait(30)
        return before, unit.workloads.get("w1").version, len(unit.workloads.list())

    task = asyncio.create_task(reading.read(slow))
    await begun.wait()
    await writing.write(lambda unit: unit.workloads.save(a_workload(owner="eve")))
    await add(writing, a_workload("w2", "second"))
    go_on.set()
    assert await task == (1, 1, 1)


async def test_a_read_cannot_write(store: Store, open_store: Opener):
    with pytest.raises(Unavailable):
        await store.read(lambda unit: unit.workloads.add(a_workload(), a_revision(a_workload())))
    assert await store.read(lambda unit: unit.workloads.list()) == ()


async def test_a_spec_that_could_not_be_read_back_is_not_stored(store):
    poison = a_workload(spec=a_spec(image="two words"))
    with pytest.raises(Invalid, match="image"):
        await add(store, poison)
    await add(store, a_workload())
    with pytest.raises(Invalid, match="image"):
        await store.write(lambda unit: unit.workloads.save(poison))
    assert await store.read(lambda unit: unit.workloads.list()) == (a_workload(),)


async def test_a_stored_spec_of_other_rules_names_its_workload(store):
    await add(store, a_workload())
    change = text("""UPDATE workloads SET spec = '{"name": "ollama", "warp": 9}'""")
    await store.write(lambda unit: unit.workloads._connection.execute(change))
    with pytest.raises(Unavailable, match=r"spec of ollama .*warp"):
        await store.read(lambda unit: unit.workloads.active())
