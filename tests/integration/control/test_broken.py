"""What breaks by a fault of nobody foreseen: it is told, it is tried again, and nobody else suffers."""

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from cluster_double import Cluster, gpu_node
from house import ADMIN, ANN, eventually, service

from podwarden.control.clock import SystemClock
from podwarden.control.leader import Leader
from podwarden.domain.cluster import Cluster as ClusterRow
from podwarden.domain.workload import State
from podwarden.errors import Refused


class Quick(SystemClock):
    """Waits are short; time itself is true."""

    async def wait(self, event, seconds):
        return await super().wait(event, 0.01 if seconds is None else min(seconds, 0.01))


class Odd:
    """A store whose next writes fail in a way that no word exists for."""

    def __init__(self, store, times):
        self._store = store
        self.times = times

    async def write(self, work, **more):
        if self.times:
            self.times -= 1
            raise RuntimeError("odd")
        return await self._store.write(work, **more)


class BreaksOnce:
    def __init__(self, link, broken):
        self.link = link
        self.trouble = ""
        self._broken = broken

    async def run(self):
        self._broken.append(self)
        if len(self._broken) == 1:
            raise RuntimeError("odd")
        await asyncio.Event().wait()


@asynccontextmanager
async def leading(house, store, rooms):
    leader = Leader(
        store,
        house.app.links,
        Quick(),
        lambda cluster, _: BreaksOnce(house.app.links.get(cluster), rooms),
        holder="x",
        seconds=6.0,
    )
    task = asyncio.create_task(leader.run())
    try:
        yield leader
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def takes_over(house, leader):
    """Whoever leads besides it gives the lease back, until it leads."""

    async def look():
        if not leader.leading:
            await house.app.store.write(_free)
        return leader.leading

    await eventually(look, "it leads")


def _free(unit):
    holder, fence, _ = unit.lease.current()
    if holder != "x":
        unit.lease.release(holder, fence)


async def test_it_leads_after_an_odd_failure(house):
    odd = Odd(house.app.store, 2)
    async with leading(house, odd, [None]) as leader:
        await eventually(lambda: odd.times == 0, "both failures")
        await takes_over(house, leader)


async def test_a_room_that_broke_is_tried_again_and_says_whose_fault_it_was(house):
    made = []
    async with leading(house, house.app.store, made) as leader:
        await takes_over(house, leader)
        await eventually(lambda: len(made) == 1 and "home" not in leader.rooms, "it broke")
        assert "PodWarden made a mistake" in leader.trouble("home")
        await eventually(lambda: len(made) == 2, "tried again")
        assert leader.trouble("home") == ""


async def test_a_cluster_that_refuses_the_fence_says_why_and_is_tried_again(start, cluster):
    cluster.fail("raise_fence", *[Refused("PodWarden may not write there.")] * 2)
    async with start() as house:

        async def said():
            (view,) = await house.clusters.list(ADMIN)
            return view.trouble == "PodWarden may not write there."

        await eventually(said, "the cluster's own words")
        await house.acts()
        await house.workloads.submit(ANN, service())
        await house.reaches("web", State.RUNNING)


async def test_a_cluster_taken_over_anew_under_its_name_is_the_new_one(house):
    other = Cluster(gpu_node("m1", 8))
    house.app.links._connect = lambda name, text: other

    def anew(unit):
        unit.clusters.remove("home")
        row = ClusterRow("home", "https://127.0.0.2:6443", datetime.now(UTC))
        unit.clusters.add(row, "kubeconfig")

    await house.app.store.write(anew)
    await house.app.links.turn()

    def acts():
        room = house.app.leader.rooms.get("home")
        return room is not None and room.link is other and room.admission is not None

    await eventually(acts, "it acts on the new one")
    await house.workloads.submit(ANN, service())
    assert (await house.reaches("web", State.RUNNING)).nodes == ("m1",)
