"""Events, the lease, devices, history and idempotency keys, with their races."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from nouns import NOON, a_device, a_node, a_workload, an_event
from sqlalchemy import event

from podwarden.domain.cluster import Cluster
from podwarden.domain.inventory import DeviceHealth
from podwarden.domain.request import Request
from podwarden.domain.workload import Kind
from podwarden.errors import Conflict, FenceLost, Invalid, NotFound


async def test_events(store):
    events = [an_event("w1", "one"), an_event("w2", "two"), an_event("w1", "three", code="")]
    stored = [await store.write(lambda unit, e=e: unit.events.append(e)) for e in events]
    assert stored == [replace(e, id=n) for n, e in enumerate(events, start=1)]
    one, two, three = stored
    assert await store.read(lambda unit: unit.events.of("w1")) == (one, three)
    assert await store.read(lambda unit: unit.events.of("w1", after=1)) == (three,)
    assert await store.read(lambda unit: unit.events.of("w1", limit=1)) == (one,)
    assert await store.read(lambda unit: unit.events.latest("w1", 1)) == (three,)
    assert await store.read(lambda unit: unit.events.latest("w1", 9)) == (one, three)
    assert await store.read(lambda unit: unit.events.since(1, 1)) == (two,)
    assert await store.read(lambda unit: unit.events.since(1)) == (two, three)
    assert await store.read(lambda unit: unit.events.last_id()) == 3
    assert await store.read(lambda unit: unit.events.of("nothing")) == ()
    odd = await store.write(lambda unit: unit.events.append(an_event(text="log \0 \udcff end")))
    assert (await store.read(lambda unit: unit.events.latest("w1", 1)))[0].id == odd.id


async def test_events_are_seen_in_the_order_of_their_ids(open_store):
    """Eight writers; a reader that follows by `since` must never be shown an id below one it has seen."""
    stores = [open_store() for _ in range(8)]
    reader = open_store()
    seen: list[int] = []
    done = asyncio.Event()

    async def write(number):
        for turn in range(15):

            def work(unit, turn=turn):
                unit.events.append(an_event(f"s{number}", f"{turn} a"))
                unit.events.append(an_event(f"s{number}", f"{turn} b"))

            await stores[number].write(work)

    async def follow():
        while True:
            ending = done.is_set()
            last = seen[-1] if seen else 0
            found = await reader.read(lambda unit, last=last: unit.events.since(last, 1000))
            seen.extend(event.id for event in found)
            if ending:
                return

    following = asyncio.create_task(follow())
    await asyncio.gather(*(write(number) for number in range(8)))
    done.set()
    await following
    every = await reader.read(lambda unit: unit.events.since(0, 1000))
    assert len(every) == 8 * 15 * 2
    assert seen == [event.id for event in every]  # none was passed by
    for number in range(8):
        texts = [e.text for e in every if e.subject == f"s{number}"]
        assert texts == [f"{turn} {part}" for turn in range(15) for part in "ab"]


async def test_an_undone_write_leaves_no_event(store):
    def fail(unit):
        unit.events.append(an_event())
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError):
        await store.write(fail)
    assert await store.read(lambda unit: unit.events.since(0)) == ()


async def test_the_lease_changes_hands(store, clock):
    assert (await store.read(lambda unit: unit.lease.current()))[:2] == ("", 0)
    assert await store.write(lambda unit: unit.lease.acquire("a", 60)) == 1
    assert await store.write(lambda unit: unit.lease.acquire("b", 60)) is None
    assert (await store.read(lambda unit: unit.lease.current()))[:2] == ("a", 1)
    assert await store.write(lambda unit: unit.lease.renew("a", 1, 60))
    assert not await store.write(lambda unit: unit.lease.renew("b", 1, 60))
    assert not await store.write(lambda unit: unit.lease.renew("a", 2, 60))
    await store.write(lambda unit: unit.lease.release("b", 1))
    assert await store.write(lambda unit: unit.lease.acquire("b", 60)) is None
    await store.write(lambda unit: unit.lease.release("a", 1))
    assert await store.write(lambda unit: unit.lease.acquire("b", 60)) == 2
    assert await store.write(lambda unit: unit.lease.acquire("b", 60)) == 3  # restarted
    assert not await store.write(lambda unit: unit.lease.renew("b", 2, 60))


async def test_a_lease_that_ran_out_is_anybodys(store, database_url, clock):
    """On PostgreSQL the hand clock stands still: the database's clock must decide."""
    assert await store.write(lambda unit: unit.lease.acquire("a", 0.05)) == 1
    if database_url.startswith("sqlite"):
        assert await store.write(lambda unit: unit.lease.acquire("b", 60)) is None
        clock.forward(seconds=0.05)
    async with asyncio.timeout(30):
        fence = None
        while fence is None:  # each try asks the database, whose clock goes on by itself
            fence = await store.write(lambda unit: unit.lease.acquire("b", 60))
    assert fence == 2
    assert not await store.write(lambda unit: unit.lease.renew("a", 1, 60))


