"""The oracle on worlds made by hand: where it must object, where it must keep silent."""

from __future__ import annotations

from typing import Any

import pytest
from agreement import counted_wrong, disagreements
from churn import Expected
from oracle import World, could_ever, could_start, world
from oracle_reasons import Finding, idle_for_head, untrue
from rawapi import Json
from witness import Memory

GIB = 1024


def node(name: str, *, ready: bool = True, cpu: str = "8", taint: str = "") -> Json:
    return {
        "metadata": {"name": name},
        "spec": {"taints": [{"key": taint, "effect": "NoSchedule"}] if taint else []},
        "status": {
            "allocatable": {"cpu": cpu, "memory": "32Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


def gpus(on: str, **cards: int) -> Json:
    """cards: device name and VRAM in GB."""
    devices = [
        {
            "name": name,
            "attributes": {
                "model": {"string": f"card {gb}"},
                "vramMiB": {"int": gb * GIB},
                "computeCapability": {"version": "8.6.0"},
            },
            "capacity": {"memory": {"value": f"{int(gb * GIB * 0.97) // 128 * 128}Mi"}},
        }
        for name, gb in cards.items()
    ]
    return {"spec": {"driver": "gpu.podwarden.io", "nodeName": on, "devices": devices}}


def pod(name: str, on: str = "", *, own: str = "", kind: str = "ReplicaSet", **more: Any) -> Json:
    labels = {"podwarden.io/name": own, "podwarden.io/workload": f"id-{own}"} if own else {}
    return {
        "metadata": {
            "name": name,
            "namespace": "podwarden" if own else "others",
            "uid": f"uid-{name}",
            "labels": labels,
            "ownerReferences": [{"kind": kind, "uid": f"{kind}-{own}"}],
            **more.pop("meta", {}),
        },
        "spec": {
            **({"nodeName": on} if on else {}),
            "containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
            **more.pop("spec", {}),
        },
        "status": {"phase": "Running" if on else "Pending", **more.pop("status", {})},
    }


def claim(of: Json, *devices: str, memory: str = "", shares: str = "64") -> Json:
    used = {"shares": shares, **({"memory": memory} if memory else {})}
    return {
        "metadata": {
            "name": f"{of['metadata']['name']}-gpu",
            "namespace": of["metadata"]["namespace"],
            "ownerReferences": [{"kind": "Pod", "name": of["metadata"]["name"]}],
        },
        "spec": {"devices": {"requests": [{"exactly": {"count": max(len(devices), 1)}}]}},
        "status": {
            "allocation": {
                "devices": {
                    "results": [
                        {"driver": "gpu.podwarden.io", "device": d, "consumedCapacity": used}
                        for d in devices
                    ]
                }
            },
            "reservedFor": [{"name": of["metadata"]["name"], "uid": of["metadata"]["uid"]}],
        }
        if devices
        else {},
    }


def made(nodes: list[Json], slices: list[Json], *held: tuple[Json, ...]) -> World:
    """held: pods, each with its claims."""
    return world(
        {
            "nodes": nodes,
            "resourceslices": slices,
            "pods": [one for one, *_ in held],
            "resourceclaims": [c for _, *claims in held for c in claims],
        }
    )


def asks(name: str = "w", place: int | None = 1, code: str = "", **more: Any) -> Json:
    """An entry of the queue. gpu: what it asks; text, notes, remedy: what it is told."""
    reason = {
        "code": code, "text": more.pop("text", ""), "remedy": more.pop("remedy", ""),
        "notes": more.pop("notes", []), "ahead": more.pop("ahead", []),
    }  # fmt: skip
    spec = {"name": name, "resources": {"cpu": 1, "memory": "1Gi"}, "shm": "64Mi", **more}
    return {
        "id": f"id-{name}",
        "name": name,
        "position": place,
        "spec": spec,
        "reason": reason if code else None,
    }


def note(device: str, on: str, code: str, text: str) -> Json:
    return {"node": on, "device": device, "code": code, "text": text}


BIG, SMALL = gpus("n1", big=24), gpus("n2", small=8)
NODES = [node("n1"), node("n2")]
HOLDER = pod("vllm-1", "n1", own="vllm")
ENDING = pod("render-1", "n1", own="render", kind="Job")
VRAM = {"count": 1, "vram": "20GB"}


def said(now: World, *queue: Json) -> str:
    return " | ".join(
        f.text for f in untrue(now, list(queue), {"vllm", "render", "w", "v", "other"})
    )


# --- books ------------------------------------------------------------------------------------------


def test_a_gpu_that_is_given_twice_is_found() -> None:
    other = pod("other-1", "n1", own="other")
    now = made(NODES, [BIG], (HOLDER, claim(HOLDER, "big")), (other, claim(other, "big")))
    assert now.broken == ["n1 big: 128 of 64 shares given", "n1 big: 47616 of 23808 MiB promised"]
    assert "128 of 64" in said(now)


def test_a_shared_gpu_is_full_by_its_memory() -> None:
    pods = [pod(f"s-{n}", "n1", own=f"s{n}") for n in range(3)]
    fine = [(p, claim(p, "big", memory="8Gi", shares="1")) for p in pods[:2]]
    assert made(NODES, [BIG], *fine).broken == []
    full = [(p, claim(p, "big", memory="9Gi", shares="1")) for p in pods]
    assert made(NODES, [BIG], *full).broken == ["n1 big: 27648 of 23808 MiB promised"]


# --- does it fit --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "where"),
    [
        ({"count": 1, "vram": "24GB"}, ["n1"]),
        ({"count": 1, "vram": "8GB"}, ["n1", "n2"]),
        ({"count": 1, "vram": "25GB"}, ["n1"]),  # within the tolerance of a card of that size
        ({"count": 1, "vram": "26GB"}, []),
        ({"count": 2}, []),
        ({"count": 1, "vram": "10GB", "sharing": "shared"}, ["n1"]),
        ({"count": 1, "vram": "24GB", "sharing": "shared"}, []),
        ({"count": 1, "model": ["card 8"]}, ["n2"]),
        ({"count": 1, "compute": ">=8.7"}, []),
        ({"count": 1, "compute": ">=8.6"}, ["n1", "n2"]),
    ],
)
def test_where_it_fits(request_: Json, where: list[str]) -> None:
    now = made(NODES, [BIG, SMALL])
    spec = asks(gpu=request_)["spec"]
    assert could_start(now, spec) == where
    assert could_ever(now, spec) is bool(where)


def test_what_stands_in_the_way() -> None:
    spec = asks(gpu=VRAM)["spec"]
    assert could_start(made(NODES, [BIG], (HOLDER, claim(HOLDER, "big"))), spec) == []
    assert could_start(made([node("n1", ready=False)], [BIG]), spec) == []
    assert could_start(made([node("n1", taint="somebodys")], [BIG]), spec) == []
    assert could_start(made([node("n1", taint="podwarden.io/gpu")], [BIG]), spec) == ["n1"]
    assert could_start(made([node("n1", cpu="500m")], [BIG]), spec) == []
    assert could_start(made(NODES, [BIG]), {**spec, "node": "n2"}) == []
    assert could_start(made(NODES, [BIG]), {**spec, "avoid": ["n1"]}) == []


def test_what_others_are_owed_is_not_free() -> None:
    """A pod that waits for the scheduler, a copy on a lost node; not one behind its gate."""
    spec = asks(gpu=VRAM)["spec"]
    waits = pod("x", own="other", spec={"resourceClaims": [{"name": "gpu"}]})
    assert could_start(made(NODES, [BIG], (waits, claim(waits))), spec) == []
    gated = pod("x", own="other", spec={"resourceClaims": [{}], "schedulingGates": [{"name": "g"}]})
    assert could_start(made(NODES, [BIG], (gated, claim(gated))), spec) == ["n1"]
    lost = pod("y", "n3", own="other", spec={"resourceClaims": [{"name": "gpu"}]})
    third = [*NODES, node("n3", ready=False)]
    assert could_start(made(third, [BIG], (lost, claim(lost, "gone"))), spec) == []
    foreign = pod("f", spec={"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]})
    assert could_start(made(NODES, [BIG], (foreign,)), spec) == []


# --- reasons --------------------------------------------------------------------------------------------


def test_a_true_queue_is_left_alone() -> None:
    now = made(NODES, [BIG, SMALL], (HOLDER, claim(HOLDER, "big")))
    first = asks(
        gpu=VRAM, code="WAITS_FOR_SERVICE", text="n1 card 24 is held by vllm.",
        remedy="Stop vllm, or ask for 8 GB to start now on n2.",
        notes=[
            note("big", "n1", "WAITS_FOR_SERVICE", "n1 card 24 is held by vllm, a service"),
            note("small", "n2", "NO_DEVICE_LARGE_ENOUGH", "n2 card 8 has 8 GB: too small"),
        ],
    )  # fmt: skip
    second = asks("v", 2, "WAITS_BEHIND", gpu=VRAM, text="w is ahead", ahead=["w"])
    assert said(now, first, second) == ""
    assert idle_for_head(now, [first, second]) is None


FREE = made(NODES, [BIG, SMALL])
HELD = made(NODES, [BIG, SMALL], (HOLDER, claim(HOLDER, "big")))
JOBBED = made(NODES, [BIG, SMALL], (ENDING, claim(ENDING, "big")))


@pytest.mark.parametrize(
    ("now", "entry", "objection"),
    [
        (FREE, asks(gpu=VRAM), "waits without a reason"),
        (FREE, asks(gpu=VRAM, code="DEVICES_IN_USE"), "yet it fits on n1"),
        (FREE, asks(gpu=VRAM, code="DEVICES_IN_USE"), "no GPU that suits it is held"),
        (JOBBED, asks(gpu=VRAM, code="WAITS_FOR_SERVICE"), "nothing without an end holds"),
        (FREE, asks(code="CPU_OR_MEMORY_SHORT"), "has CPU and memory enough"),
        (HELD, asks(gpu=VRAM, code="NODE_NOT_READY"), "every node is ready"),
        (HELD, asks(gpu=VRAM, code="WAITS_BEHIND", text="for a while"), "does not say behind whom"),
        (HELD, asks(gpu=VRAM, code="DEVICES_IN_USE", ahead=["ghost"]), "ghost as ahead"),
        (
            FREE,
            asks(gpu=VRAM, code="WAITS_BEHIND", text="other is ahead"),
            "nobody ahead can use n1",
        ),
        (
            HELD,
            asks(gpu=VRAM, code="WAITS_FOR_SERVICE", remedy="Stop other to start now."),
            "advises to stop other",
        ),
        (
            HELD,
            asks(gpu=VRAM, code="WAITS_FOR_SERVICE", remedy="Ask for 16 GB to start now on n2."),
            "its advice would not help",
        ),
    ],
)
def test_each_untrue_statement_is_objected_to(now: World, entry: Json, objection: str) -> None:
    assert objection in said(now, entry)


@pytest.mark.parametrize(
    ("now", "told", "objection"),
    [
        (
            FREE,
            note("big", "n1", "DEVICES_IN_USE", "n1 card 24 is held by vllm"),
            "nobody holds it",
        ),
        (HELD, note("big", "n1", "DEVICES_IN_USE", "n1 card 24 is free"), "it is held"),
        (HELD, note("big", "n1", "DEVICES_IN_USE", "is held by other"), "others than vllm"),
        (HELD, note("big", "n2", "DEVICES_IN_USE", "is held by vllm"), "it is on n1"),
        (HELD, note("big", "n1", "NO_DEVICE_LARGE_ENOUGH", "too small"), "is too small"),
        (HELD, note("big", "n1", "DEVICE_UNHEALTHY", "is lost"), "is unhealthy"),
        (HELD, note("", "n1", "NODE_NOT_READY", "n1 is not ready"), "n1 is not ready"),
        (HELD, note("big", "n1", "CPU_OR_MEMORY_SHORT", "is free, with 1"), "it is held"),
    ],
)
def test_each_untrue_note_is_objected_to(now: World, told: Json, objection: str) -> None:
    assert objection in said(now, asks(gpu=VRAM, code="WAITS_FOR_SERVICE", notes=[told]))


def test_two_at_the_same_place() -> None:
    queue = [asks("w", 1, "DEVICES_IN_USE", gpu=VRAM), asks("v", 1, "DEVICES_IN_USE", gpu=VRAM)]
    assert "share place 1" in said(HELD, *queue)


def test_idle_capacity_for_the_head_is_found_and_nothing_else() -> None:
    head = asks(gpu=VRAM, code="DEVICES_IN_USE")
    idle = idle_for_head(FREE, [head])
    assert idle is not None
    assert "w is first and fits on n1" in idle.text
    assert idle_for_head(HELD, [head]) is None
    assert idle_for_head(FREE, []) is None
    assert idle_for_head(FREE, [asks(gpu=VRAM, place=2)]) is None, "somebody else is first"
    assert idle_for_head(FREE, [asks(gpu=VRAM, replicas=2)]) is None


# --- time ---------------------------------------------------------------------------------------------


def test_a_finding_counts_only_when_it_outlives_an_unchanged_world() -> None:
    memory, one = Memory(), Finding(("w", "x"), "untrue")
    looks = [(0.0, "a"), (1.0, "a"), (1.5, "b"), (2.5, "b"), (3.4, "b"), (3.6, "b")]
    late = [memory.add([(one, state)], at, at, 2.0) for at, state in looks]
    assert late == [[], [], [], [], [], ["for 2.1 s: untrue"]]
    assert memory.add([], 4.0, 4.0, 2.0) == []
    assert memory.add([(one, "b")], 9.0, 9.0, 2.0) == [], "it had gone in between"


def test_one_slow_look_is_no_proof() -> None:
    memory, one = Memory(), Finding(("w", "x"), "untrue")
    assert memory.add([(one, None)], 0.0, 0.1, 2.0) == []
    assert memory.add([(one, None)], 30.0, 31.0, 2.0) == []


# --- the balance at the end -----------------------------------------------------------------------------


class Shelf:
    """What the API server would list."""

    def __init__(self, **lists: list[Json]) -> None:
        self._lists = lists
        self.raw = self

    def items(self, path: str, **_: str) -> list[Json]:
        return self._lists.get(path.rsplit("/", 1)[1], [])

    def pods(self) -> list[Json]:
        return self.items("/pods")


def shown(name: str, state: str, kind: str = "service", **more: Any) -> Json:
    return {
        "id": f"id-{name}", "name": name, "state": state, "kind": kind, "revision": 1,
        "spec": {}, "devices": [], "nodes": [], "reason": None, **more,
    }  # fmt: skip


def running(name: str) -> Json:
    one = pod(
        f"{name}-1", "n1", own=name, status={"conditions": [{"type": "Ready", "status": "True"}]}
    )
    one["metadata"]["labels"]["podwarden.io/revision"] = "1"
    return one


def deployment(name: str, replicas: int = 1) -> Json:
    labels = {"podwarden.io/workload": f"id-{name}", "podwarden.io/name": name}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"replicas": replicas},
        "status": {},
    }


def test_cluster_and_store_are_compared() -> None:
    shelf = Shelf(deployments=[deployment("a")], pods=[running("a")])
    assert disagreements(shelf, [shown("a", "running", nodes=["n1"])]) == []
    faults = {
        "shown on": [shown("a", "running", nodes=["n2"])],
        "copies are still wanted": [shown("a", "stopped")],
        "alive": [shown("a", "queued")],
        "shown is 2": [shown("a", "running", nodes=["n1"], revision=2)],
        "shows GPUs": [shown("a", "running", nodes=["n1"], devices=[{"uuid": "big"}])],
        "belongs to nobody": [],
    }
    for fault, workloads in faults.items():
        assert fault in " ".join(disagreements(shelf, workloads)), fault
    twice = Shelf(deployments=[deployment("a"), deployment("a")], pods=[running("a")])
    assert "twice" in " ".join(disagreements(twice, [shown("a", "running", nodes=["n1"])]))


def test_lost_doubled_and_repeated_work_is_counted() -> None:
    book = {name: Expected(name, "job", "") for name in ("kept", "gone", "lost")}
    book["gone"].deleted = True
    there = [
        shown("kept", "succeeded", "job"),
        shown("gone", "running"),
        shown("kept", "queued", "job"),
    ]
    ends = [pod(f"kept-{n}", "n1", own="kept", kind="Job") for n in range(2)]
    found = " | ".join(counted_wrong(book, there, ends, Shelf()))
    for fault in (
        "kept is there 2 times", "lost is lost", "gone was deleted and is there",
        "succeeded 2 times", "kept is queued instead of succeeded",
    ):  # fmt: skip
        assert fault in found
    again = [pod("kept-1", "n1", own="kept", kind="Job") for _ in range(2)]
    again[1]["metadata"]["ownerReferences"][0]["uid"] = "Job-second"
    book = {"kept": Expected("kept", "job", "")}
    assert "kept ran 2 times" in " ".join(counted_wrong(book, there[:1], again, Shelf()))
