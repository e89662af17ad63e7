"""The simulated fleet on the real engine: nodes, slices, power, lost GPUs, volumes, many nodes, restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest
from deadline import eventually
from rendering import PODS, apply_all, held_by, placed, rendered, running, spec_of, workload_of
from running import RunningEngine

from podwarden.domain.inventory import DeviceHealth
from podwarden.domain.placement import Slot
from podwarden.domain.request import Request
from podwarden.domain.workload import Volume, VolumeKind
from podwarden.errors import NotFound
from podwarden.kube.client import Client
from podwarden.kube.connect import read_kubeconfig
from podwarden.kube.fence import fence_map
from podwarden.kube.standing import bootstrap_objects, namespace
from podwarden.simulator.fleet import Fleet
from podwarden.simulator.fleet_file import DEFAULT, read_node_file
from podwarden.simulator.fleet_volumes import VolumeBinder

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
VOLUMES = "/api/v1/persistentvolumes"
CLAIMS = "/api/v1/namespaces/podwarden/persistentvolumeclaims"
GIB = 1024


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    """An engine of its own: a fleet owns all simulated nodes of its cluster."""
    engine = RunningEngine.start(tmp_path_factory.mktemp("fleet"))
    try:
        apply_all(engine.api, [namespace(), fence_map(1), *bootstrap_objects()])
        yield engine
    finally:
        engine.stop()


@pytest.fixture
async def client(cluster: RunningEngine) -> AsyncIterator[Client]:
    client = Client(read_kubeconfig(cluster.kubeconfig.read_text()))
    yield client
    await client.close()


def nodes_of(cluster: RunningEngine) -> dict[str, dict]:
    return {node["metadata"]["name"]: node for node in cluster.api.items("/api/v1/nodes")}


async def until(condition, what: str, seconds: float = 15.0):
    """`eventually`, while the event loop runs on."""
    return await asyncio.to_thread(eventually, condition, what, seconds)


def ready(cluster: RunningEngine, *names: str) -> bool:
    return all(cluster.node_condition(name) == "True" for name in names)


async def test_the_default_nodes(cluster: RunningEngine, client: Client) -> None:
    await Fleet(client, read_node_file(DEFAULT.read_text())).start()
    await until(lambda: ready(cluster, "n1", "n2", "n3", "n4", "n5"), "five nodes ready")
    nodes = nodes_of(cluster)
    assert set(nodes) == {"n1", "n2", "n3", "n4", "n5"}
    assert nodes["n3"]["status"]["allocatable"]["memory"] == "64Gi"
    for name, node in nodes.items():
        labels = node["metadata"]["labels"]
        assert labels["podwarden.io/simulated"] == "true"
        assert ("node-role.kubernetes.io/control-plane" in labels) is (name == "n1")
        taints = [(t["key"], t["effect"]) for t in node["spec"].get("taints", [])]
        assert (("podwarden.io/gpu", "PreferNoSchedule") in taints) is (name in {"n3", "n4", "n5"})
    slices = {s["spec"]["nodeName"]: s for s in cluster.api.items(SLICES)}
    shown = {
        name: [d["attributes"]["model"]["string"] for d in s["spec"]["devices"]] for name, s in slices.items()
    }  # fmt: skip
    assert shown == {
        "n3": ["RTX 3060", "RTX 3090"], "n4": ["RTX A4000", "RTX A4000"], "n5": ["GTX 1070"],
    }  # fmt: skip
    assert slices["n3"]["metadata"]["ownerReferences"][0]["uid"] == nodes["n3"]["metadata"]["uid"]
    addresses = {
        a["address"]
        for node in nodes.values()
        for a in node["status"]["addresses"]
        if a["type"] == "InternalIP"
    }
    assert len(addresses) == 5


async def test_starting_again_writes_nothing_and_mends_what_was_changed(
    cluster: RunningEngine, client: Client
) -> None:
    nodes = read_node_file(DEFAULT.read_text())
    await Fleet(client, nodes).start()
    await until(lambda: ready(cluster, "n3", "n4"), "ready")

    def versions() -> dict[str, str]:
        slices = cluster.api.items(SLICES)
        return {s["metadata"]["name"]: s["metadata"]["resourceVersion"] for s in slices} | {
            name: str(node["metadata"]["resourceVersion"])
            for name, node in nodes_of(cluster).items()
        }

    before = versions()
    await Fleet(client, nodes).start()
    assert versions() == before
    cluster.api.merge(
        "/api/v1/nodes/n3", {"metadata": {"labels": {"podwarden.io/simulated": "true", "kubernetes.io/os": "x"}}, "spec": {"taints": None}}
    )  # fmt: skip
    cluster.api.delete(f"{SLICES}/n4-gpu.podwarden.io")
    await Fleet(client, nodes).start()
    node = nodes_of(cluster)["n3"]
    assert node["metadata"]["labels"]["kubernetes.io/os"] == "linux"
    assert [t["key"] for t in node["spec"]["taints"]] == ["podwarden.io/gpu"]
    assert len(cluster.api.get(f"{SLICES}/n4-gpu.podwarden.io")["spec"]["devices"]) == 2


async def test_another_file_changes_sizes_and_removes_nodes(
    cluster: RunningEngine, client: Client
) -> None:
    await Fleet(client, read_node_file(DEFAULT.read_text())).start()
    smaller = """
