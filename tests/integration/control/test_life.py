"""The life of workloads from submit to gone, on a real database and a recording cluster."""

from dataclasses import replace

import pytest
from cluster_double import Cluster, gpu_node
from house import ADMIN, ANN, BOB, EVE, eventually, job, service

from podwarden.domain.reason import Code
from podwarden.domain.workload import Expose, Port, Priority, State
from podwarden.errors import Conflict, Forbidden, Invalid, NotFound, Unavailable
from podwarden.kube.errors import NoAccess


async def test_submit_plan_commit_apply_running(house):
    answer = await house.workloads.submit(ANN, service())
    assert answer.workload.state in (State.STARTING, State.RUNNING)
    assert answer.placement.slots[0].node == "n2"
    row = await house.reaches("web", State.RUNNING)
    assert (row.nodes, row.devices, row.owner) == (("n2",), ("gpu-n2-0",), "ann")
    assert row.applied_revision == 1
    assert await house.kinds("web") == ["submitted", "admitted", "state"]
    assert len(house.cluster.told("apply")) == 1


async def test_a_dry_run_says_the_same_and_stores_nothing(house):
    preview = await house.workloads.submit(ANN, service(), dry_run=True)
    assert preview.workload is None
    assert preview.placement.slots[0].devices == ("gpu-n2-0",)
    assert await house.workloads.list(ADMIN) == ()
    real = await house.workloads.submit(ANN, service())
    assert real.placement.slots == preview.placement.slots


async def test_what_can_never_fit_is_refused_and_nothing_is_stored(house):
    answer = await house.workloads.submit(ANN, service(vram_gb=80))
    assert answer.refusal.code is Code.NO_DEVICE_LARGE_ENOUGH
    assert "24 GB" in answer.refusal.text
    assert await house.workloads.list(ADMIN) == ()
    assert house.cluster.told("apply") == []


async def test_who_waits_says_why_and_starts_when_the_gpu_is_released(house):
    await house.workloads.submit(ANN, service("first", 24))
    await house.reaches("first", State.RUNNING)
    answer = await house.workloads.submit(BOB, service("second", 24))
    assert answer.workload.state is State.QUEUED
    assert (answer.verdict.position, answer.verdict.reason.code) == (1, Code.WAITS_FOR_SERVICE)
    (line,) = await house.workloads.queue(EVE)
    assert (line.workload.name, line.verdict.position) == ("second", 1)
    await house.workloads.stop(ANN, "first")
    await house.reaches("first", State.STOPPED)
    await house.reaches("second", State.RUNNING)
    assert await house.workloads.queue(EVE) == ()


async def test_a_finished_job_gives_its_gpu_to_the_next(house):
    await house.workloads.submit(ANN, job("one", 24))
    one = await house.reaches("one", State.RUNNING)
    await house.workloads.submit(ANN, job("two", 24))
    house.cluster.finish(one.id)
    assert (await house.reaches("one", State.SUCCEEDED)).ended_at is not None
    await house.reaches("two", State.RUNNING)
    assert "Finished after" in (await house.texts("one"))[-1]


async def test_past_runs_are_remembered(house):
    await house.workloads.submit(ANN, job("one", 8, time_limit_s=60))
    one = await house.reaches("one", State.RUNNING)
    house.cluster.finish(one.id)
    await house.reaches("one", State.SUCCEEDED)
    longest = await house.app.store.read(lambda u: u.history.longest("example/job:1 one"))
    assert longest is not None


async def test_names_are_unique_in_a_cluster(house):
    await house.workloads.submit(ANN, service())
    with pytest.raises(Conflict) as caught:
        await house.workloads.submit(BOB, service())
    assert caught.value.code == "NAME_TAKEN"
    with pytest.raises(Conflict):
        await house.workloads.submit(BOB, service(), dry_run=True)
    for dry_run in (False, True):  # what can never fit is said before anything else
        answer = await house.workloads.submit(BOB, service(vram_gb=80), dry_run=dry_run)
        assert answer.refusal.code is Code.NO_DEVICE_LARGE_ENOUGH


async def test_unknown_clusters_secrets_and_storages_are_named(house):
    with pytest.raises(Invalid) as caught:
        await house.workloads.submit(ANN, service(cluster="away"))
    assert caught.value.problems[0].field == "cluster"
    with pytest.raises(Invalid) as caught:
        await house.workloads.submit(ANN, service(secrets=(("TOKEN", "missing"),)))
    assert caught.value.problems[0].field == "secrets.TOKEN"
    assert await house.workloads.list(ADMIN) == ()


async def test_a_port_on_the_network_has_one_holder(house):
    lan = (Port("http", 8080, Expose.LAN),)
    await house.workloads.submit(ANN, service("one", 8, ports=lan))
    with pytest.raises(Conflict) as caught:
        await house.workloads.submit(ANN, service("two", 8, ports=lan))
    assert caught.value.code == "PORT_TAKEN"
    assert "one" in caught.value.message
    answer = await house.workloads.submit(ANN, service("three", 8, ports=lan, template="vllm"))
    assert answer.workload.spec.ports[0].expose is Expose.CLUSTER
    assert "8080" in (await house.texts("three"))[0]
    big = await house.workloads.submit(ANN, service("four", 80, ports=lan))
    assert big.refusal.code is Code.NO_DEVICE_LARGE_ENOUGH