async def test_of_two_that_want_to_lead_one_does(open_store):
    stores = [open_store() for _ in range(4)]
    for turn in range(1, 6):
        fences = await asyncio.gather(
            *(
                s.write(lambda unit, n=n: unit.lease.acquire(f"h{n}", 60))
                for n, s in enumerate(stores)
            )
        )
        assert sorted(f for f in fences if f is not None) == [turn]
        leader = next(n for n, f in enumerate(fences) if f is not None)
        await stores[0].write(lambda unit, n=leader, t=turn: unit.lease.release(f"h{n}", t))


async def test_a_write_with_a_lost_fence_changes_nothing(store):
    fence = await store.write(lambda unit: unit.lease.acquire("a", 60))
    await store.write(lambda unit: unit.events.append(an_event()), fence=fence)
    await store.write(lambda unit: unit.lease.acquire("a", 60))
    for lost in (fence, 0, 99):
        with pytest.raises(FenceLost, match="does not lead"):
            await store.write(lambda unit: unit.events.append(an_event()), fence=lost)
    await store.write(lambda unit: unit.lease.release("a", fence + 1))
    with pytest.raises(FenceLost, match="nobody leads"):
        await store.write(lambda unit: unit.events.append(an_event()), fence=fence + 1)
    assert len(await store.read(lambda unit: unit.events.since(0))) == 1


async def test_no_one_begins_to_lead_inside_a_fenced_write(open_store):
    """The old leader checked its fence and writes: the next one must wait for its commit."""
    old, new = open_store(), open_store()
    fence = await old.write(lambda unit: unit.lease.acquire("old", 0))
    loop = asyncio.get_running_loop()
    inside: asyncio.Future[None] = loop.create_future()
    order: list[str] = []

    def slow(unit):
        loop.call_soon_threadsafe(inside.set_result, None)
        taking = asyncio.run_coroutine_threadsafe(take(), loop)
        with pytest.raises(TimeoutError):
            taking.result(0.3)  # it waits for us
        unit.events.append(an_event())
        order.append("old wrote")
        return taking

    async def take():
        got = await new.write(lambda unit: unit.lease.acquire("new", 60))
        order.append("new leads")
        return got

    taking = await old.write(slow, fence=fence)
    assert await asyncio.wrap_future(taking) == fence + 1
    assert order == ["old wrote", "new leads"]


async def test_devices_are_never_forgotten(store):
    with pytest.raises(NotFound):
        await store.write(lambda unit: unit.devices.remember("home", (a_node(),)))
    await store.write(lambda unit: unit.clusters.add(Cluster("home", "https://a", NOON), "k"))
    small, large = a_device("gpu-s", vram_mib=8192), a_device("gpu-l", index=1)
    await remember(store, a_node("n3", small, large, used_pods=9, ready=False), a_node("n4"))
    still = a_node("n3", small, large)
    assert await known(store) == (still, a_node("n4"))

    await remember(store, a_node("n3", large, ready=False, agent_away=True, taints=("x",)))
    assert await known(store) == (
        replace(still, devices=(replace(small, present=False), large)),
        a_node("n4"),
    )
    squeezed = replace(large, memory_mib=128, outside_mib=20_000, health=DeviceHealth.LOST)
    await remember(store, a_node("n3", small, squeezed, cpu_milli=32_000))
    assert await known(store) == (
        replace(still, cpu_milli=32_000, devices=(small, replace(large, health=DeviceHealth.LOST))),
        a_node("n4"),
    )
    moved = replace(large, node="n4")
    await remember(store, a_node("n3", small), a_node("n4", moved))
    assert await known(store) == (a_node("n3", small), a_node("n4", moved))
    await store.write(lambda unit: unit.devices.forget("home", "n3"))
    with pytest.raises(NotFound):
        await store.write(lambda unit: unit.devices.forget("home", "n3"))
    assert await known(store) == (a_node("n4", moved),)
    await store.write(lambda unit: unit.clusters.remove("home"))
    assert await known(store) == ()


async def test_remembering_the_same_again_writes_nothing(store):
    await store.write(lambda unit: unit.clusters.add(Cluster("home", "https://a", NOON), "k"))
    nodes = tuple(a_node(f"n{n}", a_device(f"gpu-{n}", f"n{n}")) for n in range(5))
    await remember(store, *nodes)
    written: list[str] = []

    def watch(unit):
        def note(_connection, _cursor, statement, *_rest):
            written.append(statement.split()[0])

        event.listen(unit.devices._connection, "before_cursor_execute", note)
        busy = (replace(n, used_cpu_milli=1, used_pods=3, changed_at=NOON) for n in nodes)
        unit.devices.remember("home", tuple(busy))
        event.remove(unit.devices._connection, "before_cursor_execute", note)

    await store.write(watch)
    assert set(written) == {"SELECT"}


async def remember(store, *nodes):
    await store.write(lambda unit: unit.devices.remember("home", nodes))


