"""The record of a workload: written and read back; damage is named; where it was placed."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from kubemaking import NOW, only, placed, rendered, spec_of, workload_of

from podwarden.domain.placement import Slot
from podwarden.domain.request import Request
from podwarden.domain.workload import Desire, JobSpec, Kind, Port, Priority, Revision
from podwarden.errors import Invalid
from podwarden.kube import record
from podwarden.kube.adopt import read_adoptable
from podwarden.kube.record import read_placement, read_record, record_object, record_text

SPEC = spec_of(gpu=Request(1, 8192), priority=Priority.HIGH, ports=(Port("http", 80),), secrets=(("T", "hf"),))  # fmt: skip


def revision(number: int, note: str = "") -> Revision:
    return Revision("id-web", number, SPEC, NOW + timedelta(minutes=number), "ann", note)


def test_everything_comes_back() -> None:
    workload = workload_of(SPEC, revision=2)
    obj = record_object(workload, record_text(workload, [revision(2, "more memory"), revision(1)]))
    assert obj["metadata"]["labels"]["podwarden.io/record"] == "true"
    found = read_record(obj)
    assert (found.id, found.name, found.owner, found.revision) == ("id-web", "web", "ann", 2)
    assert (found.spec, found.desire) == (SPEC, Desire.RUN)
    assert (found.created_at, found.queued_at) == (NOW, NOW)
    assert found.revisions == (revision(1), revision(2, "more memory"))


def test_a_workload_that_never_queued_comes_back() -> None:
    workload = workload_of(SPEC, queued_at=None)
    assert read_record(record_object(workload, record_text(workload))).queued_at is None


def test_a_long_history_loses_its_oldest_revisions_only() -> None:
    many = [revision(n, "x" * 30_000) for n in range(1, 40)]
    workload = workload_of(SPEC, revision=39)
    obj = record_object(workload, record_text(workload, many))
    assert len(obj["data"]["workload.json"].encode()) <= record.MOST_BYTES
    found = read_record(obj)
    numbers = [r.number for r in found.revisions]
    assert numbers == list(range(40 - len(numbers), 40))
    assert 10 < len(numbers) < 39
    assert found.spec == SPEC


GOOD = record_object(workload_of(SPEC), record_text(workload_of(SPEC)))


def damaged(**change: Any) -> dict[str, Any]:
    text = json.dumps({**json.loads(GOOD["data"]["workload.json"]), **change})
    return {**GOOD, "data": {"workload.json": text}}


@pytest.mark.parametrize(
    "config_map",
    [
        {}, {"metadata": {"name": "x"}, "data": {}}, {**GOOD, "data": {"workload.json": "{"}},
        {**GOOD, "data": {"workload.json": "[]"}}, {**GOOD, "data": {"workload.json": "[" * 100_000}},
        damaged(format=2), damaged(spec={"name": "web"}), damaged(desire="dance"), damaged(spec=[]),
        damaged(created_at="2026-11-30T12:00:00"), damaged(created_at=None), damaged(revisions=[{}]),
        damaged(revisions=3), damaged(revision="two"),
    ],
)  # fmt: skip
def test_a_damaged_record_is_named(config_map: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="record "):
        read_record(config_map)


@pytest.mark.parametrize("kind", [Kind.SERVICE, Kind.JOB])
def test_the_main_object_carries_the_record(kind: Kind) -> None:
    spec = spec_of(kind=kind, job=JobSpec() if kind is Kind.JOB else None)
    main = only(rendered(spec), "Deployment" if kind is Kind.SERVICE else "Job")
    assert (read_record(main).id, read_record(main).spec) == ("id-web", spec)


def test_adoption_believes_the_main_object_before_an_older_record_of_its_own() -> None:
    now = rendered(SPEC, placed(Slot("n3", ("gpu-a",))), secrets={"hf": "x"})
    main = only(now, "Deployment")
    old = workload_of(SPEC, revision=7)
    other = replace(old, id="id-b", revision=3)
    records = [record_object(each, record_text(each)) for each in (old, other)]
    found, said = read_adoptable(records, [main])
    assert [(each.id, each.revision) for each in found] == [("id-web", 1), ("id-b", 3)]
    assert [each.placement is None for each in found] == [False, True]
    assert said == ()
    main["metadata"]["annotations"]["podwarden.io/record"] = "{"
    found, said = read_adoptable([], [main])
    assert found == ()
    assert len(said) == 1
    assert "record web" in said[0]


@pytest.mark.parametrize("kind", [Kind.SERVICE, Kind.JOB])
def test_the_main_object_says_where_it_was_placed(kind: Kind) -> None:
    """So that the objects of an adopted workload are rendered as they are, and nothing restarts."""
    spec = spec_of(gpu=Request(), kind=kind, job=JobSpec() if kind is Kind.JOB else None)
    placement = placed(
        Slot("n3", ("gpu-a", "gpu-b")), Slot("n4"), ranking=("n3", "n4"), bands=(8192,)
    )
    first = rendered(spec, placement)
    main = only(first, "Deployment" if kind is Kind.SERVICE else "Job")
    assert read_placement(main) == placement
    assert rendered(spec, read_placement(main)).objects == first.objects


@pytest.mark.parametrize(
    "text", [None, "", "{", "[]", "3", '{"slots": [[]], "ranking": [], "bands": []}', "null"]
)
def test_an_unreadable_placement_is_none(text: str | None) -> None:
    annotations = {} if text is None else {"podwarden.io/placement": text}
    assert read_placement({"metadata": {"annotations": annotations}}) is None
    assert read_placement({}) is None
