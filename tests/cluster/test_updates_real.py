"""Updates on the real engine: one copy after the other, and the way back when a new revision does not come up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from deadline import eventually
from plant import Desk, Plant, plant

SERVICE = """\
name: {name}
kind: service
image: example/web:{tag}
replicas: {replicas}
gpu: {{vram: 24GB}}
annotations: {{{annotations}}}
"""


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    with plant(tmp_path_factory.mktemp("u")) as made:
        made.open()
        yield made


@pytest.fixture
def desk(yard: Plant) -> Desk:
    return yard.desks[0]


def file(name: str, tag: int, *, replicas: int = 1, **annotations: str) -> str:
    told = ", ".join(
        f'simulator.podwarden.io/{key.replace("_", "-")}: "{value}"'
        for key, value in annotations.items()
    )
    return SERVICE.format(name=name, tag=tag, replicas=replicas, annotations=told)


def running(desk: Desk, name: str, revision: int) -> bool:
    found = desk.workload(name) or {}
    return (found["state"], found["revision"]) == ("running", revision)


def kinds(desk: Desk, name: str) -> list[str]:
    return [event["kind"] for event in desk.events(name)]


def test_a_crashing_revision_goes_back_by_itself(desk: Desk) -> None:
    desk.deploy(file("crash", 1))
    eventually(lambda: running(desk, "crash", 1), "it runs", 30)
    done = desk.put(
        "workloads/crash",
        {
            "file": file("crash", 2, ready_after="60", crash_after="0.3", restart_after="0.3"),
            "recreate": True,
        },
    )
    assert done["how"] == "recreate"
    assert "a short downtime" in done["text"]
    eventually(lambda: running(desk, "crash", 3), "it is back", 60)
    found = desk.workload("crash") or {}
    assert found["spec"]["image"] == "example/web:1"
    assert "rolled-back" in kinds(desk, "crash")
    desk.delete("workloads/crash")
    eventually(lambda: desk.workload("crash") is None, "it is gone", 30)


def test_an_image_that_never_comes_goes_back_by_itself(desk: Desk) -> None:
    desk.deploy(file("pull", 1))
    eventually(lambda: running(desk, "pull", 1), "it runs", 30)
    new = file("pull", 2, image_error="manifest unknown")
    desk.put("workloads/pull", {"file": new, "recreate": True})
    eventually(
        lambda: ((desk.workload("pull") or {})["reason"] or {}).get("code") == "IMAGE_PULL_FAILED",
        "the registry is quoted",
        30,
    )
    assert "no such tag" in (desk.workload("pull") or {})["reason"]["text"]
    eventually(lambda: running(desk, "pull", 3), "it is back", 90)
    assert "rolled-back" in kinds(desk, "pull")
    desk.delete("workloads/pull")
    eventually(lambda: desk.workload("pull") is None, "it is gone", 30)
