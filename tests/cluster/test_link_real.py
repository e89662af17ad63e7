"""A Link against a real API server: what it writes is there, what it sees is true.

Covered: apply, observe, scale, update with pruning, remove (also half gone and twice), holds, gates, fence, adoption,
foreign demand and holders, logs. Faults are in test_link_faults.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from linking import access_of, becomes, linked, seen, unique
from rendering import NOW, gpu, placed, publish, rendered, spec_of, workload_of
from running import RunningEngine

from podwarden.domain.inventory import Device
from podwarden.domain.placement import Hold, Slot
from podwarden.domain.request import Request, Sharing
from podwarden.domain.workload import JobSpec, Kind, Revision
from podwarden.errors import FenceLost, NotFound
from podwarden.kube.link import Link, probe

SPACE = "/api/v1/namespaces/podwarden"


@pytest.fixture
def cards(engine: RunningEngine, node: str) -> Iterator[tuple[Device, ...]]:
    """A node with 8, 12 and 24 GB."""
    devices = (
        gpu(node, 0, "GTX 1070", 8192),
        gpu(node, 1, "RTX 3060", 12288),
        gpu(node, 2, "RTX 3090", 24576),
    )
    publish(engine, node, devices)
    yield devices
    engine.api.delete(f"/apis/resource.k8s.io/v1/resourceslices/{node}-gpu.podwarden.io")


async def test_probe_says_what_the_server_is(engine: RunningEngine) -> None:
    facts = await probe(access_of(engine))
    assert facts.number >= (1, 37)
    assert "devicetaintrules" in facts.served


async def test_a_service_is_applied_seen_scaled_and_removed(
    engine: RunningEngine, node: str, cards: tuple[Device, ...]
) -> None:
    workload = workload_of(spec_of(unique("svc"), Request(vram_mib=8192)))
    async with linked(engine) as (link, fence):
        own = await seen(
            link, lambda o: [n for n in o.nodes if n.name == node and n.devices], "node with GPUs"
        )
        assert [_card(device) for device in own[0].devices] == [_card(card) for card in cards]
        assert own[0].cpu_milli == 8000
        assert own[0].memory_mib == 32768
        assert own[0].simulated
        assert link.observe().capabilities.shared
        assert link.observe().capabilities.hold

        await link.apply(rendered(workload, placed(workload, Slot(node, (cards[2].uuid,)))), fence)
        instance = await seen(
            link,
            lambda o: next((i for i in o.instances.get(workload.id, ()) if i.ready), None),
            "a ready instance",
        )
        assert instance.node == node
        assert instance.devices == (cards[2].uuid,)
        assert instance.allocated
        assert instance.revision == 1

        o = link.observe()
        held = next(h for h in o.holdings if h.device == cards[2].uuid)
        assert held.dedicated
        assert held.node == node
        assert held.memory_mib == cards[2].memory_mib
        assert (held.holder.workload, held.holder.name) == (workload.id, workload.name)
        assert held.holder.endless
        assert held.holder.cpu_milli == 100
        used = next(n for n in o.nodes if n.name == node)
        assert (used.used_cpu_milli, used.used_memory_mib, used.used_pods) == (
            100,
            workload.spec.instance_memory_mib,
            1,
        )
        presence = o.presences[workload.id]
        assert (presence.desired, presence.revision, presence.edited) == (1, 1, "")
        assert ("Deployment", workload.name) in presence.objects

        await link.scale(workload.id, 0, fence)
        await seen(
            link,
            lambda o: (
                not o.instances.get(workload.id)
                and not [h for h in o.holdings if h.holder.workload == workload.id]
                and o.presences[workload.id].desired == 0
                and o.presences[workload.id].edited == ""
            ),
            "nothing of it runs or holds",
        )
        await link.remove(workload.id, keep_volumes=False, fence=fence)
        await seen(link, lambda o: workload.id not in o.presences, "it is gone")
        await link.remove(workload.id, keep_volumes=False, fence=fence)
        await _vanishes(engine, workload.id)


def _card(device: Device) -> tuple[object, ...]:
    return device.uuid, device.node, device.index, device.model, device.vram_mib, device.memory_mib


def _objects(engine: RunningEngine, workload: str) -> list[str]:
    """Everything with the workload's label, whatever its kind."""
    groups = {
        "/api/v1": ("configmaps", "secrets", "services", "persistentvolumeclaims", "pods"),
        "/apis/apps/v1": ("deployments", "replicasets"),
        "/apis/batch/v1": ("jobs",),
        "/apis/resource.k8s.io/v1": ("resourceclaimtemplates", "resourceclaims"),
    }
    return [
        f"{plural}/{item['metadata']['name']}"
        for group, plurals in groups.items()
        for plural in plurals
        for item in engine.api.items(
            f"{group}/namespaces/podwarden/{plural}",
            labelSelector=f"podwarden.io/workload={workload}",
        )
    ]


