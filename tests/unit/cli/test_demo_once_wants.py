"""The checks of `demo --once` on objects made by hand: each says yes to what is right, and no to what is nearly right."""

from __future__ import annotations

from typing import Any

import pytest

from podwarden.cli.demo_once_cases import CASES, After, Deploy, Refused
from podwarden.cli.demo_once_seen import Seen, amount
from podwarden.cli.demo_once_wants import (
    Ended,
    Idle,
    MustSpill,
    NeverAway,
    NodeAway,
    Nothing,
    Restarted,
    Runs,
    SameGpu,
    TookOver,
)
from podwarden.kube.kinds import CLAIM, CONFIG_MAP, JOB, NODE, POD, SLICE

Json = dict[str, Any]
DRIVER = "gpu.podwarden.io"
N4 = frozenset({"n4"})


class Cluster:
    """Objects as the API server would tell of them."""

    def __init__(self) -> None:
        self.seen = Seen(client=None)  # type: ignore[arg-type]  # nothing is asked here
        for name, cpu in (("n1", "4"), ("n2", "8"), ("n3", "16"), ("n4", "16")):
            self.node(name, cpu)
        self.slice("n3", ["a"])
        self.slice("n4", ["b", "c"])

    def node(self, name: str, cpu: str = "16", *, ready: str = "True") -> None:
        status = {"allocatable": {"cpu": cpu}, "conditions": [{"type": "Ready", "status": ready}]}
        self.seen.put(NODE, {"metadata": {"name": name}, "status": status})

    def slice(self, node: str, devices: list[str]) -> None:
        made = [
            {
                "name": name,
                "attributes": {"model": {"string": f"RTX {name}"}},
                "capacity": {"memory": {"value": "16384Mi"}, "shares": {"value": "64"}},
            }
            for name in devices
        ]
        spec = {"driver": DRIVER, "nodeName": node, "pool": {"name": node}, "devices": made}
        self.seen.put(SLICE, {"metadata": {"name": f"{node}-gpus"}, "spec": spec})

    def pod(
        self,
        name: str,
        workload: str,
        node: str = "n4",
        *,
        ready: bool = True,
        phase: str = "Running",
        going: bool = False,
        cpu: str = "500m",
        restarts: int = 0,
        exit_code: int | None = None,
        revision: str = "1",
        frame: str = "",
    ) -> Json:
        last = {} if exit_code is None else {"terminated": {"exitCode": exit_code}}
        labels = {"podwarden.io/name": workload, "podwarden.io/revision": revision}
        pod = {
            "metadata": {
                "name": name,
                "namespace": "podwarden",
                "labels": labels if workload else {},
                "annotations": {"podwarden.io/index-value": frame} if frame else {},
                **({"deletionTimestamp": "now"} if going else {}),
            },
            "spec": {
                "nodeName": node,
                "containers": [{"resources": {"requests": {"cpu": cpu}}}],
            },
            "status": {
                "phase": phase,
                "conditions": [{"type": "Ready", "status": str(ready)}],
                "containerStatuses": [{"restartCount": restarts, "lastState": last}],
            },
        }
        self.seen.put(POD, pod)
        return pod

    def claim(
        self, pod: str, *devices: tuple[str, str], shares: str = "64", memory: str = "16Gi"
    ) -> None:
        used = {"shares": shares, "memory": memory}
        results = [
            {"driver": DRIVER, "pool": pool, "device": name, "consumedCapacity": used}
            for pool, name in devices
        ]
        status = {"allocation": {"devices": {"results": results}}} if results else {}
        owner = {"kind": "Pod", "name": pod}
        meta = {"name": f"{pod}-gpu", "namespace": "podwarden", "ownerReferences": [owner]}
        self.seen.put(CLAIM, {"metadata": meta, "status": status})

    def job(self, workload: str, succeeded: int) -> None:
        meta = {
            "name": workload,
            "namespace": "podwarden",
            "labels": {"podwarden.io/name": workload},
        }
        self.seen.put(JOB, {"metadata": meta, "status": {"succeeded": succeeded}})

    def ok(self, want: Any, name: str = "w") -> bool:
        return want.look(self.seen, name).ok


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_nothing_means_never_anything(cluster: Cluster) -> None:
    assert cluster.ok(Nothing())
    meta = {"name": "w", "namespace": "podwarden", "labels": {"podwarden.io/name": "w"}}
    cluster.seen.put(CONFIG_MAP, {"metadata": meta})
    cluster.seen.drop(CONFIG_MAP, ("podwarden", "w"))
    assert not cluster.ok(Nothing())
    assert cluster.ok(Nothing(), "other")


def test_a_whole_gpu(cluster: Cluster) -> None:
    want = Runs(N4, "RTX b", 1)
    assert not cluster.ok(want)
    cluster.pod("w-1", "w")
    assert not cluster.ok(want)
    cluster.claim("w-1", ("n4", "b"))
    assert cluster.ok(want)
    for other in (
        Runs(frozenset({"n3"}), "RTX b", 1),
        Runs(N4, "RTX c", 1),
        Runs(N4, "RTX b", 2),
        Runs(N4, "RTX b"),
        Runs(N4, "RTX b", 1, copies=2),
        Runs(N4, "RTX b", 1, revision="2"),
        Runs(N4, "RTX b", 1, memory_mib=16384),
    ):
        assert not cluster.ok(other)


@pytest.mark.parametrize(
    "change", [{"ready": False}, {"going": True}, {"phase": "Failed"}, {"node": "n3"}]
)
def test_a_copy_that_does_not_serve_is_none(cluster: Cluster, change: dict[str, Any]) -> None:
    cluster.pod("w-1", "w", **change)
    cluster.claim("w-1", ("n4", "b"))
    assert not cluster.ok(Runs(N4, "RTX b", 1))


