"""An update of what is not up yet, and of several copies on one node."""

from dataclasses import replace

from cluster_double import Cluster, gpu_node
from house import ANN, eventually, service

from podwarden.domain.reason import Code
from podwarden.domain.workload import State


async def test_a_start_that_does_not_succeed_makes_way_for_the_next_revision(house, cluster):
    cluster.auto = False
    await house.workloads.submit(ANN, service())
    row = await house.reaches("web", State.STARTING)
    (instance,) = await eventually(lambda: cluster.instances(row.id), "an instance")
    stuck = replace(instance, node="n2", reason="ErrImagePull", message="no such image")
    cluster.set_instances(row.id, stuck)

    async def says():
        now = await house.row("web")
        return now.reason is not None and now.reason.code is Code.IMAGE_PULL_FAILED

    await eventually(says, "the image cannot be fetched")
    cluster.auto = True
    better = replace(row.spec, image="example/web:2")
    said = await house.workloads.update(ANN, "web", better, dry_run=True)
    assert "not up yet" in said.text
    done = await house.workloads.update(ANN, "web", better)
    assert (done.how, done.workload.state, done.workload.revision) == (
        "recreate",
        State.STARTING,
        2,
    )
    now = await house.reaches("web", State.RUNNING)
    assert (now.spec.image, now.revision, now.reason) == ("example/web:2", 2, None)
    assert (await house.texts("web"))[-1].startswith("Running on n2")


async def test_all_copies_of_a_node_make_room_for_their_successors(start):
    busy = replace(gpu_node("n1", 24, 24), cpu_milli=2500)
    cluster = Cluster(busy)
    async with start(to=cluster) as house:
        house.cluster = cluster
        await house.acts()
        await house.workloads.submit(ANN, service("web", 24, replicas=2))
        row = await house.reaches("web", State.RUNNING)
        cluster.set_node("n1", used_cpu_milli=2000)  # of both copies
        done = await house.workloads.update(
            ANN, "web", replace(row.spec, image="example/web:2"), recreate=True
        )
        assert done.how == "recreate"
        assert (await house.reaches("web", State.RUNNING)).revision == 2
