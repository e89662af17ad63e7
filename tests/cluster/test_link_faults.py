"""A Link on a bad day, against a real API server: 409, 422, 429, 500, lost answers, cut and silent streams, 410, a server
that goes away and comes back, a leader that is stopped in the middle of a write. PodWarden goes on, and says what it sees.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from faults import Network, Rule, fails, says, times, watches, writes
from linking import access_of, linked, seen, unique
from rendering import placed, rendered, spec_of, workload_of
from running import RunningEngine

from podwarden.domain.placement import Slot
from podwarden.errors import Conflict, FenceLost, NotFound, Refused, Unavailable
from podwarden.kube.client import Retry
from podwarden.kube.link import Link, Pace, probe

QUICK = Pace(pulse=0.2, silent=0.6)
HASTE = Retry(attempts=6, first=0.02, most=0.2, timeout=3.0)
DEPLOYMENTS = "/apis/apps/v1/namespaces/podwarden/deployments"


@asynccontextmanager
async def on_network(engine: RunningEngine) -> AsyncIterator[tuple[Link, int, Network]]:
    network = Network(access_of(engine))
    async with linked(engine, transport=network, pace=QUICK, retry=HASTE) as (link, fence):
        yield link, fence, network


PASSING: dict[str, Rule] = {
    "500": says(500),
    "503": says(503),
    "429": says(429, **{"Retry-After": "0"}),
    "409": says(409),
    "time-out": fails(httpx.ReadTimeout),
    "no connection": fails(httpx.ConnectError),
    "connection cut": fails(httpx.RemoteProtocolError),
}


@pytest.mark.parametrize("name", PASSING)
async def test_writes_pass_through_what_passes(engine: RunningEngine, node: str, name: str) -> None:
    workload = workload_of(spec_of(unique("bad")))
    async with on_network(engine) as (link, fence, network):
        network.rules = [times(3, PASSING[name], where=writes)]
        await link.apply(rendered(workload, placed(workload, Slot(node))), fence)
        network.rules = [times(2, PASSING[name], where=writes)]
        await link.scale(workload.id, 2, fence) if name != "409" else None
        await seen(link, lambda o: workload.id in o.presences, "it is there")
        found = engine.api.get(f"{DEPLOYMENTS}/{workload.name}")
        assert found["spec"]["replicas"] == (1 if name == "409" else 2)
        network.rules = [times(3, PASSING[name], where=writes)]
        await link.remove(workload.id, keep_volumes=False, fence=fence)
        await seen(link, lambda o: workload.id not in o.presences, "it is gone")


async def test_what_does_not_pass_ends_with_its_error(engine: RunningEngine, node: str) -> None:
    workload = workload_of(spec_of(unique("stop")))
    things = rendered(workload, placed(workload, Slot(node)))
    async with on_network(engine) as (link, fence, network):
        for code, kind in (
            (422, Refused),
            (403, Refused),
            (409, Conflict),
            (429, Unavailable),
            (500, Unavailable),
        ):
            network.rules = [times(99, says(code), where=writes)]
            with pytest.raises(kind):
                await link.apply(things, fence)
        network.rules = []
        assert engine.api.find(f"{DEPLOYMENTS}/{workload.name}") is None
        assert link.observe().reachable
        await link.remove(workload.id, keep_volumes=False, fence=fence)


async def test_lost_answers_double_nothing(engine: RunningEngine, node: str) -> None:
    workload = workload_of(spec_of(unique("lost"), replicas=2))
    things = rendered(workload, placed(workload, Slot(node), Slot(node)))
    async with on_network(engine) as (link, fence, network):
        network.lose(3)
        await link.apply(things, fence)
        await seen(link, lambda o: len(o.instances.get(workload.id, ())) == 2, "two copies")
        network.lose(2)
        await link.scale(workload.id, 1, fence)
        network.lose(5)
        await link.remove(workload.id, keep_volumes=False, fence=fence)
        await seen(
            link, lambda o: workload.id not in {*o.presences, *o.instances}, "nothing of it is left"
        )


async def test_cut_streams_miss_nothing(engine: RunningEngine, node: str) -> None:
    workload = workload_of(spec_of(unique("cut")))
    async with on_network(engine) as (link, fence, network):
        for revision in range(1, 6):
            network.cut()
            await link.apply(
                rendered(replace(workload, revision=revision), placed(workload, Slot(node))), fence
            )
            await seen(
                link,
                lambda o, r=revision: (p := o.presences.get(workload.id)) and p.revision == r,
                f"revision {revision}",
            )
        await seen(link, lambda o: not o.trouble, "all is well again")
        assert all(watch.lists == 1 for watch in link._watches)
        await link.remove(workload.id, keep_volumes=False, fence=fence)


@pytest.mark.parametrize("how", [says(410), says(500), says(429), fails(httpx.ReadTimeout)])
async def test_watches_that_are_refused_come_back(
    engine: RunningEngine, node: str, how: Rule
) -> None:
    workload = workload_of(spec_of(unique("again")))
    async with on_network(engine) as (link, fence, network):
        network.rules = [times(28, how, where=watches)]  # each of them twice
        network.cut()
        await link.apply(rendered(workload, placed(workload, Slot(node))), fence)
        await seen(link, lambda o: o.instances.get(workload.id), "its copy is seen")
        await seen(link, lambda o: not o.trouble and o.complete, "all is well again")
        await link.remove(workload.id, keep_volumes=False, fence=fence)
        await seen(link, lambda o: workload.id not in o.instances, "its end is seen")


async def test_a_pulled_cable_is_noticed_and_survived(engine: RunningEngine, node: str) -> None:
    workload = workload_of(spec_of(unique("cable")))
    network = Network(access_of(engine))
    haste = replace(HASTE, timeout=0.5, attempts=2)
    async with linked(engine, transport=network, pace=QUICK, retry=haste) as (link, fence):
        network.die()
        trouble = await seen(link, lambda o: not o.reachable and o.trouble, "it is noticed", 20)
        assert engine.server in trouble
        assert "in time" in trouble
        assert link.observe().nodes  # what was known is still shown
        async with linked(engine) as (other, _):
            newer = await other.fence()
            await other.apply(rendered(workload, placed(workload, Slot(node))), newer)
        network.live()
        await seen(link, lambda o: o.reachable and not o.trouble, "it is back", 20)
        await seen(link, lambda o: workload.id in o.presences, "what happened meanwhile is seen")
        with pytest.raises(FenceLost):
            await link.remove(workload.id, keep_volumes=False, fence=fence)
        await link.remove(workload.id, keep_volumes=False, fence=newer)


def _sleep_in(
    engine: RunningEngine, network: Network, where: Callable[[httpx.Request], bool]
) -> None:
    """The next such request is held until another leader has raised the fence: a process that was stopped."""

    async def nap(_request: httpx.Request) -> None:
        async with linked(engine) as (other, _):
            await other.raise_fence(await other.fence() + 1)

    network.rules = [times(1, nap, where=where)]


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_a_leader_stopped_inside_a_write_changes_nothing_when_it_wakes(
    engine: RunningEngine, node: str, method: str
) -> None:
    workload = workload_of(spec_of(unique("slept")))
    path = f"{DEPLOYMENTS}/{workload.name}"
    async with on_network(engine) as (link, fence, network):
        await link.apply(rendered(workload, placed(workload, Slot(node))), fence)
        await seen(link, lambda o: workload.id in o.presences, "it is there")
        _sleep_in(engine, network, lambda r: r.method == method and r.url.path == path)
        late = {
            "PATCH": link.scale(workload.id, 0, fence),
            "DELETE": link.remove(workload.id, keep_volumes=False, fence=fence),
        }
        late.pop("DELETE" if method == "PATCH" else "PATCH").close()
        with pytest.raises(FenceLost):
            await late[method]
        found = engine.api.get(path)
        assert found["spec"]["replicas"] == 1
        assert "deletionTimestamp" not in found["metadata"]
        network.rules = []
        await link.remove(workload.id, keep_volumes=False, fence=await link.fence())


async def test_nothing_listens_there(engine: RunningEngine, unused_tcp_port: int) -> None:
    nowhere = replace(access_of(engine), server=f"https://127.0.0.1:{unused_tcp_port}")
    began = time.monotonic()
    with pytest.raises(Unavailable, match="refuses connections"):
        await probe(nowhere)
    assert time.monotonic() - began < 5
    link = Link("nowhere", nowhere, pace=QUICK)
    await link.start()
    trouble = await seen(link, lambda o: o.trouble, "it says so")
    assert not link.observe().complete
    assert not link.observe().reachable
    assert str(unused_tcp_port) in trouble
    with pytest.raises(Unavailable, match="refuses connections"):
        await link.ready(0.1)
    await link.close()


async def test_the_wrong_server_is_not_trusted(engine: RunningEngine) -> None:
    stranger = replace(access_of(engine), ca="")
    with pytest.raises(Refused, match="does not vouch") as caught:
        await probe(stranger)
    assert caught.value.code == "CLUSTER_CERTIFICATE"


async def test_wrong_credentials_are_refused(engine: RunningEngine) -> None:
    access = replace(access_of(engine), certificate="", key="", token="wrong")
    with pytest.raises(Refused, match="credentials") as caught:
        await probe(access)
    assert "wrong" not in str(caught.value)


async def test_an_expired_certificate_is_said_before_connecting(engine: RunningEngine) -> None:
    access = access_of(engine)
    network = Network(access)
    assert access.expires is not None
    late = access.expires
    with pytest.raises(Refused, match=f"expired on {late:%Y-%m-%d}"):
        await probe(access, now=late, transport=network)
    assert network.requests == []
    link = Link("old", access, transport=network, pace=replace(QUICK, now=lambda: late))
    await link.start()
    trouble = await seen(link, lambda o: o.trouble, "it says so")
    assert f"expired on {late:%Y-%m-%d}" in trouble
    assert not link.observe().reachable
    await link.close()


async def test_a_server_that_restarts(tmp_path: Path) -> None:
    """Its own engine: the others' tests go on meanwhile."""
    running = await asyncio.to_thread(RunningEngine.start, tmp_path / "e")
    node = await asyncio.to_thread(running.add_node, "n1")
    workload = workload_of(spec_of("again"))
    things = rendered(workload, placed(workload, Slot(node)))
    try:
        async with linked(running, pace=QUICK, retry=HASTE) as (link, fence):
            await link.apply(things, fence)
            await seen(link, lambda o: o.instances.get(workload.id), "it runs")
            await asyncio.to_thread(running.stop)
            trouble = await seen(link, lambda o: not o.reachable and o.trouble, "it is away", 30)
            assert running.server in trouble
            with pytest.raises(Unavailable):
                await link.scale(workload.id, 2, fence)
            running = await asyncio.to_thread(RunningEngine.start, tmp_path / "e")
            await seen(link, lambda o: o.reachable and not o.trouble, "it is back", 30)
            await link.scale(workload.id, 2, fence)
            await seen(link, lambda o: len(o.instances[workload.id]) == 2, "two copies", 30)
            assert link.observe().complete
            await link.remove(workload.id, keep_volumes=False, fence=fence)
            await seen(link, lambda o: workload.id not in o.presences, "gone", 30)
            with pytest.raises(NotFound):
                await link.scale(workload.id, 1, fence)
    finally:
        await asyncio.to_thread(running.stop)
