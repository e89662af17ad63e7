"""Node files and the openb list: what they give, and every fault with its line."""

from __future__ import annotations

import re

import pytest

from podwarden.errors import Invalid
from podwarden.simulator.fleet_file import DEFAULT, device_uuid, read_node_file
from podwarden.simulator.fleet_openb import read_openb

OPENB = """sn,cpu_milli,memory_mib,gpu,model
openb-node-0000,64000,262144,2,P100
openb-node-0001,96000,393216,8,G2
openb-node-0002,32000,262144,0,
"""


def test_the_default_nodes_are_those_of_the_demo() -> None:
    nodes = read_node_file(DEFAULT.read_text())
    shown = {
        n.name: [(d.model, d.vram_mib, d.compute_capability) for d in n.devices] for n in nodes
    }
    assert shown == {
        "n1": [], "n2": [],
        "n3": [("RTX 3060", 12288, "8.6"), ("RTX 3090", 24576, "8.6")],
        "n4": [("RTX A4000", 16384, "8.6")] * 2,
        "n5": [("GTX 1070", 8192, "6.1")],
    }  # fmt: skip
    assert [n.name for n in nodes if n.server] == ["n1"]


def test_everything_that_a_file_can_say() -> None:
    text = """
nodes:
  - name: big
    count: 2
    role: server
    cpu: 2.5
    memory: 4Gi
    pods: 30
    labels: {rack: attic, example.org/zone: "1"}
    gpus:
      - {model: NVIDIA A10, vram: 24GB, count: 2, compute: 8.6, driver: 615.10, cuda: 13.4, encoders: 0, kind: vgpu, outside: 1GB}
      - {model: T4, vram: 16GB}
"""
    first, second = read_node_file(text)
    assert (first.name, second.name) == ("big-1", "big-2")
    assert (first.cpu_milli, first.memory_mib, first.pods, first.server) == (2500, 4096, 30, True)
    assert first.labels == (("example.org/zone", "1"), ("rack", "attic"))
    a10, other, t4 = first.devices
    assert (a10.index, other.index, t4.index) == (0, 1, 2)
    assert (a10.node, a10.kind, a10.encoders, t4.encoders) == ("big-1", "vgpu", 0, None)
    assert (a10.driver_version, a10.cuda_version, a10.compute_capability) == (
        "615.1",
        "13.4",
        "8.6",
    )
    assert (a10.outside_mib, a10.memory_mib) == (1024, (24576 - 738 - 1024) // 128 * 128)
    assert (t4.driver_version, t4.pci_bus_id) == ("580.95.05", "0000:03:00.0")


def test_uuids_follow_from_node_and_index() -> None:
    nodes = read_node_file(DEFAULT.read_text())
    uuids = [device.uuid for node in nodes for device in node.devices]
    assert uuids == [d.uuid for n in read_node_file(DEFAULT.read_text()) for d in n.devices]
    assert len(set(uuids)) == len(uuids) == 5
    assert uuids[0] == device_uuid("n3", 0)
    assert all(re.fullmatch(r"gpu-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", u) for u in uuids)


GOOD = "nodes:\n  - {name: a, cpu: 1, memory: 1Gi%s}\n"


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("", 1, "nodes"),
        ("[]", 1, "nodes"),
        ("nodes: []", 1, "nodes"),
        ("nodes: 3", 1, "nodes"),
        ("nods: []", 1, "nods"),
        ("nodes:\n  - 3", 2, "nodes[0]"),
        ("nodes:\n  - {cpu: 1, memory: 1Gi}", 2, "nodes[0].name"),
        ("nodes:\n  - {name: A_b, cpu: 1, memory: 1Gi}", 2, "nodes[0].name"),
        ("nodes:\n  - name: a\n    memory: 1Gi", 2, "nodes[0].cpu"),
        ("nodes:\n  - name: a\n    cpu: 0\n    memory: 1Gi", 3, "nodes[0].cpu"),
        ("nodes:\n  - name: a\n    cpu: 1\n    memory: 12", 4, "nodes[0].memory"),
        (GOOD % ", role: boss", 2, "nodes[0].role"),
        (GOOD % ", count: 0", 2, "nodes[0].count"),
        (GOOD % ", count: 5001", 2, "nodes[0].count"),
        (GOOD % ", pods: 0", 2, "nodes[0].pods"),
        (GOOD % ", gpu: []", 2, "nodes[0].gpu"),
        (GOOD % ", labels: {a b: c}", 2, "nodes[0].labels.a b"),
        (GOOD % ", gpus: [{vram: 8GB}]", 2, "nodes[0].gpus[0].model"),
        (GOOD % ", gpus: [{model: T4}]", 2, "nodes[0].gpus[0].vram"),
        (GOOD % ", gpus: [{model: T4, vram: 16 gigs}]", 2, "nodes[0].gpus[0].vram"),
        (GOOD % ", gpus: [{model: T4, vram: 16GB, outside: 17GB}]", 2, "nodes[0].gpus[0].outside"),
        (GOOD % ", gpus: [{model: T4, vram: 16GB, compute: eight}]", 2, "nodes[0].gpus[0].compute"),
        (GOOD % ", gpus: [{model: T4, vram: 16GB, driver: new}]", 2, "nodes[0].gpus[0].driver"),
        (GOOD % ", gpus: [{model: T4, vram: 16GB, kind: toy}]", 2, "nodes[0].gpus[0].kind"),
        (GOOD % ", gpus: [{model: T4, vram: 16GB, encoders: -1}]", 2, "nodes[0].gpus[0].encoders"),
        (GOOD % ", gpus: [{model: T4, vram: 16GB, count: 65}]", 2, "nodes[0].gpus[0].count"),
        (GOOD % ", gpus: [{model: T4, vram: 16GB, count: 64}, {model: T4, vram: 8GB}]", 2, "nodes[0].gpus"),
        ("nodes:\n  - {name: a, cpu: 1, memory: 1Gi, cpu: 2}", 2, "nodes[0].cpu"),
        ("nodes:\n  - &x {name: a, cpu: 1, memory: 1Gi}\n  - *x", 3, "YAML"),
        ("nodes:\n\t- a", 2, "YAML"),
        ("nodes: [", 1, "YAML"),
        ("a: b\x00c", None, "YAML"),
        ("[" * 5000, 1, "YAML"),
        ("[" * 5000 + "]" * 5000, 1, "YAML"),
        ("x" * (1 << 20) + "x", None, "YAML"),
        (GOOD % "" + "  - {name: a, cpu: 1, memory: 1Gi}\n", None, "nodes"),
        ("nodes:\n" + "  - {name: a, count: 3000, cpu: 1, memory: 1Gi}\n" * 2, 1, "nodes"),
    ],
)  # fmt: skip
def test_every_fault_has_its_line(text: str, line: int | None, field: str) -> None:
    with pytest.raises(Invalid) as caught:
        read_node_file(text, "nodes.yaml")
    problem = caught.value.problems[0]
    assert (problem.field, problem.line) == (field, line)
    assert problem.fix
    assert str(caught.value).startswith("nodes.yaml: ")