async def _vanishes(engine: RunningEngine, workload: str) -> None:
    left: list[str] = []

    def gone() -> bool:
        left[:] = _objects(engine, workload)
        return not left

    try:
        await becomes(gone, "no object of it is left")
    except AssertionError as error:
        raise AssertionError(f"still there: {left}") from error


async def test_an_update_prunes_what_the_older_revision_left(
    engine: RunningEngine, node: str, cards: tuple[Device, ...]
) -> None:
    one = workload_of(
        spec_of(
            unique("upd"), Request(vram_mib=4096, sharing=Sharing.SHARED), secrets=(("K", "k"),)
        )
    )
    three = replace(one, revision=3, spec=replace(one.spec, secrets=(), memory_mib=128))
    async with linked(engine) as (link, fence):
        slot = placed(one, Slot(node, (cards[0].uuid,)))
        await link.apply(rendered(one, slot, secrets={"k": "v"}), fence)
        assert f"secrets/{one.name}" in _objects(engine, one.id)
        await link.apply(rendered(three, slot), fence)
        await becomes(
            lambda: (
                not any("-r1-" in name or "secrets" in name for name in _objects(engine, one.id))
            ),
            "template of revision 1 and the secret are gone",
        )
        await seen(link, lambda o: o.presences[one.id].revision == 3, "revision 3 is seen")
        await link.remove(one.id, keep_volumes=False, fence=fence)


async def test_shared_holders_are_budgets_and_end_with_their_job(
    engine: RunningEngine, node: str, cards: tuple[Device, ...]
) -> None:
    spec = spec_of(
        unique("job"),
        Request(vram_mib=3072, sharing=Sharing.SHARED),
        kind=Kind.JOB,
        job=JobSpec(time_limit_s=3600),
        annotations=(("simulator.podwarden.io/run-seconds", "1"),),
    )
    workload = workload_of(spec)
    async with linked(engine) as (link, fence):
        await link.apply(rendered(workload, placed(workload, Slot(node, (cards[1].uuid,)))), fence)
        held = await seen(
            link,
            lambda o: next((h for h in o.holdings if h.holder.workload == workload.id), None),
            "it holds its budget",
        )
        assert (held.memory_mib, held.shares, held.device) == (3072, 1, cards[1].uuid)
        assert not held.holder.endless
        assert held.holder.ends_by is not None
        await seen(
            link,
            lambda o: (
                o.presences[workload.id].complete
                and not [h for h in o.holdings if h.holder.workload == workload.id]
            ),
            "done, and its GPU is free",
        )
        assert link.observe().presences[workload.id].succeeded == 1
        await link.remove(workload.id, keep_volumes=False, fence=fence)


async def test_gates_open_one_by_one_onto_the_node_that_was_said(
    engine: RunningEngine, node: str, other_node: str
) -> None:
    spec = spec_of(
        unique("arr"),
        kind=Kind.JOB,
        job=JobSpec(array=(5, 8)),
        annotations=(("simulator.podwarden.io/run-seconds", "600"),),
    )
    workload = workload_of(spec)
    async with linked(engine) as (link, fence):
        await link.apply(rendered(workload, placed(workload, Slot(node), Slot(other_node))), fence)
        waiting = await seen(
            link,
            lambda o: len(o.instances.get(workload.id, ())) == 4 and o.instances[workload.id],
            "four tasks",
        )
        assert all(i.gated and not i.node for i in waiting)
        assert sorted(i.index for i in waiting) == [0, 1, 2, 3]
        first, second = waiting[:2]
        slots = [(first.name, other_node), (second.name, node), ("no-such-instance", node)]
        await link.open_gates(workload.id, slots, fence)
        await link.open_gates(workload.id, slots, fence)
        nodes = await seen(
            link,
            lambda o: (
                (found := {i.name: i.node for i in o.instances[workload.id] if i.node})
                and len(found) == 2
                and found
            ),
            "two are placed",
        )
        assert nodes == {first.name: other_node, second.name: node}
        pod = engine.api.get(f"{SPACE}/pods/{first.name}")
        assert pod["metadata"]["annotations"]["podwarden.io/index-value"] == str(5 + first.index)
        assert sum(i.gated for i in link.observe().instances[workload.id]) == 2
        await link.remove(workload.id, keep_volumes=False, fence=fence)
        await seen(link, lambda o: workload.id not in o.instances, "no task is left")


