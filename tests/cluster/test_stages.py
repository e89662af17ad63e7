"""How simulated nodes and pods behave: starts, ends, crashes, a node that is switched off, GPUs, logs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from deadline import eventually, holds
from rawapi import Json
from running import RunningEngine, pod_meta, pod_spec

MakePod = Callable[..., str]


def ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def container(pod: Json) -> Json:
    return pod["status"].get("containerStatuses", [{}])[0]


def test_a_service_pod_gets_ready_with_one_write(
    engine: RunningEngine, namespace: str, on_node: MakePod
) -> None:
    path = on_node("web")
    seen: list[Json] = []
    selector = {"fieldSelector": "metadata.name=web"}
    for event in engine.api.watch(f"/api/v1/namespaces/{namespace}/pods", 10, **selector):
        seen.append(event["object"])
        if ready(event["object"]):
            break
    assert ready(seen[-1])
    assert seen[-1]["status"]["phase"] == "Running"
    assert seen[-1]["status"]["podIP"].startswith("10.42.")
    # Pending pods carry no container status; the write that brings it is the one that makes the pod ready.
    assert all(ready(pod) for pod in seen if container(pod))
    version = seen[-1]["metadata"]["resourceVersion"]
    holds(
        lambda: engine.api.get(path)["metadata"]["resourceVersion"] == version, "no write more", 1
    )


def test_readiness_can_be_delayed(engine: RunningEngine, on_node: MakePod) -> None:
    path = on_node("slow", ready_after=1.5)
    eventually(lambda: container(engine.api.get(path)), "container started")
    began = time.monotonic()
    first = engine.api.get(path)
    assert first["status"]["phase"] == "Running"
    assert not ready(first)
    eventually(lambda: ready(engine.api.get(path)), "ready after its delay")
    assert 0.8 < time.monotonic() - began < 6


def make_job(
    engine: RunningEngine, namespace: str, node: str, annotations: dict[str, Any], **spec: Any
) -> str:
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    template = {
        "metadata": pod_meta("", annotations),
        "spec": pod_spec(node, {"restartPolicy": "Never", **spec}),
    }
    del template["metadata"]["name"]
    engine.api.create(
        jobs, {"metadata": {"name": "work"}, "spec": {"backoffLimit": 0, "template": template}}
    )
    return f"{jobs}/work"


def outcome(engine: RunningEngine, job: str) -> str:
    conditions = engine.api.get(job)["status"].get("conditions", [])
    return next(
        (
            c["type"]
            for c in conditions
            if c["status"] == "True" and c["type"] in {"Complete", "Failed"}
        ),
        "",
    )


def pods_of(engine: RunningEngine, namespace: str) -> list[Json]:
    return engine.api.items(f"/api/v1/namespaces/{namespace}/pods")


def test_a_job_runs_its_time_and_succeeds(engine: RunningEngine, namespace: str, node: str) -> None:
    job = make_job(engine, namespace, node, {"run-seconds": 1.5})
    eventually(lambda: [p for p in pods_of(engine, namespace) if ready(p)], "job pod running")
    began = time.monotonic()
    assert eventually(lambda: outcome(engine, job), "job ended") == "Complete"
    assert 0.8 < time.monotonic() - began < 8
    ended = container(pods_of(engine, namespace)[0])["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (0, "Completed")


@pytest.mark.parametrize(
    ("annotations", "ends_with"),
    [
        ({"run-seconds": 0.5, "fail": "true"}, (1, "Error")),
        (
            {"run-seconds": 0.5, "exit-code": 137, "exit-reason": "OOMKilled"},
            (137, "OOMKilled"),
        ),
    ],
)
def test_a_job_fails_when_told(
    engine: RunningEngine,
    namespace: str,
    node: str,
    annotations: dict[str, Any],
    ends_with: tuple[int, str],
) -> None:
    job = make_job(engine, namespace, node, annotations)
    assert eventually(lambda: outcome(engine, job), "job ended") == "Failed"
    pod = pods_of(engine, namespace)[0]
    ended = container(pod)["state"]["terminated"]
    assert pod["status"]["phase"] == "Failed"
    assert (ended["exitCode"], ended["reason"]) == ends_with


def test_a_job_is_ended_by_its_deadline(engine: RunningEngine, namespace: str, node: str) -> None:
    job = make_job(engine, namespace, node, {"run-seconds": 100}, activeDeadlineSeconds=1)
    assert eventually(lambda: outcome(engine, job), "job ended") == "Failed"
    assert pods_of(engine, namespace)[0]["status"]["reason"] == "DeadlineExceeded"


def test_a_crashing_service_is_restarted(engine: RunningEngine, on_node: MakePod) -> None:
    path = on_node("crash", crash_after=0.4, crash_times=2, restart_after=0.6, exit_code=3)
    waiting = eventually(
        lambda: container(engine.api.get(path)).get("state", {}).get("waiting"), "first crash"
    )
    assert waiting["reason"] == "CrashLoopBackOff"
    assert not ready(engine.api.get(path))
    pod = eventually(
        lambda: (
            (pod := engine.api.get(path))
            and ready(pod)
            and container(pod)["restartCount"] == 2
            and pod
        ),
        "running again after two crashes",
    )
    assert container(pod)["lastState"]["terminated"]["exitCode"] == 3
    holds(lambda: ready(engine.api.get(path)), "stays up after the told number of crashes", 1.0)


def test_an_image_that_cannot_be_pulled(engine: RunningEngine, on_node: MakePod) -> None:
    path = on_node("typo", image_error="manifest unknown")
    waiting = eventually(
        lambda: container(engine.api.get(path)).get("state", {}).get("waiting"), "waiting"
    )
    assert waiting["reason"] == "ImagePullBackOff"
    assert "manifest unknown" in waiting["message"]
    assert engine.api.get(path)["status"]["phase"] == "Pending"


def test_a_deleted_pod_goes(engine: RunningEngine, on_node: MakePod) -> None:
    path = on_node("gone")
    eventually(lambda: ready(engine.api.get(path)), "ready")
    engine.api.delete(path)
    eventually(lambda: engine.api.find(path) is None, "deleted")


def test_a_node_that_is_off_keeps_its_pods_until_it_is_on(
    engine: RunningEngine, node: str, other_node: str, on_node: MakePod
) -> None:
    assert other_node != node
    patient = {"tolerations": [{"operator": "Exists"}]}
    impatient = {
        "tolerations": [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}]
    }
    stays, leaves = on_node("stays", spec=patient), on_node("leaves", spec=impatient)
    runs = on_node("runs", spec={**patient, "restartPolicy": "Never"}, run_seconds=6)
    for path in (stays, leaves, runs):
        eventually(lambda path=path: ready(engine.api.get(path)), f"{path} ready")
    engine.power(node, on=False)
    eventually(lambda: engine.node_condition(node) == "Unknown", "node silent", 30)
    eventually(lambda: engine.api.get(leaves)["metadata"].get("deletionTimestamp"), "evicted", 30)
    # A dead node ends nothing: neither the pod that must go, nor the one whose time is over (6 s, the node is silent for 8).
    holds(lambda: engine.api.find(leaves), "terminating pod hangs", 3.0)
    assert engine.api.get(runs)["status"]["phase"] == "Running"
    assert not ready(engine.api.get(stays))
    late = on_node("late", spec=patient)
    engine.power(node, on=True)
    eventually(lambda: engine.node_condition(node) == "True", "node back")
    eventually(lambda: engine.api.find(leaves) is None, "terminating pod gone")
    eventually(lambda: ready(engine.api.get(stays)), "surviving pod ready again")
    eventually(
        lambda: engine.api.get(runs)["status"]["phase"] == "Succeeded", "the rest of its time"
    )
    eventually(lambda: ready(engine.api.get(late)), "new pod starts")


def test_logs_say_that_they_are_simulated(engine: RunningEngine, on_node: MakePod) -> None:
    path = on_node("talks")
    eventually(lambda: ready(engine.api.get(path)), "ready")
    assert "is simulated" in engine.api.text(f"{path}/log")
    assert len(engine.api.text(f"{path}/log", tailLines="1").splitlines()) == 1


@pytest.mark.parametrize(
    ("door", "query"),
    [
        ("exec", {"command": "id", "stdout": "true"}),
        ("attach", {"stdout": "true"}),
        ("portforward", {"ports": "80"}),
    ],
)
def test_no_way_into_a_simulated_pod(
    engine: RunningEngine, on_node: MakePod, door: str, query: dict[str, str]
) -> None:
    path = on_node("closed")
    eventually(lambda: ready(engine.api.get(path)), "ready")
    answer = engine.api.http.post(f"{path}/{door}", params=query)
    assert answer.status_code >= 400
    assert "uid=" not in answer.text
