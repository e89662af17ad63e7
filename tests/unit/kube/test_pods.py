"""Pods: what they take (as the scheduler counts), and why one of PodWarden's does not run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from objects import T0, container, pod

from podwarden.kube.pods import demand_nodes, read_pod

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("spec", "cpu", "memory", "gpus"),
    [
        ({"containers": [container("1", "1Gi"), container("500m", "512Mi")]}, 1500, 1536, 0),
        ({"containers": [container()]}, 0, 0, 0),
        ({"containers": [{"name": "m", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}]}, 2000, 1024, 0),
        # a start-up step larger than what runs
        ({"containers": [container("1", "1Gi")], "initContainers": [container("4", "512Mi")]}, 4000, 1024, 0),
        # side-cars run beside it, and beside later start-up steps
        (
            {
                "containers": [container("1", "1Gi")],
                "initContainers": [
                    container("500m", "256Mi", restartPolicy="Always"),
                    container("2", "2Gi"),
                ],
            },
            2500,
            2304,
            0,
        ),
        ({"containers": [container("1", "1Gi")], "overhead": {"cpu": "250m", "memory": "120Mi"}}, 1250, 1144, 0),
        (
            {"containers": [container("1", "1Gi")], "resources": {"requests": {"cpu": "3", "memory": "4Gi"}}},
            3000,
            4096,
            0,
        ),
        ({"containers": [container(gpus="1"), container(gpus="2")]}, 0, 0, 3),
        ({"containers": [container("1n", "1")]}, 1, 1, 0),  # rounded up, as a taker
        ({"containers": [container("nonsense", "64Mi")]}, 0, 64, 0),
    ],
)  # fmt: skip
def test_requests_as_the_scheduler_counts_them(
    spec: dict[str, Any], cpu: int, memory: int, gpus: int
) -> None:
    facts = read_pod(pod("p", spec=spec))
    assert (facts.cpu_milli, facts.memory_mib, facts.gpus) == (cpu, memory, gpus)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_an_ended_pod_takes_no_room(phase: str) -> None:
    assert not read_pod(pod("p", on="n1", phase=phase)).takes_room
    assert read_pod(pod("p", on="n1", phase="Pending")).takes_room
    assert read_pod(pod("p", on="n1", meta={"deletionTimestamp": T0})).takes_room
    assert not read_pod(pod("p")).takes_room


def test_ends_are_known_where_they_are_enforced() -> None:
    limited = read_pod(
        pod("p", spec={"activeDeadlineSeconds": 3600}, status={"startTime": "2026-11-30T12:00:10Z"})
    )
    assert limited.ends_by == NOON + timedelta(seconds=10 + 3600 + 30)
    assert not limited.endless
    going = read_pod(pod("p", meta={"deletionTimestamp": T0}))
    assert going.ends_by == NOON
    assert going.endless
    job = {"ownerReferences": [{"kind": "Job", "name": "j", "uid": "u", "controller": True}]}
    assert not read_pod(pod("p", own="id-a", meta=job)).endless
    assert read_pod(pod("p", meta=job)).endless  # nobody promised an end for it


def test_claims_by_template_by_name_and_by_extended_resource() -> None:
    spec = {
        "resourceClaims": [
            {"name": "a", "resourceClaimTemplateName": "t"},
            {"name": "b", "resourceClaimName": "named"},
            {"name": "c", "resourceClaimTemplateName": "t"},
        ]
    }
    before = read_pod(pod("p", spec=spec))
    assert (before.claims, before.claims_missing) == (("named",), True)
    status = {
        "resourceClaimStatuses": [{"name": "a", "resourceClaimName": "p-a-x"}, {"name": "c"}],
        "extendedResourceClaimStatus": {"resourceClaimName": "p-extended-resources-x"},
    }
    after = read_pod(pod("p", spec=spec, status=status))
    assert after.claims == ("p-a-x", "named", "p-extended-resources-x")
    assert not after.claims_missing


WANTS = {"containers": [container(gpus="2")]}


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ({}, True),
        ({"spec": {"schedulingGates": [{"name": "x"}]}}, False),
        ({"spec": {"schedulerName": "volcano"}}, False),
        ({"spec": {"nodeName": "n1"}}, False),
        ({"spec": {"containers": [container()]}}, False),
        ({"meta": {"deletionTimestamp": T0}}, False),
        ({"status": {"phase": "Running"}}, False),
        ({"status": {"extendedResourceClaimStatus": {"resourceClaimName": "c"}}}, False),
    ],
)
def test_only_what_the_scheduler_would_place_is_demand(
    change: dict[str, Any], counts: bool
) -> None:
    given = {**change, "spec": {**WANTS, **change.get("spec", {})}}
    facts = read_pod(pod("p", phase="Pending", **given))
    assert (facts.demand is not None) == counts
    if facts.demand is not None:
        assert facts.demand.count == 2


def test_our_own_pods_are_no_foreign_demand_and_a_label_elsewhere_makes_none_ours() -> None:
    assert read_pod(pod("p", own="id-a", phase="Pending", spec=WANTS)).demand is None
    stranger = read_pod(pod("p", meta={"labels": {"podwarden.io/workload": "id-a"}}))
    assert stranger.workload == ""
    assert stranger.instance is None


NODES = [
    ("n1", {"zone": "a", "size": "5"}),
    ("n2", {"zone": "b", "size": "12"}),
    ("n3", {"size": "many"}),
]


@pytest.mark.parametrize(
    ("selector", "terms", "nodes"),
    [
        ({}, [], None),
        ({"zone": "a"}, [], {"n1"}),
        ({"zone": "c"}, [], set()),
        ({}, [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}], {"n1", "n2"}),
        ({}, [{"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}], {"n2", "n3"}),
        ({}, [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}], {"n1", "n2"}),
        ({}, [{"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}], {"n3"}),
        ({}, [{"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["5"]}]}], {"n2"}),
        ({}, [{"matchExpressions": [{"key": "size", "operator": "Lt", "values": ["12"]}]}], {"n1"}),
        ({}, [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n3"]}]}], {"n3"}),
        ({"zone": "b"}, [{"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["50"]}]}], set()),
        ({}, [{}], set()),
        (
            {},
            [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]},
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n3"]}]},
            ],
            {"n1", "n3"},
        ),
    ],
)  # fmt: skip
def test_where_a_foreign_demand_may_go(
    selector: dict[str, str], terms: list[Any], nodes: set[str] | None
) -> None:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    spec = {
        **WANTS,
        "nodeSelector": selector,
        "affinity": {"nodeAffinity": required} if terms else {},
    }
    demand = read_pod(pod("p", phase="Pending", spec=spec)).demand
    assert demand is not None
    assert demand_nodes(demand, NODES) == (None if nodes is None else frozenset(nodes))


def state(**what: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "main", "restartCount": 3, "ready": False, **what}]}


def ended(code: int, reason: str, **more: Any) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason, "finishedAt": T0, **more}}


@pytest.mark.parametrize(
    ("phase", "status", "reason", "message", "exit_code", "fault"),
    [
        ("Pending", state(state={"waiting": {"reason": "ContainerCreating"}}), "ContainerCreating", "", None, False),
        (
            "Pending",
            state(state={"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling "x": not found'}}),
            "ImagePullBackOff", 'Back-off pulling "x": not found', None, False,
        ),
        (
            "Running",
            state(state={"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}, lastState=ended(3, "Error")),
            "CrashLoopBackOff", "back-off 5m0s", 3, False,
        ),
        (
            "Running",
            state(state={"waiting": {"reason": "CrashLoopBackOff"}}, lastState=ended(137, "OOMKilled")),
            "OOMKilled", "", 137, False,
        ),
        ("Failed", state(state=ended(2, "Error", message="last words")), "Error", "last words", 2, True),
        ("Failed", state(state=ended(137, "OOMKilled")), "OOMKilled", "", 137, True),
        ("Succeeded", state(state=ended(0, "Completed")), "", "", 0, False),
        ("Failed", {"reason": "Evicted", "message": "disk"}, "Evicted", "disk", None, False),
        ("Failed", {}, "", "", None, False),
        ("Failed", {"reason": "DeadlineExceeded", "message": "too long"}, "DeadlineExceeded", "too long", None, True),
        (
            "Failed",
            {
                **state(state=ended(137, "Error")),
                "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager", "message": "t"}],
            },
            "DeletionByTaintManager", "t", 137, False,
        ),
        (
            "Pending",
            {"initContainerStatuses": [{"name": "i", "state": {"waiting": {"reason": "ErrImagePull", "message": "m"}}}]},
            "ErrImagePull", "m", None, False,
        ),
    ],
)  # fmt: skip
def test_why_it_does_not_run(  # noqa: PLR0917 - one case a row
    phase: str,
    status: dict[str, Any],
    reason: str,
    message: str,
    exit_code: int | None,
    fault: bool,
) -> None:
    instance = read_pod(pod("p", own="id-a", phase=phase, status=status)).instance
    assert instance is not None
    assert (instance.reason, instance.message) == (reason, message)
    assert (instance.exit_code, instance.user_failure) == (exit_code, fault)
    assert instance.phase == phase.lower()


def test_a_copy_that_somebody_deletes_did_not_fail_by_itself() -> None:
    going = pod("p", own="id-a", phase="Failed", status=state(state=ended(143, "Error")))
    assert read_pod(going).instance.user_failure
    going["metadata"]["deletionTimestamp"] = T0
    assert not read_pod(going).instance.user_failure


def test_unschedulable_since_and_in_the_schedulers_words() -> None:
    condition = {
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes are available: cannot allocate all claims", "lastTransitionTime": T0,
    }  # fmt: skip
    instance = read_pod(
        pod("p", own="id-a", phase="Pending", status={"conditions": [condition]})
    ).instance
    assert instance is not None
    assert instance.unschedulable_since == NOON
    assert "cannot allocate all claims" in instance.message
    assert not instance.allocated


def test_a_task_of_an_array_waits_with_its_number() -> None:
    gated = pod(
        "p",
        own="id-a",
        phase="Pending",
        meta={"annotations": {"batch.kubernetes.io/job-completion-index": "17"}},
        spec={"schedulingGates": [{"name": "podwarden.io/room"}]},
        status={
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
        },
    )
    gated["metadata"]["labels"] = {"podwarden.io/workload": "id-a", "podwarden.io/revision": "4"}
    facts = read_pod(gated)
    assert facts.instance is not None
    assert (facts.instance.index, facts.instance.gated, facts.instance.revision) == (17, True, 4)
    assert facts.instance.unschedulable_since is None
    assert facts.opening is not None
    assert read_pod(pod("q", own="id-a")).opening is None


def test_odd_annotations_are_not_trusted() -> None:
    odd = pod(
        "p", own="id-a", meta={"annotations": {"batch.kubernetes.io/job-completion-index": "²"}}
    )
    odd["metadata"]["labels"] = {"podwarden.io/workload": "id-a", "podwarden.io/revision": "x"}
    instance = read_pod(odd).instance
    assert instance is not None
    assert (instance.index, instance.revision) == (None, 0)
