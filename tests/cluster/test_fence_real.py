"""The fence policy on the real API server: an outdated PodWarden changes nothing, everybody else is let alone.

Covers create, apply, patch, pod and delete; raising and lowering; people, controllers, node writes and garbage
collection; the fence, the policy and the namespace deleted. Not here: how a leader gets its number (store), and when Link raises it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from deadline import eventually
from rendering import (
    FENCE,
    PODS,
    apply_all,
    path_of,
    pods_of,
    rendered,
    running,
    spec_of,
    try_apply,
    workload_of,
)
from running import RunningEngine

from podwarden.domain.placement import Hold
from podwarden.domain.request import Request
from podwarden.domain.workload import JobSpec, Kind, Port, Volume, VolumeKind
from podwarden.errors import FenceLost
from podwarden.kube.client import Client
from podwarden.kube.connect import read_kubeconfig
from podwarden.kube.fence import OUTDATED, fence_map, fence_objects, probe_object
from podwarden.kube.fencing import Fencing
from podwarden.kube.gates import opening
from podwarden.kube.holds import hold_object
from podwarden.kube.standing import bootstrap_objects, namespace

SPACE = "namespaces/podwarden"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    """An engine of its own: the fence is one per cluster. Fence 5 leads."""
    engine = RunningEngine.start(tmp_path_factory.mktemp("fence"))
    try:
        apply_all(engine.api, [namespace(), fence_map(5), *bootstrap_objects(fence=5)], 5)
        eventually(
            lambda: try_apply(engine.api, probe_object(4), 4, dry_run=True)[0] == 403,
            "in force",
            30,
        )
        engine.add_node("f1")
        yield engine
    finally:
        engine.stop()


def refused(answer: tuple[int, dict]) -> bool:
    status, body = answer
    return status == 403 and OUTDATED in body["message"]


def patch(
    cluster: RunningEngine, path: str, body: dict, manager: str = "podwarden"
) -> tuple[int, dict]:
    answer = cluster.api.http.patch(
        path, params={"fieldManager": manager}, content=json.dumps(body),
        headers={"Content-Type": "application/merge-patch+json"},
    )  # fmt: skip
    return answer.status_code, answer.json()


SERVICE = spec_of(
    "svc", Request(1), ports=(Port("http", 80),), secrets=(("TOKEN", "hf"),),
    volumes=(Volume("data", "/data", VolumeKind.DISK, size_mib=10),),
)  # fmt: skip
JOB = spec_of("job", kind=Kind.JOB, job=JobSpec(array=(1, 3)))


def written() -> list[dict]:
    objects = [
        obj
        for spec in (SERVICE, JOB)
        for obj in rendered(workload_of(spec), secrets={"hf": "x"}).objects
    ]
    return [*objects, hold_object(Hold("gpu-f1-0", "f1", "id-svc")), *bootstrap_objects()[2:7]]


@pytest.mark.parametrize(
    "obj", written(), ids=lambda obj: f"{obj['kind']}-{obj['metadata']['name']}"
)
def test_each_kind_is_refused_below_the_fence_and_taken_at_and_above_it(
    cluster: RunningEngine, obj: dict
) -> None:
    assert refused(try_apply(cluster.api, obj, 4, dry_run=True))
    for fence in (5, 6, 10, 2**40):
        status, answer = try_apply(cluster.api, obj, fence, dry_run=True)
        assert status in {200, 201}, answer


def test_a_write_without_a_fence_is_refused(cluster: RunningEngine) -> None:
    obj = rendered(workload_of(spec_of("bare", ports=(Port("http", 80),)))).objects[0]
    answer = cluster.api.http.patch(
        path_of(obj), params={"fieldManager": "podwarden", "force": "true", "dryRun": "All"},
        content=json.dumps(obj), headers={"Content-Type": "application/apply-patch+yaml"},
    )  # fmt: skip
    assert answer.status_code == 403
    assert "without its fence" in answer.text


def test_an_outdated_leader_changes_nothing_while_everybody_else_works(
    cluster: RunningEngine,
) -> None:
    spec = spec_of("web", ports=(Port("http", 80),))
    apply_all(cluster.api, rendered(workload_of(spec)).objects, 5)
    eventually(
        lambda: running(cluster.api, "web"), "controllers, scheduler and node write their parts"
    )
    path = f"/apis/apps/v1/{SPACE}/deployments/web"
    eventually(
        lambda: cluster.api.get(path)["status"].get("readyReplicas") == 1, "status is written"
    )

    # The old leader: apply, patch, delete (it marks the object first).
    assert refused(try_apply(cluster.api, rendered(workload_of(spec)).objects[-1], 4))
    assert refused(
        patch(cluster, path, {"metadata": {"annotations": {FENCE: "4"}}, "spec": {"replicas": 0}})
    )
    # A patch that names no fence keeps the one of the object, which is the leader's own.
    assert patch(cluster, path, {"spec": {"replicas": 2}})[0] == 200
    eventually(lambda: running(cluster.api, "web", 2), "the leader scales")

    # A person scales, edits and deletes a pod; a replacement comes.
    assert patch(cluster, path, {"spec": {"replicas": 1}}, manager="kubectl-edit")[0] == 200
    eventually(
        lambda: running(cluster.api, "web", 1) and len(pods_of(cluster.api, "web")) == 1, "one left"
    )
    old = pods_of(cluster.api, "web")[0]["metadata"]["name"]
    cluster.api.delete(f"{PODS}/{old}")
    eventually(
        lambda: (p := running(cluster.api, "web")) and p[0]["metadata"]["name"] != old, "replaced"
    )

    # Garbage collection follows the owner.
    cluster.api.delete(path, propagationPolicy="Background")
    eventually(lambda: not pods_of(cluster.api, "web"), "all gone")


def test_a_delete_of_an_outdated_leader_meets_the_mark_of_the_new_one(
    cluster: RunningEngine,
) -> None:
    obj = rendered(workload_of(spec_of("gone", ports=(Port("http", 80),)))).objects[0]
    path = path_of(obj)

    def delete(version: str | None) -> int:
        conditions = {"resourceVersion": version} if version else {}
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": conditions}
        return cluster.api.http.request("DELETE", path, json=body if version else None).status_code

    apply_all(cluster.api, [obj], 5)
    marked = cluster.api.get(path)["metadata"][
        "resourceVersion"
    ]  # the old leader (5) is stopped here
    apply_all(cluster.api, [fence_map(6), *fence_objects(6)], 6)
    eventually(lambda: refused(try_apply(cluster.api, probe_object(5), 5, dry_run=True)), "6 leads")
    assert delete(marked) == 403, (
        "a delete under fence 5 is refused although nobody touched the object"
    )
    apply_all(cluster.api, [obj], 6)
    assert delete(marked) == 409, "and its version is gone once the new leader has written"
    assert delete(cluster.api.get(path)["metadata"]["resourceVersion"]) == 200, (
        "the new leader deletes"
    )

    apply_all(cluster.api, [obj], 6)
    assert delete(None) == 200, "a person deletes what they like"


def test_gates_are_opened_by_the_leader_alone(cluster: RunningEngine) -> None:
    fence = int(cluster.api.get(path_of(fence_map(1)))["data"]["fence"])
    apply_all(cluster.api, rendered(workload_of(JOB)).objects, fence)
    pods = eventually(
        lambda: (p := pods_of(cluster.api, "job")) and len(p) == 3 and p, "three gated pods"
    )
    name = pods[0]["metadata"]["name"]
    path = f"{PODS}/{name}"
    assert refused(patch(cluster, path, opening(cluster.api.get(path), "f1", fence - 1)))
    assert patch(cluster, path, opening(cluster.api.get(path), "f1", fence))[0] == 200
    eventually(lambda: cluster.api.get(path)["spec"].get("nodeName") == "f1", "it runs")
    cluster.api.delete(f"/apis/batch/v1/{SPACE}/jobs/job", propagationPolicy="Background")
    eventually(lambda: not pods_of(cluster.api, "job"), "gone")


def test_the_fence_only_rises_and_says_what_its_writer_is(cluster: RunningEngine) -> None:
    fence = int(cluster.api.get(path_of(fence_map(1)))["data"]["fence"])
    assert refused(try_apply(cluster.api, fence_map(fence - 1), fence - 1))
    assert try_apply(cluster.api, fence_map(fence - 1), fence)[0] == 403
    assert try_apply(cluster.api, fence_map(fence + 1), fence + 1)[0] == 200
    apply_all(cluster.api, fence_objects(fence + 1), fence + 1)
    eventually(
        lambda: refused(try_apply(cluster.api, probe_object(fence), fence, dry_run=True)), "raised"
    )
    assert try_apply(cluster.api, probe_object(fence + 1), fence + 1, dry_run=True)[0] == 201


def test_a_deleted_fence_locks_nobody_out_and_lets_no_outdated_leader_in(
    cluster: RunningEngine,
) -> None:
    fence = int(cluster.api.get(path_of(fence_map(1)))["data"]["fence"])
    cluster.api.delete(path_of(fence_map(1)))
    pods = "/api/v1/namespaces/default/pods"
    pod = {"metadata": {"name": "else"}, "spec": {"containers": [{"name": "c", "image": "a/b"}]}}
    deadline = time.monotonic() + 3  # as long as an API server may take to see it
    while time.monotonic() < deadline:
        cluster.api.create(pods, pod)
        cluster.api.delete(f"{pods}/else", gracePeriodSeconds="0")
        assert try_apply(cluster.api, probe_object(fence), fence, dry_run=True)[0] == 201
        assert refused(try_apply(cluster.api, probe_object(fence - 1), fence - 1, dry_run=True))
    assert try_apply(cluster.api, fence_map(fence), fence)[0] == 201


POLICIES = "/apis/admissionregistration.k8s.io/v1"


def _client(cluster: RunningEngine) -> Client:
    return Client(read_kubeconfig(cluster.kubeconfig.read_text()))


async def _raise(cluster: RunningEngine, fence: int) -> None:
    client = _client(cluster)
    try:
        await Fencing(client).raise_to(fence, frozenset({"deviceclasses"}))
    finally:
        await client.close()


def _carried(cluster: RunningEngine) -> int:
    return int(cluster.api.get(path_of(fence_map(1)))["data"]["fence"])


async def test_a_fence_that_is_no_number_locks_nobody_out(cluster: RunningEngine) -> None:
    fence = _carried(cluster)
    path = path_of(fence_map(1))
    assert patch(cluster, path, {"data": {"fence": "banana"}}, manager="kubectl")[0] == 200
    await _raise(cluster, fence + 1)
    assert _carried(cluster) == fence + 1
    assert refused(try_apply(cluster.api, probe_object(fence), fence, dry_run=True))
    assert try_apply(cluster.api, probe_object(fence + 1), fence + 1, dry_run=True)[0] == 201


async def test_a_policy_that_was_deleted_and_made_again_enforces_the_next_leader(
    cluster: RunningEngine,
) -> None:
    for plural in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
        cluster.api.delete(f"{POLICIES}/{plural}/podwarden-fence")
    eventually(
        lambda: try_apply(cluster.api, probe_object(1), 1, dry_run=True)[0] == 201, "nothing guards"
    )
    fence = _carried(cluster)
    for number in (fence + 1, fence + 2):
        await _raise(cluster, number)
        assert refused(try_apply(cluster.api, probe_object(number - 1), number - 1, dry_run=True))
        assert try_apply(cluster.api, probe_object(number), number, dry_run=True)[0] == 201
    with pytest.raises(FenceLost):
        await _raise(cluster, fence + 1)


async def test_a_deleted_namespace_is_made_again_by_the_same_leader(cluster: RunningEngine) -> None:
    fence = _carried(cluster)
    cluster.api.delete(f"/api/v1/{SPACE}")
    eventually(lambda: cluster.api.find(f"/api/v1/{SPACE}") is None, "it is gone", 60)
    await _raise(cluster, fence)
    assert _carried(cluster) == fence
    assert refused(try_apply(cluster.api, probe_object(fence - 1), fence - 1, dry_run=True))
    assert try_apply(cluster.api, probe_object(fence), fence, dry_run=True)[0] == 201