def test_part_of_a_gpu_is_no_whole_one_and_two_need_two(cluster: Cluster) -> None:
    cluster.pod("w-1", "w")
    cluster.claim("w-1", ("n4", "b"), shares="1", memory="5Gi")
    assert not cluster.ok(Runs(N4, "RTX b", 1))
    assert cluster.ok(Runs(N4, "RTX b", 1, memory_mib=5120))
    assert not cluster.ok(Runs(N4, "RTX b", 1, memory_mib=4096))
    cluster.claim("w-1", ("n4", "b"), ("n4", "b"))
    assert not cluster.ok(Runs(N4, gpus=2))
    cluster.claim("w-1", ("n4", "b"), ("n4", "c"))
    assert cluster.ok(Runs(N4, gpus=2))


def test_the_same_gpu_within_its_memory(cluster: Cluster) -> None:
    want = SameGpu("other")
    for name in ("w", "other"):
        cluster.pod(f"{name}-1", name)
        cluster.claim(f"{name}-1", ("n4", "b"), shares="1", memory="8Gi")
    assert cluster.ok(want)
    cluster.claim("other-1", ("n4", "b"), shares="1", memory="9Gi")
    assert not cluster.ok(want)
    cluster.claim("other-1", ("n4", "c"), shares="1", memory="8Gi")
    assert not cluster.ok(want)


def test_spilling_only_when_it_must(cluster: Cluster) -> None:
    cluster.pod("w-1", "w", "n3", cpu="6")
    assert not cluster.ok(MustSpill())  # n2 has 8
    cluster.pod("other-1", "", "n2", cpu="2500m")
    assert cluster.ok(MustSpill())
    cluster.pod("w-1", "w", "n1", cpu="6")
    assert not cluster.ok(MustSpill())


def test_ended_and_free(cluster: Cluster) -> None:
    cluster.pod("w-1", "w", phase="Succeeded", frame="1")
    cluster.claim("w-1", ("n4", "b"))
    cluster.job("w", 1)
    assert not cluster.ok(Ended())
    cluster.claim("w-1")
    assert cluster.ok(Ended())
    assert not cluster.ok(Ended(2))
    assert cluster.ok(Ended(1, frozenset("1")))
    assert not cluster.ok(Ended(1, frozenset("2")))
    cluster.pod("w-2", "w", phase="Succeeded", frame="1")
    assert not cluster.ok(Ended(1, frozenset("1")))


def test_idle_has_neither_copies_nor_gpus(cluster: Cluster) -> None:
    cluster.pod("w-1", "w")
    cluster.claim("w-1", ("n4", "b"))
    cluster.seen.drop(POD, ("podwarden", "w-1"))
    assert not cluster.ok(Idle())
    cluster.seen.drop(CLAIM, ("podwarden", "w-1-gpu"))
    assert cluster.ok(Idle())


def test_taking_over_needs_giving_back_first(cluster: Cluster) -> None:
    cluster.pod("other-1", "other")
    cluster.pod("w-1", "w")
    cluster.claim("other-1", ("n4", "b"))
    cluster.claim("w-1", ("n4", "b"))
    cluster.claim("other-1")
    assert not cluster.ok(TookOver("other"))
    cluster.claim("w-1")
    cluster.claim("other-1", ("n4", "b"))
    cluster.claim("other-1")
    cluster.claim("w-1", ("n4", "b"))
    assert cluster.ok(TookOver("other"))
    assert not cluster.ok(TookOver("third"))


def test_a_restart_is_the_same_copy_again(cluster: Cluster) -> None:
    want = Restarted(1, 3)
    cluster.pod("w-1", "w")
    assert not cluster.ok(want)
    cluster.pod("w-1", "w", restarts=1, exit_code=1)
    assert not cluster.ok(want)
    cluster.pod("w-1", "w", restarts=1, exit_code=3, ready=False)
    assert not cluster.ok(want)
    cluster.pod("w-1", "w", restarts=1, exit_code=3)
    assert cluster.ok(want)
    cluster.seen.drop(POD, ("podwarden", "w-1"))
    cluster.pod("w-2", "w", restarts=1, exit_code=3)
    assert not cluster.ok(want)


def test_an_outage_of_a_moment_is_remembered(cluster: Cluster) -> None:
    assert not cluster.ok(NeverAway())
    cluster.pod("w-1", "w", ready=False)
    cluster.pod("w-1", "w")
    cluster.pod("w-2", "w")
    cluster.seen.drop(POD, ("podwarden", "w-1"))
    assert cluster.ok(NeverAway())
    cluster.pod("w-2", "w", going=True)
    cluster.pod("w-3", "w")
    assert not cluster.ok(NeverAway())


def test_a_node_that_is_away(cluster: Cluster) -> None:
    assert not cluster.ok(NodeAway("n4"))
    cluster.node("n4", ready="Unknown")
    assert cluster.ok(NodeAway("n4"))


@pytest.mark.parametrize(
    ("text", "number"),
    [("250m", 0.25), ("2", 2), ("6Gi", 6 * 2**30), ("15872Mi", 15872 * 2**20), ("1k", 1000)],
)
def test_quantities(text: str, number: float) -> None:
    assert amount(text) == number


def test_what_is_no_quantity() -> None:
    with pytest.raises(ValueError, match="no quantity: much"):
        amount("much")


def test_the_set_is_complete_and_names_what_exists() -> None:
    names = [case.workload for case in CASES]
    assert len(set(names)) == len(names) == 14
    for case in CASES:
        assert sum(isinstance(step, Deploy | Refused) for step in case.steps) == 1
        for step in case.steps:
            if isinstance(step, After):
                other = next(c for c in CASES if c.workload == step.other)
                assert step.steps <= len(other.steps)
