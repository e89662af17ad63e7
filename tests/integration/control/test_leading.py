"""Who acts: one at a time, taking over, fences, crashes between commit and apply, adoption."""

import asyncio
import threading
from dataclasses import dataclass, field, replace
from datetime import datetime

import pytest
from cluster_double import Cluster, gpu_node
from house import ADMIN, ANN, EVE, eventually, job, service

from podwarden.domain.access import Role
from podwarden.domain.placement import Placement
from podwarden.domain.workload import Desire, State
from podwarden.errors import Conflict, FenceLost, Forbidden, NotFound, Unavailable


async def test_one_acts_and_the_other_answers(start, cluster):
    async with start(holder="a") as first:
        await first.acts()
        async with start(holder="b") as second:
            assert not second.app.leader.leading
            await second.workloads.submit(ANN, service())
            assert (await second.reaches("web", State.RUNNING)).devices
            (gpu,) = [g for g in await second.workloads.gpus(EVE) if g.holdings]
            assert gpu.holdings[0].holder.name == "web"
            preview = await second.workloads.submit(ANN, service("next"), dry_run=True)
            assert preview.placement is not None
            status = await second.app.controller.status()
            assert (status.leading, status.leader) == (False, "a")
            assert cluster.carried == 1


async def test_the_other_takes_over_when_the_leader_leaves(start, cluster):
    async with start(holder="b") as waits:
        await waits.acts()
        async with start(holder="c") as second:
            await waits.app.stop()
            await second.acts()
            assert cluster.carried == 2
            await second.workloads.submit(ANN, service())
            await second.reaches("web", State.RUNNING)


async def test_a_leader_that_died_is_waited_for_no_longer_than_its_lease(start, cluster):
    """Its lease stays; nobody gives it back."""
    async with start(holder="b", lease=2.0) as house:
        await house.acts()
        fence = house.app.leader.fence()
        await house.app.store.write(lambda u: _steal(u, "somebody dead"))
        await eventually(
            lambda: house.app.leader.leading and house.app.leader.fence() > fence + 1, "leads again"
        )


async def test_a_leader_that_was_late_goes_on_at_once(start, cluster):
    """Its lease ran out while the store was busy, and nobody else took it: no other PodWarden acts here."""
    async with start(lease=2.0) as house:
        await house.acts()
        first, fence = house.app.leader.rooms["home"], house.app.leader.fence()
        await house.workloads.submit(ANN, service())
        go_on = threading.Event()
        busy = asyncio.create_task(house.app.store.write(lambda _: go_on.wait(20)))
        await eventually(lambda: not house.app.leader.leading, "its time is over")
        cluster.touch()
        await eventually(lambda: first.desk is None, "its room gave up")
        go_on.set()
        await busy
        await house.reaches("web", State.RUNNING)
        assert house.app.leader.taken_over == {}
        assert house.app.leader.rooms["home"] is not first
        assert house.app.leader.fence() >= fence


def _steal(unit, holder):
    holder_now, fence, _ = unit.lease.current()
    unit.lease.release(holder_now, fence)
    assert unit.lease.acquire(holder, 1.0) == fence + 1


async def test_an_older_fence_changes_nothing_in_the_store(house):
    fence = house.app.leader.fence()
    await house.app.store.write(lambda u: _steal(u, "another"))
    with pytest.raises(FenceLost):
        await house.app.ledger.write(lambda entry: None, fence=fence)


async def test_a_cluster_that_somebody_else_took_is_left_alone(house, cluster):
    cluster.carried = 99
    cluster.touch()
    await house.workloads.submit(ANN, service())
    await eventually(lambda: "home" in house.app.leader.taken_over, "left alone")
    assert house.app.leader.leading
    assert cluster.told("apply") == []
    (view,) = await house.clusters.list(ADMIN)
    assert "Another PodWarden acts" in view.trouble


async def test_a_crash_between_commit_and_apply_is_repaired(start, cluster):
    cluster.fail("apply", *[Unavailable("cut off")] * 50)
    async with start() as house:
        await house.acts()
        await house.workloads.submit(ANN, service())
        await house.reaches("web", State.STARTING)
    assert cluster.told("apply") == []
    cluster._fail.clear()
    async with start() as house:
        await house.reaches("web", State.RUNNING)
    assert len(cluster.told("apply")) == 1