async def test_holds_are_made_and_taken_away(
    engine: RunningEngine, node: str, cards: tuple[Device, ...]
) -> None:
    async with linked(engine) as (link, fence):
        two = [Hold(cards[0].uuid, node, "w1", NOW), Hold(cards[2].uuid, node, "w1", NOW)]
        await link.set_holds(two, fence)
        mine = {(hold.device, "w1") for hold in two}
        await seen(link, lambda o: set(o.holds) == mine, "both are held")
        await link.set_holds(two[:1], fence)
        await seen(link, lambda o: o.holds == ((cards[0].uuid, "w1"),), "one is held")
        await link.set_holds([], fence)
        await seen(link, lambda o: not o.holds, "none is held")


async def test_an_outdated_leader_changes_nothing(engine: RunningEngine, node: str) -> None:
    workload = workload_of(spec_of(unique("old")))
    async with linked(engine) as (link, fence):
        await link.apply(rendered(workload, placed(workload, Slot(node))), fence)
        await seen(link, lambda o: workload.id in o.presences, "it is there")
        async with linked(engine) as (newer, higher):
            assert higher == fence + 1
            for write in (
                link.apply(rendered(replace(workload, revision=2)), fence),
                link.scale(workload.id, 0, fence),
                link.remove(workload.id, keep_volumes=False, fence=fence),
                link.set_holds([Hold("gpu-x", node, "w")], fence),
                link.raise_fence(fence),
            ):
                with pytest.raises(FenceLost):
                    await write
            deployment = engine.api.get(
                f"/apis/apps/v1/namespaces/podwarden/deployments/{workload.name}"
            )
            assert deployment["spec"]["replicas"] == 1
            assert "deletionTimestamp" not in deployment["metadata"]
            await newer.raise_fence(higher)
            await newer.remove(workload.id, keep_volumes=False, fence=higher)
            await seen(newer, lambda o: workload.id not in o.presences, "the newer one may")


async def test_remove_ends_what_is_half_gone(engine: RunningEngine, node: str) -> None:
    workload = workload_of(spec_of(unique("half")))
    async with linked(engine) as (link, fence):
        await link.apply(rendered(workload, placed(workload, Slot(node))), fence)
        await seen(link, lambda o: o.instances.get(workload.id), "it runs")
        engine.api.http.request(
            "DELETE",
            f"/apis/apps/v1/namespaces/podwarden/deployments/{workload.name}",
            content=json.dumps({"propagationPolicy": "Orphan"}),
            headers={"Content-Type": "application/json"},
        ).raise_for_status()
        await seen(link, lambda o: workload.id not in o.presences, "somebody took its owner away")
        assert link.observe().instances[workload.id]
        await link.remove(workload.id, keep_volumes=False, fence=fence)
        await _vanishes(engine, workload.id)


async def test_changes_by_others_are_named(engine: RunningEngine, node: str) -> None:
    workload = workload_of(spec_of(unique("edit")))
    path = f"/apis/apps/v1/namespaces/podwarden/deployments/{workload.name}"
    async with linked(engine) as (link, fence):
        await link.apply(rendered(workload, placed(workload, Slot(node))), fence)
        await seen(link, lambda o: workload.id in o.presences, "it is there")
        engine.api.http.patch(
            f"{path}?fieldManager=kubectl-scale",
            content=json.dumps({"spec": {"replicas": 2}}),
            headers={"Content-Type": "application/merge-patch+json"},
        ).raise_for_status()
        edited = await seen(link, lambda o: o.presences[workload.id].edited, "the edit is seen")
        assert edited == "spec.replicas by kubectl-scale"
        assert link.observe().presences[workload.id].desired == 2
        await link.apply(rendered(workload, placed(workload, Slot(node))), fence)
        await seen(
            link,
            lambda o: o.presences[workload.id].desired == 1 and not o.presences[workload.id].edited,
            "it is taken back",
        )
        await link.remove(workload.id, keep_volumes=False, fence=fence)


