"""The patch that opens a gate. That the API server takes it is in tests/cluster."""

from __future__ import annotations

from typing import Any

import pytest

from podwarden.kube.gates import index_value, opening

HERE = {"key": "metadata.name", "operator": "In", "values": ["n3"]}
NOT_N1 = {"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pod_of(index: int | None = 4, first: int | None = 101, **spec: Any) -> dict[str, Any]:
    annotations = {} if first is None else {"podwarden.io/first-index": str(first)}
    if index is not None:
        annotations["batch.kubernetes.io/job-completion-index"] = str(index)
    gates = [{"name": "podwarden.io/room"}]
    return {
        "metadata": {"resourceVersion": "7", "annotations": annotations},
        "spec": {"schedulingGates": gates, **spec},
    }


def terms(patch: dict[str, Any]) -> list[dict[str, Any]]:
    return patch["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]


def test_one_patch_opens_the_gate_ties_the_node_and_sets_the_frame() -> None:
    patch = opening(pod_of(), "n3", 12)
    assert patch["metadata"] == {
        "resourceVersion": "7",
        "annotations": {"podwarden.io/fence": "12", "podwarden.io/index-value": "105"},
    }
    assert patch["spec"]["schedulingGates"] is None
    assert terms(patch) == [{"matchFields": [HERE]}]


def test_gates_of_others_stay() -> None:
    other = {"name": "example.com/quota"}
    patch = opening(pod_of(schedulingGates=[{"name": "podwarden.io/room"}, other]), "n3", 1)
    assert patch["spec"]["schedulingGates"] == [other]


def test_what_the_pod_must_have_is_only_narrowed() -> None:
    term = {"matchFields": [NOT_N1], "matchExpressions": [{"key": "a", "operator": "Exists"}]}
    pod = pod_of(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term, {}]}}})
    patch = opening(pod, "n3", 1)
    assert terms(patch) == [
        {"matchFields": [NOT_N1, HERE], "matchExpressions": term["matchExpressions"]},
        {"matchFields": [HERE]},
    ]
    assert term["matchFields"] == [NOT_N1], "the pod that was read is not changed"


def test_opening_twice_ties_once() -> None:
    tied = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [HERE]}]}}}
    assert terms(opening(pod_of(affinity=tied), "n3", 1)) == [{"matchFields": [HERE]}]


@pytest.mark.parametrize(
    ("index", "first", "number"), [(0, 1, 1), (9, 0, 9), (None, 1, None), (3, None, None)]
)
def test_the_number_of_a_task(index: int | None, first: int | None, number: int | None) -> None:
    pod = pod_of(index, first)
    assert index_value(pod) == number
    annotations = opening(pod, "n3", 1)["metadata"]["annotations"]
    assert annotations.get("podwarden.io/index-value") == (None if number is None else str(number))