async def test_a_restart_touches_nothing_that_is_as_wanted(start, cluster):
    async with start() as house:
        await house.acts()
        await house.workloads.submit(ANN, service())
        await house.workloads.submit(ANN, job("done", 24))
        row = await house.reaches("done", State.RUNNING)
        cluster.finish(row.id)
        await house.reaches("done", State.SUCCEEDED)
        await house.reaches("web", State.RUNNING)
    before = list(cluster.calls)
    async with start() as house:
        await house.acts()
        await house.workloads.submit(ANN, service("more", 24))
        await house.reaches("more", State.RUNNING)
        assert (await house.row("web")).state is State.RUNNING
    new = [
        call for call in cluster.calls[len(before) :] if call[0] not in ("raise_fence", "set_holds")
    ]
    assert [call[0] for call in new] == ["apply"]


async def test_work_that_ended_while_nobody_looked_is_noticed(start, cluster):
    async with start() as house:
        await house.acts()
        await house.workloads.submit(ANN, job())
        row = await house.reaches("render", State.RUNNING)
    cluster.finish(row.id)
    async with start() as house:
        await house.reaches("render", State.SUCCEEDED)


@dataclass
class Left:
    """What `adoptable` gives for one workload."""

    id: str
    name: str
    owner: str
    spec: object
    revision: int
    revisions: tuple
    desire: Desire
    created_at: datetime
    queued_at: datetime | None
    placement: Placement | None
    extra: dict = field(default_factory=dict)


async def test_a_new_podwarden_takes_over_and_restarts_nothing(start, cluster):
    async with start() as house:
        await house.acts()
        await house.workloads.submit(ANN, service())
        await house.reaches("web", State.RUNNING)
        await house.workloads.update(ANN, "web", service(env=(("A", "1"),)))
        await house.reaches("web", State.RUNNING)
        await house.workloads.submit(ANN, service("halted", 24))
        await house.reaches("halted", State.RUNNING)
        await house.workloads.stop(ANN, "halted")
        await house.reaches("halted", State.STOPPED)
        left = [
            Left(
                row.id, row.name, row.owner, row.spec, row.revision,
                await house.workloads.revisions(ADMIN, row.id), Desire.RUN, row.created_at,
                row.queued_at, row.placement,
            )
            for row in await house.workloads.list(ADMIN)
        ]  # fmt: skip
    cluster.adopted = tuple(left)
    cluster.damaged = ("record odd: a record that this version of PodWarden wrote",)
    cluster.carried = 40
    before, copies = len(cluster.calls), dict(cluster._instances)
    async with start(data="fresh") as house:
        found = await house.clusters.adopt(ADMIN, "home", "kubeconfig")
        assert sorted(found.taken_over) == ["halted", "web"]
        assert "record odd" in found.cluster.notes[-1]
        await house.acts()
        await eventually(lambda: cluster.carried > 40, "the fence is above the old one")
        web, halted = await house.row("web"), await house.row("halted")
        assert (web.state, web.owner, web.revision) == (State.RUNNING, "ann", 2)
        assert (halted.state, halted.desire) == (State.STOPPED, Desire.STOP)
        assert [r.number for r in await house.workloads.revisions(ADMIN, "web")] == [1, 2]
        await house.workloads.submit(ANN, job("new", 12))
        await house.reaches("new", State.RUNNING)
        new = [c for c in cluster.calls[before:] if c[0] in ("apply", "remove", "scale")]
        assert len(new) == 1
        for workload, instances in copies.items():
            assert cluster.instances(workload) == instances


async def test_adoption_is_for_admins_and_names_are_taken_once(house):
    with pytest.raises(Forbidden):
        await house.clusters.adopt(ANN, "other", "kubeconfig")
    with pytest.raises(Conflict):
        await house.clusters.adopt(ADMIN, "home", "kubeconfig")


async def test_a_removed_cluster_keeps_running_what_it_runs(house, cluster):
    await house.workloads.submit(ANN, service("a", 24))
    row = await house.reaches("a", State.RUNNING)
    await house.workloads.submit(ANN, service("b", 24))
    with pytest.raises(Conflict):
        await house.clusters.remove(ADMIN, "home")
    await house.workloads.delete(ANN, "b")
    await house.clusters.remove(ADMIN, "home")
    assert cluster.presence(row.id).desired == 1
    assert await house.workloads.list(ADMIN) == ()
    with pytest.raises(NotFound):
        await house.clusters.show(ADMIN, "home")


