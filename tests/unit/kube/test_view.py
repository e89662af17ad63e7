"""Objects in, observations out: holders, use, foreign work, presences, and that only what matters counts as a change."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pytest
from objects import T0, card, claim, container, deployment, node, own_meta, pod, slice_

from podwarden.domain.inventory import Holding, Node
from podwarden.domain.observation import Observation
from podwarden.kube import kinds
from podwarden.kube.index import Index
from podwarden.kube.kinds import Kind
from podwarden.kube.view import Health, View
from podwarden.kube.watch import key_of

NOW = datetime(2026, 11, 30, 13, tzinfo=UTC)
ALL = frozenset({"resourceclaims", "resourceslices", "deviceclasses", "devicetaintrules"})


class World:
    """An index, its view, and short ways to change it."""

    def __init__(self, version: tuple[int, int] = (1, 37), served: frozenset[str] = ALL) -> None:
        self.index = Index("home")
        self.view = View(self.index)
        self.health = Health(True, True, "", version, served)

    def put(self, kind: Kind, *objects: dict[str, Any]) -> None:
        for obj in objects:
            self.index.put(kind, obj)

    def drop(self, kind: Kind, obj: dict[str, Any]) -> None:
        self.index.drop(kind, key_of(obj))

    def look(self) -> Observation:
        return self.view.observation(self.health, NOW)

    def node(self, name: str = "n1") -> Node:
        return next(node for node in self.look().nodes if node.name == name)

    def held(self) -> Holding:
        (holding,) = self.look().holdings
        return holding


def gpu_world() -> World:
    world = World()
    world.put(kinds.NODE, node("n1"))
    world.put(kinds.SLICE, slice_("n1", [card("gpu-a", 12), card("gpu-b", 24)]))
    return world


def test_use_counts_every_pod_of_every_namespace_until_it_ends() -> None:
    world = gpu_world()
    first, second = pod("a", on="n1"), pod("b", space="kube-system", on="n1")
    world.put(kinds.POD, first, second, pod("elsewhere", on="n2"), pod("waits", phase="Pending"))
    assert (world.node().used_cpu_milli, world.node().used_memory_mib, world.node().used_pods) == (
        200,
        128,
        2,
    )
    world.put(kinds.POD, pod("a", on="n1", phase="Succeeded"))
    assert world.node().used_pods == 1
    world.put(kinds.POD, pod("b", space="kube-system", on="n1", meta={"deletionTimestamp": T0}))
    assert world.node().used_pods == 1
    world.drop(kinds.POD, second)
    assert (world.node().used_cpu_milli, world.node().used_pods) == (0, 0)


def test_heartbeats_and_other_noise_change_nothing() -> None:
    world = gpu_world()
    world.put(kinds.POD, pod("a", on="n1", meta={"resourceVersion": "1"}))
    before = world.look()
    world.put(kinds.NODE, node("n1", beat="2026-11-30T12:05:00Z", images=[{"names": ["x"]}]))
    world.put(
        kinds.POD, pod("a", on="n1", meta={"resourceVersion": "2", "annotations": {"x": "y"}})
    )
    world.put(kinds.SLICE, slice_("n1", [card("gpu-a", 12), card("gpu-b", 24)]))
    assert world.index.revision == before.revision
    assert world.look() is before
    world.put(kinds.NODE, node("n1", ready=False))
    assert world.look().revision > before.revision
    assert not world.node().ready


def test_node_facts() -> None:
    world = World()
    taints = [
        {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
        {"key": "podwarden.io/gpu", "effect": "PreferNoSchedule"},
        {"key": "dedicated", "effect": "NoSchedule"},
        {"key": "soft", "effect": "PreferNoSchedule"},
    ]
    labels = {"node-role.kubernetes.io/control-plane": "true", "simulator.podwarden.io/power": "on"}
    world.put(
        kinds.NODE,
        node("n1", spec={"taints": taints, "unschedulable": True}, labels=labels, cpu="7500m"),
    )
    seen = world.node()
    assert (seen.taints, seen.cordoned, seen.server, seen.simulated) == (
        ("dedicated",),
        True,
        True,
        True,
    )
    assert (seen.cpu_milli, seen.memory_mib, seen.pods, seen.address) == (
        7500,
        32768,
        110,
        "192.0.2.1",
    )
    world.drop(kinds.NODE, node("n1"))
    assert world.look().nodes == ()


def test_devices_come_smallest_first_and_a_pool_being_rewritten_counts_once() -> None:
    world = World()
    world.put(kinds.NODE, node("n1"))
    old, new = (
        slice_("n1", [card("gpu-b", 24), card("gpu-a", 12)]),
        slice_("n1", [card("gpu-a", 12)], generation=2),
    )
    world.put(kinds.SLICE, old)
    assert [device.uuid for device in world.node().devices] == ["gpu-a", "gpu-b"]
    world.put(kinds.SLICE, new)
    assert [device.uuid for device in world.node().devices] == ["gpu-a"]
    world.drop(kinds.SLICE, new)
    world.drop(kinds.SLICE, old)
    assert world.node().devices == ()


def test_a_dedicated_holder_and_its_release_at_the_claim_not_at_the_end_of_the_pod() -> None:
    world = gpu_world()
    own = pod("p1", own="id-vllm", on="n1")
    taken = claim(
        "c1",
        space="podwarden",
        device="gpu-b",
        pods=["p1"],
        consumed={"shares": "64", "memory": "24Gi"},
    )
    world.put(kinds.CLAIM, taken)  # the claim may arrive before its pod
    assert world.held().holder.workload == ""
    world.put(kinds.POD, own)
    held = world.held()
    assert (held.device, held.node, held.shares, held.memory_mib) == ("gpu-b", "n1", 64, 24576)
    assert (held.holder.name, held.holder.workload, held.holder.instance) == (
        "vllm",
        "id-vllm",
        "p1",
    )
    assert (held.holder.cpu_milli, held.holder.memory_mib) == (100, 64)
    assert held.holder.endless
    assert not held.holder.terminating
    world.put(kinds.POD, pod("p1", own="id-vllm", on="n1", phase="Succeeded"))
    assert world.held().holder.terminating
    world.put(kinds.CLAIM, claim("c1", space="podwarden"))
    assert world.look().holdings == ()


def test_shared_holders_and_two_requests_of_one_claim_in_one_device_add_up() -> None:
    world = gpu_world()
    world.put(kinds.POD, pod("p1", own="id-a", on="n1"))
    both = claim(
        "c1",
        space="podwarden",
        device="gpu-a",
        pods=["p1"],
        consumed={"shares": "1", "memory": "2Gi"},
    )
    results = both["status"]["allocation"]["devices"]["results"]
    results.append(
        {**results[0], "request": "more", "consumedCapacity": {"shares": "1", "memory": "1Gi"}}
    )
    world.put(kinds.CLAIM, both)
    assert (world.held().shares, world.held().memory_mib) == (2, 3072)


def test_a_terminating_pod_of_a_dead_node_still_holds() -> None:
    world = gpu_world()
    world.put(kinds.NODE, node("n1", ready=False))
    world.put(kinds.POD, pod("p1", own="id-a", on="n1", meta={"deletionTimestamp": T0}))
    world.put(
        kinds.CLAIM,
        claim("c1", space="podwarden", device="gpu-a", pods=["p1"], consumed={"shares": "64"}),
    )
    assert world.held().holder.terminating
    assert world.held().holder.workload == "id-a"


def test_a_claim_that_outlived_its_pod_is_nobodys_work() -> None:
    """Field case P-43: a claim being deleted for hours, reserved for a pod that no longer exists."""
    world = gpu_world()
    world.put(kinds.CLAIM, claim("zombie", space="lab", device="gpu-b", pods=["gone"], going=True))
    held = world.held()
    assert held.holder.terminating
    assert held.holder.workload == ""
    assert held.holder.name == "lab/gone"
    assert held.shares == 64


def test_a_holder_on_a_node_whose_slice_is_away_is_still_counted() -> None:
    world = gpu_world()
    world.put(kinds.POD, pod("p1", own="id-a", on="n1"))
    world.put(kinds.CLAIM, claim("c1", space="podwarden", device="gpu-b", pods=["p1"], consumed={"shares": "64", "memory": "24Gi"}))  # fmt: skip
    world.drop(kinds.SLICE, slice_("n1", []))
    held = world.held()
    assert (held.device, held.node, held.shares, held.memory_mib) == ("gpu-b", "n1", 64, 24576)


def test_a_claim_shared_by_several_pods_ends_with_the_last() -> None:
    world = gpu_world()
    world.put(
        kinds.POD,
        pod("p1", on="n1", spec={"activeDeadlineSeconds": 60}, status={"startTime": T0}),
        pod("p2", on="n1", spec={"activeDeadlineSeconds": 600}, status={"startTime": T0}),
    )
    world.put(kinds.CLAIM, claim("c1", device="gpu-b", pods=["p1", "p2"]))
    assert world.held().holder.ends_by == datetime(2026, 11, 30, 12, 10, 30, tzinfo=UTC)
    world.put(kinds.POD, pod("p2", on="n1"))
    assert world.held().holder.endless
    assert world.held().holder.ends_by is None


def test_another_drivers_whole_gpu_and_its_shares_by_memory() -> None:
    world = World()
    world.put(kinds.NODE, node("n1"))
    whole = card("gpu-0", 24, shares=False)
    world.put(kinds.SLICE, slice_("n1", [whole], driver="gpu.nvidia.com"))
    world.put(kinds.CLAIM, claim("c1", device="gpu-0", pods=["x"], driver="gpu.nvidia.com"))
    assert (world.held().shares, world.held().memory_mib) == (64, 24576)
    able = world.look().capabilities
    assert (able.dedicated, able.shared, able.hold, able.vram_floor, able.driver) == (True, False, False, True, "gpu.nvidia.com")  # fmt: skip
    assert able.why
    whole["allowMultipleAllocations"] = True
    world.put(kinds.SLICE, slice_("n1", [whole], driver="gpu.nvidia.com"))
    world.put(
        kinds.CLAIM,
        claim(
            "c1", device="gpu-0", pods=["x"], driver="gpu.nvidia.com", consumed={"memory": "6Gi"}
        ),
    )
    assert (world.held().shares, world.held().memory_mib) == (1, 6144)
    assert world.look().capabilities.shared


def test_a_network_card_is_no_gpu() -> None:
    world = gpu_world()
    world.put(kinds.CLAIM, claim("c1", device="eth1", driver="dranet"))
    assert world.look().holdings == ()


def test_a_device_plugins_gpus_are_whole_numbered_and_held_by_age() -> None:
    world = World()
    labels = {"nvidia.com/gpu.product": "NVIDIA-GeForce-RTX-3060", "nvidia.com/gpu.memory": "12288"}
    world.put(kinds.NODE, node("n1", labels=labels, allocatable={"nvidia.com/gpu": "2"}))
    assert [
        (d.uuid, d.model, d.vram_mib, d.whole_only, d.dra_driver) for d in world.node().devices
    ] == [
        ("n1/gpu-0", "RTX 3060", 12288, True, ""),
        ("n1/gpu-1", "RTX 3060", 12288, True, ""),
    ]
    late = {"creationTimestamp": "2026-11-30T12:30:00Z"}
    wants = {"containers": [container(gpus="1")]}
    world.put(
        kinds.POD, pod("aaa", on="n1", spec=wants, meta=late), pod("zzz", on="n1", spec=wants)
    )
    assert [(h.device, h.holder.instance) for h in world.look().holdings] == [
        ("n1/gpu-0", "zzz"),
        ("n1/gpu-1", "aaa"),
    ]
    able = world.look().capabilities
    assert (able.shared, able.vram_floor, able.hold, able.steer_device, able.driver) == (
        False,
        True,  # the labels say how large they are: the cluster can be asked for that
        False,
        False,
        "",
    )
    world.put(kinds.NODE, node("n2", allocatable={"nvidia.com/gpu": "1"}))
    able = world.look().capabilities
    assert not able.vram_floor, "one node does not say how large its GPUs are"
    assert "without a choice of size" in " ".join(able.why)
    world.put(kinds.POD, pod("zzz", on="n1", spec=wants, phase="Succeeded"))
    assert [h.holder.instance for h in world.look().holdings] == ["aaa"]


@pytest.mark.parametrize(
    ("version", "served", "shared", "hold"),
    [
        ((1, 37), ALL, True, True),
        ((1, 36), ALL - {"devicetaintrules"}, True, False),
        ((1, 35), ALL - {"devicetaintrules"}, False, False),
    ],
)
def test_what_older_versions_cannot_do(
    version: tuple[int, int], served: frozenset[str], shared: bool, hold: bool
) -> None:
    world = World(version, served)
    world.put(kinds.NODE, node("n1"))
    world.put(kinds.SLICE, slice_("n1", [card("gpu-a", 12)]))
    able = world.look().capabilities
    assert (able.shared, able.hold) == (shared, hold)
    assert len(able.why) == (not shared) + (not hold)


def test_foreign_demand_ends_when_its_claim_is_there() -> None:
    world = gpu_world()
    world.put(kinds.NODE, node("n2", labels={"zone": "b"}))
    wants = {"containers": [container("500m", "256Mi", gpus="1")], "nodeSelector": {"zone": "b"}}
    world.put(kinds.POD, pod("w", space="lab", phase="Pending", spec=wants))
    (demand,) = world.look().foreign
    assert (demand.namespace, demand.name, demand.count, demand.nodes) == (
        "lab",
        "w",
        1,
        frozenset({"n2"}),
    )
    assert (demand.cpu_milli, demand.memory_mib) == (500, 256)
    world.put(kinds.NODE, node("n3", labels={"zone": "b"}))
    assert world.look().foreign[0].nodes == {"n2", "n3"}
    world.put(kinds.CLAIM, claim("w-extended-resources-x", space="lab", device="gpu-a", owner="w"))
    seen = world.look()
    assert seen.foreign == ()
    assert seen.holdings[0].holder.name == "lab/w"


def test_instances_know_their_devices_and_when_they_are_allocated() -> None:
    world = gpu_world()
    status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c1"}]}
    asks = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}
    world.put(kinds.POD, pod("p1", own="id-a", phase="Pending", spec=asks, status=status))
    (instance,) = world.look().instances["id-a"]
    assert not instance.allocated
    world.put(kinds.CLAIM, claim("c1", space="podwarden", device="gpu-a", pods=["p1"]))
    (instance,) = world.look().instances["id-a"]
    assert instance.allocated
    assert instance.devices == ("gpu-a",)
    world.put(kinds.POD, pod("p2", own="id-b", phase="Pending"), pod("p3", own="id-c", on="n1"))
    assert not world.look().instances["id-b"][0].allocated
    assert world.look().instances["id-c"][0].allocated
    world.drop(kinds.POD, pod("p1", own="id-a"))
    assert "id-a" not in world.look().instances


def test_what_did_not_change_stays_the_same_object() -> None:
    world = gpu_world()
    world.put(kinds.POD, pod("p1", own="id-a", on="n1"), pod("p2", own="id-b", on="n1"))
    world.put(kinds.DEPLOYMENT, deployment("id-a"), deployment("id-b"))
    before = world.look()
    world.put(kinds.POD, pod("p2", own="id-b", on="n1", phase="Failed"))
    world.put(kinds.DEPLOYMENT, deployment("id-b", replicas=3))
    after = world.look()
    assert after.instances["id-a"] is before.instances["id-a"]
    assert after.presences["id-a"] is before.presences["id-a"]
    assert after.presences["id-b"].desired == 3
    assert before.presences["id-b"].desired == 1


def note(reason: str, name: str, *, uid: str = "uid-p1", message: str = "m") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "podwarden"},
        "involvedObject": {"uid": uid},
        "reason": reason,
        "message": message,
    }


def test_events_explain_a_start_that_the_status_does_not() -> None:
    world = gpu_world()
    creating = {
        "containerStatuses": [{"name": "m", "state": {"waiting": {"reason": "ContainerCreating"}}}]
    }
    world.put(kinds.POD, pod("p1", own="id-a", on="n1", phase="Pending", status=creating))
    world.put(kinds.EVENT, note("Pulling", "e1", message='Pulling image "x"'))
    assert world.look().instances["id-a"][0].message == 'Pulling image "x"'
    world.put(kinds.EVENT, note("FailedMount", "e2", message="no such export"))
    assert world.look().instances["id-a"][0].reason == "FailedMount"
    before = world.index.revision
    world.put(kinds.EVENT, note("FailedMount", "e3", uid="uid-stranger"))
    world.drop(kinds.EVENT, note("", "e1"))
    assert world.index.revision == before
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    world.put(kinds.POD, pod("p1", own="id-a", on="n1", status=ready))
    assert world.look().instances["id-a"][0].reason == ""
    world.put(kinds.POD, pod("p1", own="id-a", on="n1"))
    world.put(kinds.EVENT, note("Unhealthy", "e4", message="Startup probe failed: 503"))
    assert world.look().instances["id-a"][0].message == "Startup probe failed: 503"


def test_presence_of_a_service_through_an_update() -> None:
    world = gpu_world()
    half = deployment("id-a", replicas=2, revision=4)
    half["status"] = {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 1,
        "readyReplicas": 2,
    }
    world.put(kinds.DEPLOYMENT, half)
    presence = world.look().presences["id-a"]
    assert (presence.revision, presence.desired, presence.updated_ready) == (4, 2, 0)
    assert (presence.generation, presence.observed_generation) == (1, 1)
    done = deployment("id-a", replicas=2, revision=4)
    done["status"] = {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2}
    world.put(kinds.DEPLOYMENT, done)
    assert world.look().presences["id-a"].updated_ready == 2


def test_presence_of_a_job_and_what_is_left_of_a_workload() -> None:
    world = gpu_world()
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "m"}
    job = {
        "metadata": own_meta("id-j", deletionTimestamp=T0),
        "spec": {"parallelism": 4, "suspend": True},
        "status": {"succeeded": 3, "failed": 1, "conditions": [failed]},
    }
    world.put(kinds.JOB, job)
    world.put(kinds.CONFIG_MAP, {"metadata": own_meta("id-j", name="j-record")})
    presence = world.look().presences["id-j"]
    assert (presence.desired, presence.suspended, presence.succeeded, presence.failed) == (
        0,
        True,
        3,
        1,
    )
    assert (presence.complete, presence.failed_why, presence.deleting) == (
        False,
        "BackoffLimitExceeded: m",
        True,
    )
    assert presence.objects == (("ConfigMap", "j-record"), ("Job", "j"))
    world.drop(kinds.JOB, job)
    assert "id-j" not in world.look().presences
    assert [part.name for part in world.index.parts_of("id-j")] == ["j-record"]


def managed(manager: str, spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"manager": manager, "fieldsV1": {"f:spec": spec}, **more}


@pytest.mark.parametrize(
    ("entries", "edited"),
    [
        ([managed("podwarden", {"f:replicas": {}})], ""),
        ([managed("kube-controller-manager", {"f:replicas": {}})], ""),
        ([managed("kubectl", {"f:x": {}}, subresource="status")], ""),
        ([managed("kubectl-edit", {"f:replicas": {}})], "spec.replicas by kubectl-edit"),
        ([managed("helm", {"f:replicas": {}}, subresource="scale")], "spec.replicas by helm"),
        (
            [managed("k9s", {"f:template": {"f:spec": {"f:containers": {'k:{"name":"a"}': {"f:image": {}}}}}})],
            "spec.template.spec.containers.image by k9s",
        ),
    ],
)  # fmt: skip
def test_who_edited_what(entries: list[dict[str, Any]], edited: str) -> None:
    world = World()
    made = deployment("id-a")
    made["metadata"]["managedFields"] = entries
    world.put(kinds.DEPLOYMENT, made)
    assert world.look().presences["id-a"].edited == edited


def test_addresses_follow_the_balancer_or_a_node() -> None:
    world = World()
    world.put(kinds.NODE, node("n1"))
    world.put(kinds.DEPLOYMENT, deployment("id-a"))
    service = {
        "metadata": own_meta("id-a", name="a-lan"),
        "spec": {"type": "LoadBalancer", "ports": [{"port": 11434, "nodePort": 30001}]},
        "status": {},
    }
    world.put(kinds.SERVICE, service)
    assert world.look().presences["id-a"].address == "http://192.0.2.1:30001"
    world.drop(kinds.NODE, node("n1"))
    assert world.look().presences["id-a"].address == ""
    world.put(
        kinds.SERVICE, service | {"status": {"loadBalancer": {"ingress": [{"ip": "2001:db8::1"}]}}}
    )
    assert world.look().presences["id-a"].address == "http://[2001:db8::1]:11434"
    world.put(kinds.SERVICE, service | {"spec": {"type": "ClusterIP", "ports": [{"port": 1}]}})
    assert world.look().presences["id-a"].address == ""


def test_volumes_tell_their_node() -> None:
    world = World()
    world.put(kinds.NODE, node("n1", labels={"kubernetes.io/hostname": "host-one"}))
    meta = own_meta("id-a", name="a-models")
    meta["labels"]["podwarden.io/volume"] = "models"
    meta["annotations"] = {"volume.kubernetes.io/selected-node": "n1"}
    world.put(kinds.VOLUME_CLAIM, {"metadata": meta, "spec": {}})
    assert world.look().volume_nodes == {"id-a/models": "n1"}
    world.put(kinds.VOLUME_CLAIM, {"metadata": meta, "spec": {"volumeName": "pv1"}})
    term = {
        "matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": ["host-one"]}
        ]
    }
    fixed = {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}
    world.put(kinds.VOLUME, {"metadata": {"name": "pv1"}, "spec": fixed})
    assert world.look().volume_nodes == {"id-a/models": "n1"}
    world.put(kinds.VOLUME, {"metadata": {"name": "pv1"}, "spec": {}})
    assert world.look().volume_nodes == {}


def test_holds_are_only_ours() -> None:
    world = World()
    rule = {
        "metadata": {"name": "h"},
        "spec": {
            "deviceSelector": {"driver": "gpu.podwarden.io", "pool": "n1", "device": "gpu-a"},
            "taint": {"key": "podwarden.io/hold", "value": "w1", "effect": "NoSchedule"},
        },
    }
    world.put(
        kinds.TAINT_RULE, rule, {"metadata": {"name": "x"}, "spec": {"taint": {"key": "other"}}}
    )
    assert world.look().holds == (("gpu-a", "w1"),)


def test_any_order_of_arrival_gives_the_same_picture() -> None:
    """The incremental books against the same objects given at once, after random comings and goings."""
    draw = random.Random(20261130)
    things: list[tuple[Kind, dict[str, Any]]] = [(kinds.NODE, node(f"n{i}")) for i in range(3)]
    things += [(kinds.SLICE, slice_(f"n{i}", [card(f"gpu-{i}", 8 * (i + 1))])) for i in range(3)]
    for i in range(30):
        own = {"own": f"id-{i % 7}"} if i % 3 else {}
        phase = draw.choice(["Pending", "Running", "Succeeded"])
        things.append(
            (
                kinds.POD,
                pod(f"p{i}", on=f"n{i % 3}" if phase != "Pending" else "", phase=phase, **own),
            )
        )
        things.append(
            (
                kinds.CLAIM,
                claim(
                    f"c{i}",
                    device=f"gpu-{i % 3}",
                    pool=f"n{i % 3}",
                    pods=[f"p{i}"],
                    consumed={"shares": "1", "memory": "128Mi"},
                ),
            )
        )
    things += [(kinds.DEPLOYMENT, deployment(f"id-{i}")) for i in range(7)]
    moving = World()
    there: set[int] = set()
    for step in range(2000):
        at = draw.randrange(len(things))
        kind, obj = things[at]
        if at in there and draw.random() < 0.5:
            moving.drop(kind, obj)
            there.discard(at)
        else:
            moving.put(kind, obj)
            there.add(at)
        if step % 97 == 0:
            moving.look()
    fresh = World()
    for at in there:
        fresh.put(*things[at])
    got, want = moving.look(), fresh.look()
    for part in (
        "nodes",
        "holdings",
        "foreign",
        "capabilities",
        "instances",
        "presences",
        "holds",
        "volume_nodes",
    ):
        assert getattr(got, part) == getattr(want, part), part