def test_all_faults_are_found_in_one_pass() -> None:
    text = (
        "nodes:\n  - {name: A, cpu: x, memory: y}\n  - {name: b, cpu: 1, memory: 1Gi, bogus: 1}\n"
    )
    with pytest.raises(Invalid) as caught:
        read_node_file(text)
    assert [p.line for p in caught.value.problems] == [2, 2, 2, 3]


def test_the_openb_list() -> None:
    p100, g2, none = read_openb(OPENB)
    assert (p100.name, p100.cpu_milli, p100.memory_mib) == ("openb-node-0000", 64000, 262144)
    assert [(d.model, d.vram_mib, d.compute_capability) for d in p100.devices] == [
        ("P100", 16280, "6.0")
    ] * 2
    assert (len(g2.devices), g2.devices[0].vram_mib, none.devices) == (8, 20000, ())
    uuids = {d.uuid for node in (p100, g2) for d in node.devices}
    assert len(uuids) == 10


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("", 1, "columns"),
        ("name,cpu\n", 1, "columns"),
        (OPENB + "x,1,1,1,H900\n", 5, "model"),
        (OPENB + "x,1,1,1,\n", 5, "model"),
        (OPENB + "x,-1,1,0,\n", 5, "cpu_milli"),
        (OPENB + "x,1,one,0,\n", 5, "memory_mib"),
        (OPENB + "x,1,1,65,T4\n", 5, "gpu"),
        (OPENB + "x,1\n", 5, "memory_mib"),
        (OPENB + ",1,1,0,\n", 5, "sn"),
        (OPENB + "openb-node-0000,1,1,0,\n", 5, "sn"),
        (OPENB + '"x,1,1,0,\n', 5, "CSV"),
    ],
)
def test_a_fault_in_the_openb_list_has_its_line(text: str, line: int, field: str) -> None:
    with pytest.raises(Invalid) as caught:
        read_openb(text, "nodes.csv")
    problem = caught.value.problems[0]
    assert (problem.field, problem.line) == (field, line)
