"""What keeps failing on its way to the cluster: it is tried on, said, and costs nothing that others could use."""

from cluster_double import Cluster, gpu_node
from house import ADMIN, ANN, eventually, job, service

from podwarden.domain.reason import Code
from podwarden.domain.workload import State
from podwarden.errors import Conflict, NotFound


async def _secret(house, name):
    await house.app.store.write(lambda unit: unit.secrets.set(name, "value", "ann"))


async def test_a_step_that_keeps_failing_is_a_reason(house):
    house.cluster.fail("apply", *[NotFound("the namespace does not exist.")] * 5)
    await house.workloads.submit(ANN, service())

    async def said():
        row = await house.row("web")
        return row if row.reason and row.reason.code is Code.REFUSED_BY_CLUSTER else None

    row = await eventually(said, "the reason")
    assert row.state is State.STARTING
    assert "the namespace does not exist." in row.reason.text
    assert (await house.reaches("web", State.RUNNING)).reason is None
    told = [text for text in await house.texts("web") if "namespace" in text]
    assert len(told) == 1


async def test_what_cannot_be_stopped_says_so(house):
    await house.workloads.submit(ANN, service())
    await house.reaches("web", State.RUNNING)
    house.cluster.fail("scale", *[Conflict("somebody holds it.")] * 5)
    await house.workloads.stop(ANN, "web")

    async def said():
        row = await house.row("web")
        return row.reason is not None and "somebody holds it." in row.reason.text

    await eventually(said, "why it does not stop")
    assert (await house.reaches("web", State.STOPPED)).reason is None


async def test_a_secret_that_is_gone_ends_the_start_with_a_reason(house):
    await _secret(house, "token")
    await house.workloads.submit(ANN, service(secrets=(("TOKEN", "token"),)))
    await house.reaches("web", State.RUNNING)
    await house.workloads.stop(ANN, "web")
    await house.reaches("web", State.STOPPED)
    await house.app.store.write(lambda unit: unit.secrets.delete("token"))
    await house.workloads.start(ANN, "web")
    row = await house.reaches("web", State.FAILED)
    assert row.reason.code is Code.REFUSED_BY_CLUSTER
    assert "secret token" in row.reason.text
    await _secret(house, "token")
    await house.workloads.start(ANN, "web")
    await house.reaches("web", State.RUNNING)


async def test_gates_that_opened_half_way_give_no_gpu_away_twice(start):
    cluster = Cluster(gpu_node("n1", 24, 24))
    async with start(to=cluster) as house:
        house.cluster = cluster
        await house.acts()
        cluster.half_open = 1
        await house.workloads.submit(ANN, job("frames", 8, array=(1, 3)))
        row = await house.reaches("frames", State.RUNNING)

        def running():
            return [i for i in cluster.instances(row.id) if i.phase == "running"]

        await eventually(lambda: len(running()) == 2, "two tasks on two GPUs")
        books = house.app.ledger.books("home")
        await eventually(lambda: not books.grants.get(row.id), "no slot is promised any more")
        for _ in range(3):
            task = (await eventually(running, "a running task"))[0]
            cluster.end_task(row.id, task.name)
        await house.reaches("frames", State.SUCCEEDED)
        assert await house.workloads.queue(ADMIN) == ()