async def test_the_same_key_twice_is_one_workload(house):
    first = await house.workloads.submit(ANN, service(), idempotency=("k", "h"))
    again = await house.workloads.submit(ANN, service(), idempotency=("k", "h"))
    assert again.workload.id == first.workload.id
    with pytest.raises(Conflict):
        await house.workloads.submit(ANN, service("other"), idempotency=("k", "else"))
    assert len(await house.workloads.list(ADMIN)) == 1


async def test_roles(house):
    with pytest.raises(Forbidden):
        await house.workloads.submit(EVE, service())
    await house.workloads.submit(ANN, service())
    for order in (house.workloads.stop, house.workloads.delete):
        with pytest.raises(Forbidden):
            await order(BOB, "web")
    with pytest.raises(Forbidden):
        await house.workloads.submit(ANN, service("dri", devices=("/dev/dri",)))
    await house.workloads.stop(ADMIN, "web")


async def test_stop_keeps_and_start_queues_again(house):
    await house.workloads.submit(ANN, service())
    row = await house.reaches("web", State.RUNNING)
    await house.workloads.stop(ANN, "web")
    await house.reaches("web", State.STOPPED)
    assert house.cluster.presence(row.id).desired == 0
    with pytest.raises(Conflict):
        await house.workloads.stop(ANN, "web")
    await house.workloads.start(ANN, "web")
    await house.reaches("web", State.RUNNING)
    assert house.cluster.presence(row.id).desired == 1
    with pytest.raises(Conflict):
        await house.workloads.start(ANN, "web")


async def test_a_job_that_starts_again_is_a_new_run(house):
    await house.workloads.submit(ANN, job())
    row = await house.reaches("render", State.RUNNING)
    house.cluster.finish(row.id)
    await house.reaches("render", State.SUCCEEDED)
    await house.workloads.start(ANN, "render")
    await house.reaches("render", State.RUNNING)
    assert [call[0] for call in house.cluster.calls if call[0] in ("apply", "remove")] == [
        "apply",
        "remove",
        "apply",
    ]


@pytest.mark.parametrize("keep", [True, False])
async def test_delete_leaves_nothing_and_frees_the_name(house, keep):
    await house.workloads.submit(ANN, service())
    row = await house.reaches("web", State.RUNNING)
    await house.workloads.delete(ANN, "web", keep_volumes=keep)

    async def gone():
        try:
            await house.row("web")
        except NotFound:
            return True
        return False

    await eventually(gone, "web gone")
    assert ("remove", row.id, keep) in house.cluster.calls
    assert house.cluster.presence(row.id) is None
    assert (await house.workloads.events(ADMIN, row.id))[-1].kind.value == "deleted"
    await house.workloads.submit(BOB, service())


async def test_what_never_started_is_deleted_at_once(house):
    await house.workloads.submit(ANN, service("first", 24))
    await house.workloads.submit(ANN, service("second", 24))
    await house.workloads.delete(ANN, "second")
    with pytest.raises(NotFound):
        await house.row("second")
    assert await house.workloads.queue(ADMIN) == ()


async def test_priority_decides_who_is_next(house):
    await house.workloads.submit(ANN, service("first", 24))
    for name in ("low", "high"):
        await house.workloads.submit(ANN, service(name, 24))
    await house.workloads.set_priority(ANN, "high", priority=Priority.HIGH)

    async def order():
        return [q.workload.name for q in await house.workloads.queue(ADMIN)] == ["high", "low"]

    await eventually(order, "high before low")
    await house.workloads.stop(ANN, "first")
    await house.reaches("high", State.RUNNING)
    assert (await house.row("low")).state is State.QUEUED


async def test_two_share_one_gpu(house):
    for name in ("a", "b"):
        await house.workloads.submit(ANN, service(name, 3, shared=True))
    rows = [await house.reaches(name, State.RUNNING) for name in ("a", "b")]
    assert rows[0].devices == rows[1].devices
    held = {gpu.device.uuid: gpu.holdings for gpu in await house.workloads.gpus(EVE)}
    assert [h.holder.name for h in held[rows[0].devices[0]]] == ["a", "b"]


async def test_an_array_runs_task_by_task_and_is_counted(house):
    await house.workloads.submit(ANN, job("frames", 8, array=(1, 7)))
    row = await house.reaches("frames", State.RUNNING)
    running = lambda: [i for i in house.cluster.instances(row.id) if i.phase == "running"]  # noqa: E731
    for _ in range(7):
        task = (await eventually(running, "a running task"))[0]
        house.cluster.end_task(row.id, task.name)
    done = await house.reaches("frames", State.SUCCEEDED)
    assert dict(done.counts) == {"done": 7, "running": 0, "failed": 0, "total": 7}
    opened = [name for call in house.cluster.told("open_gates") for name, _ in call[2]]
    assert sorted(opened) == sorted(set(opened))
    assert len(opened) == 7