async def known(store):
    return await store.read(lambda unit: unit.devices.known("home"))


async def test_history(store):
    assert await store.read(lambda unit: unit.history.longest("blender")) is None
    assert await store.read(lambda unit: unit.history.mix()) == ()
    small, pair = Request(vram_mib=8192), Request(count=2)

    def record(unit):
        for seconds in (10.5, 300, None, 20):
            unit.history.record("blender", Kind.JOB, seconds, small)
        unit.history.record("blender", Kind.SERVICE, 99_999, pair)
        unit.history.record("", Kind.JOB, 88_888, None)

    await store.write(record)
    assert await store.read(lambda unit: unit.history.longest("blender")) == timedelta(minutes=5)
    assert await store.read(lambda unit: unit.history.longest("")) is None
    assert await store.read(lambda unit: unit.history.mix()) == ((1, 8192, 4), (2, 0, 1))

    def many(unit):
        for _ in range(60):
            unit.history.record("blender", Kind.JOB, 7, small)

    await store.write(many)
    assert await store.read(lambda unit: unit.history.longest("blender")) == timedelta(seconds=7)


async def test_idempotency(store, clock):
    def get(unit, body="h1"):
        return unit.idempotency.get("bo", "k", body)

    assert await store.read(get) is None
    answer = {"status": 201, "body": {"id": "é", "n": [1, None]}}
    await store.write(lambda unit: unit.idempotency.put("bo", "k", "h1", answer))
    assert await store.read(get) == answer
    assert await store.read(lambda unit: unit.idempotency.get("ada", "k", "h1")) is None
    assert await conflict(store.read(lambda unit: get(unit, "h2"))) == "IDEMPOTENCY_KEY_REUSED"
    assert (
        await conflict(store.write(lambda unit: unit.idempotency.put("bo", "k", "h2", {"x": 1})))
        == "IDEMPOTENCY_KEY_REUSED"
    )
    await conflict(store.write(lambda unit: unit.idempotency.put("bo", "k", "h1", {"x": 1})))
    assert await store.read(get) == answer
    clock.forward(hours=24)
    assert await store.read(get) is None
    await store.write(lambda unit: unit.idempotency.put("bo", "k", "h2", {"x": 2}))
    for key in ("", "x" * 201):
        with pytest.raises(Invalid, match="Idempotency-Key"):
            await store.write(lambda unit, key=key: unit.idempotency.put("bo", key, "h", {}))


async def test_a_claimed_key_is_done_once(store, clock):
    def claim(unit, body="h1"):
        return unit.idempotency.claim("bo", "k", body)

    assert await store.write(claim) is None
    assert await conflict(store.write(claim)) == "IN_PROGRESS"
    assert await conflict(store.write(lambda unit: claim(unit, "h2"))) == "IDEMPOTENCY_KEY_REUSED"
    await store.write(lambda unit: unit.idempotency.drop("bo", "k"))
    assert await store.write(claim) is None
    await store.write(lambda unit: unit.idempotency.put("bo", "k", "h1", {"ok": True}))
    assert await store.write(claim) == {"ok": True}
    await store.write(lambda unit: unit.idempotency.drop("bo", "k"))  # an answer is not dropped
    assert await store.write(claim) == {"ok": True}
    assert await store.write(lambda unit: unit.idempotency.claim("bo", "left", "h1")) is None
    clock.forward(minutes=2)  # the process that claimed it died
    assert await store.write(lambda unit: unit.idempotency.claim("bo", "left", "h1")) is None


async def test_one_key_twice_at_once_is_done_once(open_store):
    stores = [open_store() for _ in range(4)]
    for turn in range(5):
        await same_key_at_once(stores, f"k{turn}")


async def same_key_at_once(stores, key):
    claims = [
        conflict(s.write(lambda unit: unit.idempotency.claim("bo", key, "h"))) for s in stores
    ]
    assert sorted(await asyncio.gather(*claims)) == ["IN_PROGRESS"] * 3 + ["ok"]

    def in_one_write(unit):
        stored = unit.idempotency.get("bo", f"one-{key}", "h")
        if stored is not None:
            return "stored"
        unit.events.append(an_event(key))
        unit.idempotency.put("bo", f"one-{key}", "h", {"done": key})
        return "done"

    results = await asyncio.gather(*(s.write(in_one_write) for s in stores))
    assert sorted(results) == ["done", "stored", "stored", "stored"]
    assert len(await stores[0].read(lambda unit: unit.events.of(key))) == 1


async def conflict(awaitable) -> str:
    try:
        await awaitable
    except Conflict as error:
        return error.code
    return "ok"


async def test_a_workload_and_its_event_are_stored_together_or_not_at_all(store):
    def work(unit):
        unit.events.append(an_event())
        unit.workloads.save(a_workload("nothing"))

    with pytest.raises(NotFound):
        await store.write(work)
    assert await store.read(lambda unit: unit.events.since(0)) == ()