nodes:
  - {name: n2, cpu: 2, memory: 4Gi}
  - {name: n3, cpu: 16, memory: 64Gi, gpus: [{model: A10, vram: 24GB}]}
  - {name: n5, cpu: 4, memory: 16Gi}
"""
    await Fleet(client, read_node_file(smaller)).start()
    await until(lambda: set(nodes_of(cluster)) == {"n2", "n3", "n5"}, "n1 and n4 are gone")
    assert nodes_of(cluster)["n2"]["status"]["allocatable"]["memory"] == "4Gi"
    assert "taints" not in nodes_of(cluster)["n5"]["spec"]
    slices = {s["spec"]["nodeName"]: s["spec"] for s in cluster.api.items(SLICES)}
    assert set(slices) == {"n3"}
    assert slices["n3"]["pool"]["generation"] == 2
    assert [d["attributes"]["model"]["string"] for d in slices["n3"]["devices"]] == ["A10"]


async def test_a_node_that_is_made_anew_gets_a_slice_of_its_own(
    cluster: RunningEngine, client: Client
) -> None:
    nodes = read_node_file(DEFAULT.read_text())
    await Fleet(client, nodes).start()
    cluster.api.delete("/api/v1/nodes/n5")
    await Fleet(client, nodes).start()
    uid = nodes_of(cluster)["n5"]["metadata"]["uid"]

    def owners() -> list[str]:
        found = cluster.api.find(f"{SLICES}/n5-gpu.podwarden.io")
        return [o["uid"] for o in found["metadata"]["ownerReferences"]] if found else []

    assert owners() == [uid], "garbage collection of the old one must not take it"


async def test_a_service_leaves_a_node_that_is_switched_off(
    cluster: RunningEngine, client: Client
) -> None:
    fleet = Fleet(client, read_node_file(DEFAULT.read_text()))
    await fleet.start()
    await until(lambda: ready(cluster, "n1", "n2", "n3", "n4", "n5"), "ready")
    device = fleet.nodes["n4"].devices[0].uuid
    workload = workload_of(spec_of("moves", Request(1, 12 * GIB)))
    placement = placed(workload, Slot("n4", (device,)), bands=(16384, 24576))
    apply_all(cluster.api, rendered(workload, placement).objects)
    (pod,) = await until(lambda: running(cluster.api, "moves"), "runs")
    assert pod["spec"]["nodeName"] == "n4"
    await fleet.switch_off("n4")
    await fleet.start()
    assert nodes_of(cluster)["n4"]["metadata"]["labels"]["simulator.podwarden.io/power"] == "off"
    await until(
        lambda: [p for p in cluster.api.items(PODS, labelSelector="podwarden.io/name=moves")
                 if p["spec"].get("nodeName") == "n3" and p["status"]["phase"] == "Running"],
        "a replacement runs on n3", 60,
    )  # fmt: skip
    assert fleet.nodes["n3"].devices[0].uuid in [d for d, _ in held_by(cluster.api, "moves")]
    await fleet.switch_on("n4")
    await until(lambda: ready(cluster, "n4"), "n4 is back", 30)
    await until(lambda: running(cluster.api, "moves"), "one is left", 30)
    cluster.api.delete(
        "/apis/apps/v1/namespaces/podwarden/deployments/moves", propagationPolicy="Background"
    )
    await until(lambda: not cluster.api.items(PODS), "gone")


async def test_a_lost_gpu_stays_lost_over_a_restart(cluster: RunningEngine, client: Client) -> None:
    nodes = read_node_file(DEFAULT.read_text())
    fleet = Fleet(client, nodes)
    await fleet.start()

    def taints() -> list[list[str]]:
        devices = cluster.api.get(f"{SLICES}/n3-gpu.podwarden.io")["spec"]["devices"]
        return [[t["effect"] for t in d.get("taints", [])] for d in devices]

    await fleet.set_health("n3", 1, DeviceHealth.LOST)
    assert taints() == [[], ["NoExecute"]]
    await Fleet(client, nodes).start()
    assert taints() == [[], ["NoExecute"]]
    await fleet.set_health("n3", 0, DeviceHealth.UNKNOWN)
    assert taints() == [["NoSchedule"], ["NoExecute"]]
    for index in (0, 1):
        await fleet.set_health("n3", index, DeviceHealth.OK)
    assert taints() == [[], []]
    with pytest.raises(NotFound, match="n3 has no GPU 7"):
        await fleet.set_health("n3", 7, DeviceHealth.LOST)
    with pytest.raises(NotFound, match="no simulated node n9"):
        await fleet.switch_off("n9")


async def test_a_volume_is_bound_where_its_user_runs_and_stays_there(
    cluster: RunningEngine, client: Client
) -> None:
    await Fleet(client, read_node_file(DEFAULT.read_text())).start()
    await until(lambda: ready(cluster, "n1", "n2", "n5"), "ready")
    binder = asyncio.create_task(VolumeBinder(client).run())
    try:
        volume = Volume("data", "/data", VolumeKind.DISK, size_mib=100)
        workload = workload_of(spec_of("keeper", Request(1, 8 * GIB), volumes=(volume,), node="n5"))
        apply_all(cluster.api, rendered(workload, placed(workload, Slot("n5"))).objects)
        await until(lambda: running(cluster.api, "keeper"), "runs")
        claim = cluster.api.get(f"{CLAIMS}/keeper.data")
        assert claim["status"]["phase"] == "Bound"
        bound = cluster.api.get(f"{VOLUMES}/{claim['spec']['volumeName']}")
        (term,) = bound["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        assert term["matchExpressions"][0]["values"] == ["n5"]
        assert bound["spec"]["persistentVolumeReclaimPolicy"] == "Delete"

        cluster.api.delete(
            "/apis/apps/v1/namespaces/podwarden/deployments/keeper", propagationPolicy="Background"
        )
        await until(lambda: not cluster.api.items(PODS), "gone")
        assert cluster.api.get(f"{CLAIMS}/keeper.data")["status"]["phase"] == "Bound", (
            "data is kept"
        )

        again = workload_of(spec_of("keeper", Request(1, 8 * GIB), volumes=(volume,)))
        apply_all(cluster.api, rendered(again, placed(again, Slot("n3"))).objects)
        (pod,) = await until(lambda: running(cluster.api, "keeper"), "runs again")
        assert pod["spec"]["nodeName"] == "n5", "its data lies there"

        cluster.api.delete(
            "/apis/apps/v1/namespaces/podwarden/deployments/keeper", propagationPolicy="Background"
        )
        cluster.api.delete(f"{CLAIMS}/keeper.data")
        await until(lambda: not cluster.api.items(VOLUMES), "the volume goes with its claim")
    finally:
        binder.cancel()
        with suppress(asyncio.CancelledError):
            await binder


async def test_many_nodes_at_once(cluster: RunningEngine, client: Client) -> None:
    many = "nodes: [{name: big, count: 150, cpu: 32, memory: 256Gi, gpus: [{model: A10, vram: 24GB, count: 4}]}]"
    await Fleet(client, read_node_file(many)).start()
    assert len(cluster.api.items(SLICES)) == 150
    await until(lambda: ready(cluster, *[f"big-{n}" for n in range(1, 151)]), "all ready", 60)
    await Fleet(client, read_node_file("nodes: [{name: n2, cpu: 1, memory: 1Gi}]")).start()
    await until(lambda: set(nodes_of(cluster)) == {"n2"}, "all gone", 60)
    assert not cluster.api.items(SLICES)
