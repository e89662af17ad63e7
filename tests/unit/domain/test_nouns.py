"""Small rules that live on the nouns themselves."""

from dataclasses import fields
from datetime import UTC, datetime

import pytest

from podwarden.domain.access import Role, User, may_change
from podwarden.domain.cluster import Cluster
from podwarden.domain.event import Event, EventKind
from podwarden.domain.inventory import Device, Holder, Holding, Node, short_model
from podwarden.domain.observation import Instance, Observation, Presence
from podwarden.domain.placement import Plan, Verdict
from podwarden.domain.reason import Code, Reason
from podwarden.domain.request import Request, Sharing
from podwarden.domain.workload import (
    ENDED,
    HOLDING,
    TRANSITIONS,
    Desire,
    JobSpec,
    Kind,
    Priority,
    Spec,
    State,
    Workload,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("NVIDIA GeForce RTX 3090", "RTX 3090"), ("NVIDIA RTX A4000", "RTX A4000"), ("Tesla P40", "Tesla P40"),
        ("geforce GTX 1070", "GTX 1070"), (" NVIDIA H100 80GB HBM3 ", "H100 80GB HBM3"), ("NVIDIA ", "NVIDIA"),
    ],
)  # fmt: skip
def test_models_are_named_as_people_buy_them(name, short):
    assert short_model(name) == short


def test_a_device_is_named_by_node_and_model():
    assert Device("n3", 0, "gpu-1", "RTX 3090", 24576, 23808).name == "n3 RTX 3090"


@pytest.mark.parametrize(
    ("more", "usable"),
    [
        ({}, True),
        ({"ready": False}, False),
        ({"cordoned": True}, False),
        ({"taints": ("x",)}, False),
    ],
)
def test_a_node_is_usable_when_nothing_speaks_against_it(more, usable):
    assert Node("n", 1000, 1024, **more).usable is usable


@pytest.mark.parametrize(("shares", "dedicated"), [(64, True), (1, False), (63, False)])
def test_dedicated_holders_have_all_shares(shares, dedicated):
    assert Holding("d", "n", 1024, shares, Holder("w")).dedicated is dedicated


@pytest.mark.parametrize(
    ("role", "owner", "may"),
    [
        (Role.ADMIN, "eve", True), (Role.ADMIN, "bob", True), (Role.MEMBER, "bob", True), (Role.MEMBER, "eve", False),
        (Role.VIEWER, "bob", False),
    ],
)  # fmt: skip
def test_who_may_change_what(role, owner, may):
    assert may_change(User("bob", role, NOW), owner) is may


def test_reasons_are_one_sentence_with_the_remedy_last():
    assert Reason(Code.QUOTA, "You have 2 GPUs.").sentence == "QUOTA: You have 2 GPUs."
    assert (
        Reason(Code.QUOTA, "You have 2 GPUs.", "Stop one.").sentence
        == "QUOTA: You have 2 GPUs. Stop one."
    )


def test_codes_are_their_own_names():
    assert all(code.value == code.name for code in Code)


def test_a_plan_is_asked_by_workload():
    waits, never = Verdict("a", 1), Verdict("b", 0)
    plan = Plan(verdicts=(waits,), refusals=(never,))
    assert plan.verdict("a") is waits
    assert plan.verdict("b") is never
    assert plan.verdict("c") is None


def test_requests_know_whether_they_share():
    assert Request(sharing=Sharing.SHARED).shared
    assert not Request().shared


@pytest.mark.parametrize(("array", "tasks"), [(None, 1), ((1, 250), 250), ((0, 0), 1), ((5, 9), 5)])
def test_tasks_of_a_job(array, tasks):
    assert JobSpec(array).tasks == tasks


def test_priorities_are_words_in_order():
    words = [p.word for p in sorted(Priority, reverse=True)]
    assert words == ["critical", "high", "normal", "low", "idle"]
    assert min(Priority) >= 0


def workload(**more):
    spec = Spec("a", Kind.SERVICE, "b")
    return Workload("id", "a", "bob", "home", spec, 1, State.QUEUED, Desire.RUN, NOW, NOW, **more)


def test_workloads_pass_on_what_their_spec_says():
    assert workload().kind is Kind.SERVICE
    assert workload().spec.endless
    assert not Spec("a", Kind.JOB, "b").endless
    assert workload(counts=(("done", 3),)).count("done") == 3
    assert workload().count("done") == 0


@pytest.mark.parametrize(
    ("more", "shm", "total"),
    [
        ({}, 0, 1024), ({"gpu": Request()}, 2048, 3072), ({"gpu": Request(count=2)}, 4096, 5120),
        ({"gpu": Request(), "shm_mib": 64}, 64, 1088), ({"shm_mib": 512}, 512, 1536),
    ],
)  # fmt: skip
def test_shared_memory_counts_against_memory(more, shm, total):
    spec = Spec("a", Kind.SERVICE, "b", **more)
    assert spec.shared_memory_mib == shm
    assert spec.instance_memory_mib == total


def test_every_state_is_drawn_and_reached():
    assert set(TRANSITIONS) == set(State)
    reached = {state for after in TRANSITIONS.values() for state in after}
    assert reached == set(State)
    assert all(state not in after for state, after in TRANSITIONS.items())
    assert not ENDED & HOLDING
    assert ENDED | HOLDING | {State.QUEUED} == set(State)


def test_a_workload_that_ended_starts_in_the_queue_again():
    for state in ENDED:
        assert State.QUEUED in TRANSITIONS[state]
        assert not TRANSITIONS[state] & {State.STARTING, State.RUNNING}


def test_what_is_known_of_a_cluster_holds_no_credentials():
    assert not {f.name for f in fields(Cluster)} & {"kubeconfig", "token", "password", "access"}
    assert Cluster("home", "https://10.0.0.1:6443", NOW).notes == ()


def test_kinds_of_events_read_like_words():
    assert all(kind.value == kind.name.lower().replace("_", "-") for kind in EventKind)
    assert Event(NOW, "id", EventKind.STATE, "runs").actor == "podwarden"


def test_an_observation_starts_with_nothing_seen_and_shares_nothing():
    one, two = Observation("a", NOW, 1), Observation("b", NOW, 1)
    assert one.instances == one.presences == one.volume_nodes == {}
    assert one.instances is not two.instances
    assert one.complete
    assert one.reachable
    assert Instance("id", "a-1", "uid", 1, "pending").index is None
    assert Presence("id", "a", 1).desired == 0