async def test_a_service_is_back_where_it_was_after_it_was_deleted_by_hand(house):
    await house.workloads.submit(ANN, service())
    row = await house.reaches("web", State.RUNNING)
    house.cluster.lose(row.id)
    await eventually(lambda: house.cluster.presence(row.id), "applied again")
    await house.reaches("web", State.RUNNING)
    assert "changed-outside" in await house.kinds("web")
    assert house.cluster.told("apply")[0][1:] == house.cluster.told("apply")[-1][1:]


async def test_an_edited_scale_is_taken_back(house):
    await house.workloads.submit(ANN, service())
    row = await house.reaches("web", State.RUNNING)
    await eventually(lambda: house.cluster.observe().presences, "seen")
    house.cluster.set_presence(row.id, desired=3)
    await eventually(lambda: house.cluster.presence(row.id).desired == 1, "set back")
    assert "changed-outside" in await house.kinds("web")


async def test_a_refusal_of_the_cluster_ends_a_first_start(house):
    house.cluster.fail("apply", Invalid.of("image", "x", "a better one"))
    await house.workloads.submit(ANN, service())
    row = await house.reaches("web", State.FAILED)
    assert row.reason.code is Code.REFUSED_BY_CLUSTER
    assert "a better one" in row.reason.text


@pytest.mark.parametrize(
    "error", [Unavailable("busy"), Conflict("409"), NotFound("not yet"), NoAccess("not read yet")]
)
async def test_passing_errors_are_tried_again(house, error):
    house.cluster.fail("apply", error, error)
    await house.workloads.submit(ANN, service())
    await house.reaches("web", State.RUNNING)
    assert len(house.cluster.told("apply")) == 1


async def test_a_silent_cluster_refuses_nothing_and_says_so(house):
    house.cluster.silent = True
    house.cluster.touch()
    answer = await house.workloads.submit(ANN, service(vram_gb=80))
    assert answer.refusal is None

    async def says():
        row = await house.row("web")
        return row.reason is not None and row.reason.code is Code.CLUSTER_UNREACHABLE

    await eventually(says, "CLUSTER_UNREACHABLE")
    (view,) = await house.clusters.list(ADMIN)
    assert (view.reachable, view.trouble) == (False, "The cluster does not answer.")
    await house.workloads.submit(ANN, service("small"))
    house.cluster.silent = False
    house.cluster.touch()
    await house.reaches("small", State.RUNNING)


async def test_a_start_without_room_goes_back_to_the_queue(house, cluster):
    cluster.auto = False
    await house.workloads.submit(ANN, service())
    row = await house.reaches("web", State.STARTING)
    (instance,) = await eventually(lambda: cluster.instances(row.id), "an instance")
    long_ago = row.created_at.replace(year=2020)
    cluster.set_instances(
        row.id,
        replace(
            instance, reason="Unschedulable", message="no GPU fits", unschedulable_since=long_ago
        ),
    )
    back = await house.reaches("web", State.QUEUED)
    assert back.reason.code is Code.UNSCHEDULABLE
    assert "no GPU fits" in back.reason.text
    await eventually(lambda: cluster.presence(row.id) is None, "its objects gone")


async def test_a_lost_node_keeps_the_spare_gpu_for_its_service(house):
    await house.workloads.submit(ANN, service("web", 12))
    row = await house.reaches("web", State.RUNNING)
    assert row.nodes == ("n2",)
    house.cluster.set_node("n2", ready=False)
    lost = await house.reaches("web", State.UNHEALTHY)
    assert lost.reason.code is Code.NODE_LOST
    answer = await house.workloads.submit(BOB, service("greedy", 24))
    assert answer.workload.state is State.QUEUED


async def test_the_log_of_a_workload_and_of_none(house):
    await house.workloads.submit(ANN, service())
    lines = await house.workloads.logs(ANN, "web")
    assert [line async for line in lines] == ["one", "two"]
    with pytest.raises(NotFound):
        await house.workloads.logs(ANN, "nobody")


async def test_the_double_refuses_an_older_fence():
    double = Cluster(gpu_node("n1", 8))
    await double.raise_fence(3)
    with pytest.raises(Exception, match="below"):
        await double.scale("w", 0, 2)


async def test_what_its_pods_were_made_with_is_noted_at_admission(house):
    await house.workloads.submit(ANN, service("first", 24))
    await house.workloads.submit(ANN, service("second", 24))
    await house.workloads.set_priority(ANN, "second", priority=Priority.HIGH)
    await house.workloads.stop(ANN, "first")
    row = await house.reaches("second", State.RUNNING)
    assert dict(row.facts)["pods_priority"] == "high"
    await house.workloads.set_priority(ANN, "second", priority=Priority.LOW)
    assert dict((await house.row("second")).facts)["pods_priority"] == "high"
    assert len([c for c in house.cluster.told("apply") if c[1] == row.id]) == 1
