"""When a volume is made and when it goes; what happens when the server refuses or is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from simulating import ACCESS, Answers, until

from podwarden.kube.client import Client, Retry
from podwarden.simulator.fleet_volumes import VolumeBinder, is_left_over, volume_for

CHOSEN = "volume.kubernetes.io/selected-node"


def claim(
    *, node: str = "n5", name: str = "web.data", uid: str = "u1", **spec: Any
) -> dict[str, Any]:
    annotations = {CHOSEN: node} if node else {}
    return {
        "metadata": {
            "name": name,
            "namespace": "podwarden",
            "uid": uid,
            "annotations": annotations,
            "resourceVersion": "3",
        },
        "spec": {
            "storageClassName": "local-path",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "100Mi"}},
            **spec,
        },
    }


def test_a_claim_gets_a_volume_on_the_chosen_node() -> None:
    volume = volume_for(claim())
    assert volume is not None
    assert volume["metadata"]["name"] == "pvc-u1"
    assert volume["spec"]["capacity"] == {"storage": "100Mi"}
    assert volume["spec"]["claimRef"]["uid"] == "u1"
    (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["n5"]


@pytest.mark.parametrize(
    "waiting",
    [claim(node=""), claim(volumeName="pvc-u1"), claim(storageClassName="longhorn"),
     {**claim(), "metadata": {**claim()["metadata"], "deletionTimestamp": "2026-11-30T00:00:00Z"}}],
)  # fmt: skip
def test_other_claims_get_none(waiting: dict[str, Any]) -> None:
    assert volume_for(waiting) is None


def volume(phase: str, *, label: str = "true", **metadata: Any) -> dict[str, Any]:
    labels = {"podwarden.io/simulated": label}
    meta = {"name": "pvc-u1", "labels": labels, "resourceVersion": "4", **metadata}
    return {"metadata": meta, "status": {"phase": phase}}


def test_only_a_released_volume_of_ours_goes() -> None:
    assert is_left_over(volume("Released"))
    assert is_left_over(volume("Failed"))
    assert not is_left_over(volume("Bound"))
    assert not is_left_over(volume("Released", label="false"))
    assert not is_left_over(volume("Released", deletionTimestamp="2026-11-30T00:00:00Z"))


@asynccontextmanager
async def binding(answers: Answers) -> AsyncIterator[None]:
    client = Client(ACCESS, retry=Retry(attempts=1), transport=answers)
    task = asyncio.create_task(VolumeBinder(client, retry=0.0).run())
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await client.close()


async def test_a_claim_is_served_and_a_left_over_volume_removed() -> None:
    answers = Answers(
        {
            "/api/v1/persistentvolumeclaims": [claim(), claim(node="", name="later", uid="u2")],
            "/api/v1/persistentvolumes": [volume("Released")],
        }
    )
    async with binding(answers):
        await until(lambda: len(answers.writes) == 2)
    assert sorted(answers.writes) == [
        "DELETE /api/v1/persistentvolumes/pvc-u1",
        "POST /api/v1/persistentvolumes",
    ]


@pytest.mark.parametrize("status", [409, 503])
async def test_what_is_there_already_is_fine_and_an_absent_server_is_asked_again(
    status: int,
) -> None:
    """After 409 nothing more is asked for it; after 503 the same again."""
    answers = Answers(
        {
            "/api/v1/persistentvolumeclaims": [claim()],
            "/api/v1/persistentvolumes": [volume("Released")],
        },
        first={"POST /api/v1/persistentvolumes": httpx.Response(status, json={"message": "no"})},
    )
    wanted = 1 if status == 409 else 2
    async with binding(answers):
        await until(lambda: answers.writes.count("POST /api/v1/persistentvolumes") >= wanted)
        await until(lambda: "DELETE /api/v1/persistentvolumes/pvc-u1" in answers.writes)
    assert answers.writes.count("POST /api/v1/persistentvolumes") == wanted
