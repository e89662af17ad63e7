"""What a fleet writes: only what is needed, many at once. The real server is in tests/cluster/test_fleet.py."""

from __future__ import annotations

from typing import Any

import httpx
from simulating import ACCESS, Answers

from podwarden.kube.client import Client
from podwarden.kube.devices import device_slice
from podwarden.simulator.fleet import AT_ONCE, Fleet, node_object
from podwarden.simulator.fleet_file import SimulatedNode, read_node_file

NODES, SLICES = "/api/v1/nodes", "/apis/resource.k8s.io/v1/resourceslices"
CLASSES = ["POST /apis/resource.k8s.io/v1/deviceclasses", "POST /apis/storage.k8s.io/v1/storageclasses"]  # fmt: skip
ONE = read_node_file("nodes: [{name: n3, cpu: 4, memory: 8Gi, gpus: [{model: T4, vram: 16GB}]}]")


def shown(node: SimulatedNode, **metadata: Any) -> dict[str, Any]:
    """A node as the server has it."""
    made = node_object(node, 0)
    return {**made, "metadata": {**made["metadata"], "uid": "u3", **metadata}}


def published(node: SimulatedNode, uid: str = "u3") -> dict[str, Any]:
    slice_ = device_slice(node.name, uid, node.devices, 4)
    return {**slice_, "metadata": {**slice_["metadata"], "resourceVersion": "5"}}


async def started(nodes: tuple[SimulatedNode, ...], answers: Answers) -> list[str]:
    client = Client(ACCESS, transport=answers)
    await Fleet(client, nodes).start()
    await client.close()
    assert answers.writes[:2] == CLASSES
    return answers.writes[2:]


async def test_two_writes_a_node_and_many_at_once() -> None:
    many = "nodes: [{name: n, count: 300, cpu: 1, memory: 1Gi, gpus: [{model: T4, vram: 16GB}]}]"
    answers = Answers({NODES: [], SLICES: []})
    writes = await started(read_node_file(many), answers)
    assert sorted(set(writes)) == [f"POST {NODES}", f"POST {SLICES}"]
    assert len(writes) == 600
    assert answers.most_at_once == AT_ONCE
    addresses = {
        body["status"]["addresses"][0]["address"] for body in answers.bodies if body["kind"] == "Node"
    }  # fmt: skip
    assert len(addresses) == 300


async def test_what_is_right_is_not_written_again() -> None:
    answers = Answers({NODES: [shown(ONE[0])], SLICES: [published(ONE[0])]})
    assert await started(ONE, answers) == []


async def test_a_node_that_is_off_stays_off() -> None:
    off = shown(ONE[0])
    off["metadata"]["labels"]["simulator.podwarden.io/power"] = "off"
    assert await started(ONE, Answers({NODES: [off], SLICES: [published(ONE[0])]})) == []


async def test_taints_of_others_stay() -> None:
    node = shown(ONE[0])
    mine, other = node["spec"]["taints"][0], {"key": "example.org/x", "effect": "NoSchedule"}
    both = {**node, "spec": {"taints": [other, mine]}}
    assert await started(ONE, Answers({NODES: [both], SLICES: [published(ONE[0])]})) == []
    answers = Answers({NODES: [{**node, "spec": {"taints": [other]}}], SLICES: [published(ONE[0])]})
    assert await started(ONE, answers) == [f"PATCH {NODES}/n3"]
    assert answers.bodies[-1] == {"spec": {"taints": [other, mine]}}


async def test_a_repeated_answer_is_taken_as_the_first() -> None:
    """The node was made, the answer lost, the request repeated: 409."""
    conflict = httpx.Response(409, json={"message": "already exists"})
    read = httpx.Response(200, json=shown(ONE[0]))
    first = {f"POST {NODES}": conflict, f"GET {NODES}/n3": read}
    answers = Answers({NODES: [], SLICES: []}, first=first)
    assert await started(ONE, answers) == [f"POST {NODES}", f"POST {SLICES}"]
    assert answers.bodies[-1]["metadata"]["ownerReferences"][0]["uid"] == "u3"


async def test_the_slice_of_an_earlier_node_of_that_name_is_replaced() -> None:
    answers = Answers({NODES: [shown(ONE[0])], SLICES: [published(ONE[0], uid="older")]})
    assert await started(ONE, answers) == [f"DELETE {SLICES}/n3-gpu.podwarden.io", f"POST {SLICES}"]


async def test_what_is_gone_already_need_not_be_removed() -> None:
    gone = {
        f"DELETE {SLICES}/n3-gpu.podwarden.io": httpx.Response(404, json={"message": "gone"}),
    }
    cpu_only = read_node_file("nodes: [{name: n1, cpu: 1, memory: 1Gi}]")
    answers = Answers({NODES: [shown(ONE[0])], SLICES: []}, first=gone)
    writes = await started(cpu_only, answers)
    assert set(writes) == {
        f"DELETE {SLICES}/n3-gpu.podwarden.io", f"DELETE {NODES}/n3", f"POST {NODES}",
    }  # fmt: skip