async def test_what_is_there_can_be_adopted(engine: RunningEngine, node: str) -> None:
    spec = spec_of(unique("keep"))
    workload = workload_of(spec, revision=2)
    placement = placed(workload, Slot(node))
    history = (
        Revision(workload.id, 1, replace(spec, memory_mib=32), NOW, "ann", "first"),
        Revision(workload.id, 2, spec, NOW, "ann", "more memory"),
    )
    async with linked(engine) as (link, fence):
        await link.apply(rendered(workload, placement, revisions=history), fence)
        found = {each.id: each for each in await link.adoptable()}
        mine = found[workload.id]
        assert (mine.name, mine.owner, mine.revision) == (workload.name, "ann", 2)
        assert (mine.spec, mine.revisions, mine.placement) == (spec, history, placement)
        engine.api.merge(
            f"/apis/apps/v1/namespaces/podwarden/deployments/{workload.name}",
            {"metadata": {"annotations": {"podwarden.io/record": "{"}}},
        )
        assert workload.id not in {each.id for each in await link.adoptable()}
        assert any(workload.name in text for text in link.damaged)
        await link.remove(workload.id, keep_volumes=False, fence=fence)


async def test_foreign_work_is_seen_as_demand_then_as_holder(
    engine: RunningEngine, namespace: str, node: str, cards: tuple[Device, ...]
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    limits = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    container = {"name": "main", "image": "example.org/app:1", **limits}
    spec = {"containers": [container], "nodeSelector": {"kubernetes.io/hostname": node}}
    async with linked(engine) as (link, _fence):
        engine.api.create(
            pods, {"metadata": {"name": "many"}, "spec": {**spec, "containers": [
                {**container, "resources": {"limits": {"nvidia.com/gpu": "5"}}}]}},
        )  # fmt: skip
        demand = await seen(
            link, lambda o: [d for d in o.foreign if d.namespace == namespace], "demand for five"
        )
        assert (demand[0].name, demand[0].count, demand[0].nodes) == ("many", 5, frozenset({node}))
        engine.api.create(pods, {"metadata": {"name": "one"}, "spec": spec})
        held = await seen(
            link,
            lambda o: next((h for h in o.holdings if h.holder.namespace == namespace), None),
            "a holder",
        )
        assert held.holder.name == f"{namespace}/one"
        assert held.holder.workload == ""
        assert held.dedicated
        assert held.device == cards[0].uuid  # the smallest free one
        assert [d.name for d in link.observe().foreign if d.namespace == namespace] == ["many"]


async def test_logs_come_from_every_copy(engine: RunningEngine, node: str) -> None:
    workload = workload_of(spec_of(unique("logs"), replicas=2))
    async with linked(engine) as (link, fence):
        await link.apply(rendered(workload, placed(workload, Slot(node), Slot(node))), fence)
        await seen(
            link, lambda o: sum(i.ready for i in o.instances.get(workload.id, ())) == 2, "two run"
        )
        names = {i.name for i in link.observe().instances[workload.id]}
        lines = [line async for line in link.logs(workload.id)]
        assert {line.split(" | ")[0] for line in lines} == names
        one = min(names)
        only = [line async for line in link.logs(workload.id, instance=one)]
        assert only
        assert not any(line.startswith(f"{one} | ") for line in only)
        with pytest.raises(NotFound):
            async for _ in link.logs(workload.id, instance="somebody-else"):
                pass
        await link.remove(workload.id, keep_volumes=False, fence=fence)


async def test_waiting_for_a_change_ends_with_the_time(engine: RunningEngine) -> None:
    link = Link("home", access_of(engine))
    assert not link.observe().complete
    assert not link.observe().reachable
    assert await link.wait_change(99, 0.05) == 0
    await link.close()


async def test_following_a_job_ends_with_it(engine: RunningEngine, node: str) -> None:
    spec = spec_of(
        unique("tail"), kind=Kind.JOB, annotations=(("simulator.podwarden.io/run-seconds", "2"),)
    )
    workload = workload_of(spec)
    async with linked(engine) as (link, fence):
        await link.apply(rendered(workload, placed(workload, Slot(node))), fence)
        await seen(link, lambda o: o.instances.get(workload.id), "it is there")
        async with asyncio.timeout(30):
            lines = [line async for line in link.logs(workload.id, follow=True)]
        assert lines
        assert len(lines) == len(set(lines))
        assert link.observe().instances[workload.id][0].phase == "succeeded"
        await link.remove(workload.id, keep_volumes=False, fence=fence)
