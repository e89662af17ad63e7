"""The codec: lossless, canonical, and strict about what it does not know."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from short_notation import NOW, claimant, device, holding, node

from podwarden.domain.inventory import Capabilities
from podwarden.domain.placement import ForeignDemand, Hold, Placement, Plan, Slot, Snapshot, Verdict
from podwarden.domain.reason import Code, Note, Reason
from podwarden.errors import Invalid
from podwarden.scheduling.codec import (
    plan_from_json,
    plan_to_json,
    snapshot_from_json,
    snapshot_to_json,
)

FULL = Snapshot(
    "home",
    NOW,
    nodes=(node("n1", {"gpus": ["A10 24GB cc8.6 enc3", "L4 24GB lost"]}), node("n2")),
    holdings=(holding("n1/0 6GB by a until 13:00"),),
    claimants=(
        claimant("x", {"gpu": "2x8GB model=A10|L4", "limit": "90s", "nodes": ["n2", "n1"]}),
        claimant("web", {"avoid": ["n1"]}),
    ),
    foreign=(ForeignDemand("ns", "chart", 1, frozenset({"b", "a"})), ForeignDemand("ns", "c", 1)),
    capabilities=Capabilities(shared=False, why=("It cannot.",)),
    mix=((1, 8192, 3),),
    holds=(("gpu-n1-0", "w-x"),),
)
PLAN = Plan(
    placements=(Placement("w", (Slot("n1", ("gpu-n1-0",)),), ("n1", "n2"), (8192,)),),
    verdicts=(
        Verdict("w", 0),
        Verdict(
            "x", 1, Reason(Code.WAITS_BEHIND, "…", "", (Note("n1", "", Code.QUOTA, "ü"),)), NOW
        ),
    ),
    holds=(Hold("gpu-n1-0", "n1", "x"),),
)


def test_lossless_and_canonical():
    text = snapshot_to_json(FULL)
    assert snapshot_from_json(text) == FULL
    assert snapshot_from_json(text.encode()) == FULL
    assert json.loads(text)["format"] == "podwarden/snapshot/1"
    assert plan_from_json(plan_to_json(PLAN)) == PLAN
    spaced = json.dumps(json.loads(text), indent=2)
    assert snapshot_to_json(snapshot_from_json(spaced)) == text


def test_times_are_utc_whatever_zone_they_came_in():
    local = NOW.astimezone(timezone(timedelta(hours=2)))
    assert snapshot_to_json(Snapshot("a", local)) == snapshot_to_json(Snapshot("a", NOW))
    text = snapshot_to_json(Snapshot("a", NOW)).replace("12:00:00+00:00", "14:00:00+02:00")
    assert snapshot_from_json(text).taken_at == datetime(2026, 1, 2, 12, tzinfo=UTC)


def test_a_missing_field_takes_its_default():
    text = '{"format":"podwarden/snapshot/1","data":{"cluster":"a","taken_at":"2026-01-02T12:00:00+00:00"}}'
    assert snapshot_from_json(text) == Snapshot("a", NOW)


def changed(path: str, value: object) -> str:
    document = json.loads(snapshot_to_json(FULL))
    place = document
    *parents, last = path.split("/")
    for part in parents:
        place = place[int(part) if part.isdigit() else part]
    place[int(last) if last.isdigit() else last] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", ""),
        ("[" * 100_000, ""),
        ("[]", "format"),
        ("{}", "format"),
        (changed("format", "podwarden/snapshot/2"), "format"),
        (changed("data", None), "data"),
        (changed("data/surprise", 1), "data.surprise"),
        ('{"format":"podwarden/snapshot/1","data":{"cluster":"a"}}', "data.taken_at"),
        (changed("data/cluster", 7), "data.cluster"),
        (changed("data/complete", 1), "data.complete"),
        (changed("data/taken_at", "yesterday"), "data.taken_at"),
        (changed("data/taken_at", 5), "data.taken_at"),
        (changed("data/taken_at", "2026-01-02T12:00:00"), "data.taken_at"),
        (changed("data/nodes", {}), "data.nodes"),
        (changed("data/nodes/0/cpu_milli", 1.5), "data.nodes[0].cpu_milli"),
        (changed("data/nodes/0/cpu_milli", True), "data.nodes[0].cpu_milli"),
        (changed("data/nodes/0/devices/0/health", "fine"), "data.nodes[0].devices[0].health"),
        (changed("data/mix/0", [1, 2]), "data.mix[0]"),
        (changed("data/claimants/0/nodes", "n1"), "data.claimants[0].nodes"),
        (changed("data/claimants/0/time_limit", "1h"), "data.claimants[0].time_limit"),
        (changed("data/claimants/0/time_limit", True), "data.claimants[0].time_limit"),
        (changed("data/claimants/0/time_limit", 1e300), "data.claimants[0].time_limit"),
        (changed("data/claimants/0/time_limit", float("nan")), "data.claimants[0].time_limit"),
    ],
)
def test_what_is_no_snapshot_is_refused_by_place(text, field):
    with pytest.raises(Invalid) as refused:
        snapshot_from_json(text)
    assert refused.value.problems[0].field == field
    assert refused.value.problems[0].fix


def test_a_plan_is_no_snapshot():
    with pytest.raises(Invalid):
        snapshot_from_json(plan_to_json(PLAN))
    assert device("n1", 0, "A10 24GB").vram_mib == 24576
