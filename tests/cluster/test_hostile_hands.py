"""What people do to PodWarden's objects by hand is seen, and the next apply leaves nothing of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from linking import becomes, linked, seen, unique
from rendering import placed, rendered, spec_of, workload_of
from running import RunningEngine

from podwarden.domain.placement import Slot
from podwarden.domain.workload import Expose, JobSpec, Kind, Port

DEPLOYMENTS = "/apis/apps/v1/namespaces/podwarden/deployments"
JOBS = "/apis/batch/v1/namespaces/podwarden/jobs"

EDITS: dict[str, dict[str, Any]] = {
    "a pause": {"paused": True},
    "a field that nobody renders": {"minReadySeconds": 7},
    "another container": {
        "template": {"spec": {"containers": [{"name": "extra", "image": "evil/x:1"}]}}
    },
    "a node selector": {"template": {"spec": {"nodeSelector": {"a": "b"}}}},
}


def _edit(engine: RunningEngine, path: str, spec: dict[str, Any]) -> None:
    answer = engine.api.http.patch(
        path,
        params={"fieldManager": "kubectl-edit"},
        content=json.dumps({"spec": spec}),
        headers={"Content-Type": "application/strategic-merge-patch+json"},
    )
    assert answer.is_success, answer.text


@pytest.mark.parametrize("edit", EDITS)
async def test_nothing_of_an_edit_stays(engine: RunningEngine, node: str, edit: str) -> None:
    workload = workload_of(spec_of(unique("hand")))
    made = rendered(workload, placed(workload, Slot(node, ())))
    path = f"{DEPLOYMENTS}/{workload.name}"
    async with linked(engine) as (link, fence):
        await link.apply(made, fence)
        await seen(link, lambda o: workload.id in o.presences, "it is there")
        before = (await becomes(lambda: engine.api.get(path), "it is there"))["spec"]
        _edit(engine, path, EDITS[edit])
        await seen(link, lambda o: o.presences[workload.id].edited, "the edit is seen")
        await link.apply(made, fence)
        assert engine.api.get(path)["spec"] == before
        await seen(link, lambda o: not o.presences[workload.id].edited, "nothing of it stays")
        await link.remove(workload.id, keep_volumes=False, fence=fence)


async def test_an_edited_job_is_not_claimed_by_others_for_good(
    engine: RunningEngine, node: str
) -> None:
    spec = replace(spec_of(unique("hand")), kind=Kind.JOB, job=JobSpec())
    workload = workload_of(spec)
    made = rendered(workload, placed(workload, Slot(node, ())))
    path = f"{JOBS}/{workload.name}"
    async with linked(engine) as (link, fence):
        await link.apply(made, fence)
        await seen(link, lambda o: workload.id in o.presences, "it is there")
        _edit(engine, path, {"activeDeadlineSeconds": 3600})
        await seen(link, lambda o: o.presences[workload.id].edited, "the edit is seen")
        await link.apply(made, fence)
        await seen(link, lambda o: not o.presences[workload.id].edited, "nobody else claims it")
        await link.remove(workload.id, keep_volumes=False, fence=fence)


async def test_parts_that_are_deleted_are_missed(engine: RunningEngine, node: str) -> None:
    workload = workload_of(replace(spec_of(unique("hand")), ports=(Port("http", 80, Expose.LAN),)))
    made = rendered(workload, placed(workload, Slot(node, ())))
    services = "/api/v1/namespaces/podwarden/services"
    async with linked(engine) as (link, fence):
        await link.apply(made, fence)
        await seen(
            link,
            lambda o: workload.id in o.presences and not o.presences[workload.id].missing,
            "all of it is there",
        )
        engine.api.delete(f"{services}/{workload.name}")
        gone = ("Service", workload.name)
        await seen(link, lambda o: o.presences[workload.id].missing == (gone,), "it is missed")
        await link.apply(made, fence)
        await seen(link, lambda o: not o.presences[workload.id].missing, "it is there again")
        await link.remove(workload.id, keep_volumes=False, fence=fence)