async def test_a_second_cluster_is_asked_for_by_name(house):
    other = Cluster(gpu_node("m1", 8))
    house.app.links._connect = lambda name, text: other
    await house.clusters.adopt(ADMIN, "attic", "kubeconfig")
    with pytest.raises(Conflict, match="is looked after already, as attic"):
        await house.clusters.adopt(ADMIN, "again", "kubeconfig")
    await eventually(lambda: "attic" in house.app.leader.rooms, "a room for attic")
    await house.workloads.submit(ANN, service("web", cluster="attic"))
    row = await house.reaches("web", State.RUNNING)
    assert row.nodes == ("m1",)
    await house.workloads.submit(ANN, service("web", cluster="home"))
    with pytest.raises(Conflict) as caught:
        await house.workloads.show(ADMIN, "web")
    assert caught.value.code == "AMBIGUOUS_NAME"
    assert (await house.workloads.show(ADMIN, "web", "attic")).nodes == ("m1",)


async def test_the_feed_tells_of_each_change(house):
    async with house.app.controller.feed.subscribe() as listener:
        answer = await house.workloads.submit(ANN, service())
        await house.reaches("web", State.RUNNING)
        seen = []
        while notice := await listener.next(0.2):
            seen.append((notice.kind, notice.subject))
    assert seen[0] == ("workload", answer.workload.id)
    assert {("gpus", "home"), ("queue", "home")} <= set(seen)


async def test_the_first_user_is_made_once(start):
    async with start() as house:
        token, secret = await house.access.login("admin", "a long password")
        found = await house.access.authenticate(secret)
        assert found is not None
        assert found[1].name == "admin"
        assert token.session
        assert house.app.first_password == ""
        with pytest.raises(Conflict):
            await house.access.first_user("second", "a long password")


async def test_the_last_admin_stays(house):
    for role in (Role.VIEWER, Role.ADMIN):
        name = f"new-{role.value}"
        if role is Role.ADMIN:
            with pytest.raises(Conflict):
                await house.access.remove_user(ADMIN, "admin")
        await house.access.add_user(ADMIN, name, role, "another long password")
    await house.access.remove_user(ADMIN, "admin")
    assert [user.name for user in await house.access.users(ADMIN)] == ["new-admin", "new-viewer"]


async def test_a_clock_that_jumps_over_the_lease_stops_the_leader_before_anything_else(house):
    """A process that was stopped and goes on: its own clock tells it that its time is over."""
    leader = house.app.leader
    leader._until = leader._clock.monotonic() - 0.01
    with pytest.raises(FenceLost):
        leader.fence()
    assert not leader.leading
    await eventually(lambda: leader.leading, "it leads again, with a new fence")


async def test_a_clean_stop_gives_back_what_is_kept_for_the_head(start):
    pair = Cluster(gpu_node("n1", 24, 24))
    async with start(to=pair) as house:
        house.cluster = pair
        await house.acts()
        await house.workloads.submit(ANN, job("short", 24, time_limit_s=600))
        await house.reaches("short", State.RUNNING)
        both = service("both", 24)
        await house.workloads.submit(ANN, replace(both, gpu=replace(both.gpu, count=2)))
        await eventually(lambda: pair.observe().holds, "the free GPU is kept for it")
    assert pair.observe().holds == ()
    async with start(to=pair) as house:
        await house.acts()
        await eventually(lambda: pair.observe().holds, "kept again by the next one")


async def test_a_stop_does_not_wait_for_a_cluster_that_does_not_answer(start):
    pair = Cluster(gpu_node("n1", 24, 24))
    async with start(to=pair) as house:
        house.cluster = pair
        await house.acts()
        await house.workloads.submit(ANN, job("short", 24, time_limit_s=600))
        await house.reaches("short", State.RUNNING)
        both = service("both", 24)
        await house.workloads.submit(ANN, replace(both, gpu=replace(both.gpu, count=2)))
        kept = await eventually(lambda: pair.observe().holds, "the free GPU is kept for it")
        pair.silent = True
    assert pair.observe().holds == kept
