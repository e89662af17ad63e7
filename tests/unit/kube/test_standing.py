"""What a cluster has once: names, values and order. What the policy does is in tests/cluster/test_fence_real.py."""

from __future__ import annotations

from datetime import timedelta

from kubemaking import NOW

from podwarden.domain.placement import Hold
from podwarden.kube.fence import FENCE_MAP, fence_map, probe_object
from podwarden.kube.holds import hold_object, read_hold
from podwarden.kube.standing import bootstrap_objects, first_objects


def test_the_namespace_and_the_fence_come_first() -> None:
    space, fence = first_objects(7)
    assert (space["kind"], space["metadata"]["name"]) == ("Namespace", "podwarden")
    assert fence == fence_map(7)
    assert fence["metadata"]["name"] == FENCE_MAP
    assert fence["data"]["fence"] == fence["metadata"]["annotations"]["podwarden.io/fence"] == "7"
    assert probe_object(6)["metadata"]["annotations"]["podwarden.io/fence"] == "6"


def test_the_policy_stands_before_its_binding() -> None:
    kinds = [obj["kind"] for obj in bootstrap_objects()]
    policy, binding = bootstrap_objects()[:2]
    assert kinds[:2] == ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    # A missing parameter would refuse everybody's writes: there is none.
    assert "paramKind" not in policy["spec"]
    assert "paramRef" not in binding["spec"]


def test_priorities_are_never_negative_and_never_preempt() -> None:
    classes = [obj for obj in bootstrap_objects() if obj["kind"] == "PriorityClass"]
    values = {obj["metadata"]["name"]: obj["value"] for obj in classes}
    assert values == {
        "podwarden-critical": 1000, "podwarden-high": 750, "podwarden-normal": 500, "podwarden-low": 250,
        "podwarden-idle": 0,
    }  # fmt: skip
    assert {obj["preemptionPolicy"] for obj in classes} == {"Never"}


def test_charts_share_the_books_of_the_gpu_class() -> None:
    (device_class,) = [o for o in bootstrap_objects() if o["kind"] == "DeviceClass"]
    assert device_class["spec"]["extendedResourceName"] == "nvidia.com/gpu"
    old = {obj["kind"] for obj in bootstrap_objects(frozenset({"resourceclaims"}))}
    assert "DeviceClass" not in old


def test_a_hold_marks_one_device_for_one_workload() -> None:
    hold = Hold("gpu-a", "n3", "w1", NOW + timedelta(hours=1))
    rule = hold_object(hold)
    assert rule["spec"] == {
        "deviceSelector": {"driver": "gpu.podwarden.io", "pool": "n3", "device": "gpu-a"},
        "taint": {"key": "podwarden.io/hold", "value": "w1", "effect": "NoSchedule"},
    }
    assert rule["metadata"]["annotations"] == {"podwarden.io/until": "2026-11-30T13:00:00+00:00"}
    assert read_hold(rule) == ("gpu-a", "w1")


def test_the_name_of_a_hold_follows_from_device_and_workload() -> None:
    names = {
        hold_object(Hold(device, node, workload))["metadata"]["name"]
        for device, node, workload in (("a", "n1", "w"), ("a", "n2", "w"), ("b", "n1", "w"), ("a", "n1", "v"))
    }  # fmt: skip
    assert len(names) == 3
    assert "annotations" not in hold_object(Hold("a", "n1", "w"))["metadata"]


def test_other_rules_are_no_holds() -> None:
    assert read_hold({}) is None
    assert read_hold({"spec": {"taint": {"key": "xid"}, "deviceSelector": {"device": "a"}}}) is None
    assert (
        read_hold({"spec": {"taint": {"key": "podwarden.io/hold"}, "deviceSelector": {}}}) is None
    )
