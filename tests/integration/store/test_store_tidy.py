"""What is taken away: the oldest events beyond a number, rows of workloads deleted long ago."""

from datetime import timedelta

import pytest
from nouns import NOON, a_revision, a_workload, an_event
from sqlalchemy import func, select

from podwarden.errors import NotFound
from podwarden.store import tables


async def _append(store, number):
    def work(unit):
        for n in range(number):
            unit.events.append(an_event("w1", f"fact {n}"))

    await store.write(work)


async def test_the_newest_events_are_kept_and_their_ids_go_on(store):
    await _append(store, 10)
    assert await store.write(lambda unit: unit.events.prune(100, kept=4)) == 6
    left = await store.read(lambda unit: unit.events.since(0))
    assert [event.id for event in left] == [7, 8, 9, 10]
    assert await store.write(lambda unit: unit.events.prune(100, kept=4)) == 0
    await _append(store, 1)
    assert await store.read(lambda unit: unit.events.last_id()) == 11


async def test_events_go_a_few_at_a_time(store):
    await _append(store, 10)
    gone = [await store.write(lambda unit: unit.events.prune(3, kept=2)) for _ in range(4)]
    assert gone == [3, 3, 2, 0]


async def test_without_events_there_is_nothing_to_take_away(store):
    assert await store.write(lambda unit: unit.events.prune(3, kept=0)) == 0


async def test_rows_deleted_long_ago_go_with_their_revisions(store, clock):
    for name in ("old", "young", "kept"):
        workload = a_workload(name, name)
        await store.write(lambda unit, w=workload: unit.workloads.add(w, a_revision(w)))
    await store.write(lambda unit: unit.workloads.delete("old"))
    clock.forward(days=2)
    await store.write(lambda unit: unit.workloads.delete("young"))
    before = NOON + timedelta(days=1)
    assert await store.write(lambda unit: unit.workloads.prune(before, 100)) == 1

    def rows(unit):
        tables_ = (tables.workloads, tables.revisions)
        return [
            unit.workloads._run(select(func.count()).select_from(table)).scalar()
            for table in tables_
        ]

    assert await store.read(rows) == [2, 2]
    with pytest.raises(NotFound):
        await store.read(lambda unit: unit.workloads.list(after="old"))
    assert len(await store.read(lambda unit: unit.workloads.list(after="young"))) == 1
    assert (await store.read(lambda unit: unit.workloads.get("kept"))).name == "kept"


async def test_deleted_rows_go_a_few_at_a_time(store, clock):
    for n in range(5):
        workload = a_workload(f"w{n}", f"name{n}")
        await store.write(lambda unit, w=workload: unit.workloads.add(w, a_revision(w)))
        await store.write(lambda unit, n=n: unit.workloads.delete(f"w{n}"))
    clock.forward(days=1)
    gone = [await store.write(lambda unit: unit.workloads.prune(clock(), 2)) for _ in range(4)]
    assert gone == [2, 2, 1, 0]
