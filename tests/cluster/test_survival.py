"""What PodWarden survives on the real engine: its own death at every stage of a deploy, the loss of its disk, a restart
of the API server, a network that answers wrongly or not at all. Nothing is lost, nothing happens twice, it says what it sees.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from agreement import disagreements
from deadline import eventually, none_left
from marks import lives, written
from plant import Desk, Plant, job, now, plant, service
from proxy import Asked, Breaks, Fault, Holds, Says
from rawapi import Json

REVISED = "env: {STEP: '2'}\n"


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    with plant(tmp_path_factory.mktemp("s")) as made:
        yield made


@pytest.fixture
def desk(yard: Plant) -> Iterator[Desk]:
    """A PodWarden behind the proxy, fresh for each test; it leaves the cluster empty."""
    if not yard.wardens:
        yard.open("w", kubeconfig=yard.proxy.kubeconfig)
    warden, desk = yard.wardens[0], yard.desks[0]
    if warden.process is None:
        warden.start()
    yield desk
    yard.proxy.faults.clear()
    warden, desk = yard.wardens[0], yard.desks[0]  # a test may have changed them
    if warden.process is None:
        warden.start()
    for one in desk.workloads():
        desk.delete(f"workloads/{one['id']}")
    none_left(lambda: [w["name"] for w in desk.workloads()], "deleted workloads", 40)
    none_left(yard.leftovers, "objects of deleted workloads", 30)


def _patches(kind: str, name: str) -> Any:
    return lambda asked: asked.method == "PATCH" and f"/{kind}/{name}" in asked.path


STAGES: dict[str, str | None] = {
    "after the submit": None,
    "before its GPUs are asked for": "resourceclaimtemplates",
    "before its copies are made": "deployments",
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_kill_at_each_stage_of_a_deploy(yard: Plant, desk: Desk, stage: str) -> None:
    warden, kind = yard.wardens[0], STAGES[stage]
    held = Holds(_patches(kind or "nothing", "one"))
    yard.proxy.faults.append(held)
    made = desk.deploy(service("one", "vram: 8GB"))
    if kind is not None:
        assert held.caught.wait(15), f"{kind} are on their way"
    warden.kill()
    warden.start()
    if kind is not None:
        eventually(lambda: _acts(desk), "it leads again", 20)
    held.release()
    eventually(lambda: desk.state("one") == "running", "it runs", 20)
    (found,) = desk.workloads()
    assert (found["id"], found["revision"]) == (made["id"], 1)
    assert disagreements(yard, [found]) == []
    asked = [e for e in desk.events("one") if e["kind"] in {"submitted", "admitted"}]
    assert [e["kind"] for e in asked] == ["submitted", "admitted"]
    assert len(yard.pods("one")) == 1
    if held.answers:
        assert held.answers[0] in {200, 201, 403}


def test_a_kill_while_it_runs_restarts_nothing(yard: Plant, desk: Desk) -> None:
    desk.deploy(service("stays", "vram: 8GB"))
    desk.deploy(job("long", "vram: 12GB", 60))
    eventually(lambda: desk.state("stays") == desk.state("long") == "running", "both run")
    before, alive = written(yard), lives(yard)
    yard.wardens[0].kill()
    yard.wardens[0].start()
    eventually(lambda: _acts(desk), "it leads again", 20)
    desk.deploy(service("next", "vram: 16GB"))
    eventually(lambda: desk.state("next") == "running", "and acts", 20)
    after = written(yard)
    assert {key: after[key] for key in before} == before
    assert {name: lives(yard)[name] for name in alive} == alive


def test_a_kill_inside_a_stop_and_inside_a_delete(yard: Plant, desk: Desk) -> None:
    for order, method, state in (("stop", "PATCH", "stopped"), ("delete", "DELETE", "gone")):
        desk.deploy(service(order, "vram: 8GB"))
        eventually(lambda order=order: desk.state(order) == "running", "it runs")
        held = Holds(
            lambda a, order=order, method=method: (
                a.method == method and a.path.endswith(f"/deployments/{order}")
            )
        )
        yard.proxy.faults.append(held)
        if order == "stop":
            desk.post("workloads/stop/stop")
        else:
            desk.delete("workloads/delete")
        assert held.caught.wait(15), f"the {order} is on its way"
        yard.wardens[0].kill()
        yard.wardens[0].start()
        eventually(lambda: _acts(desk), "it leads again", 20)
        held.release()
        eventually(
            lambda order=order, state=state: desk.state(order) == state, f"{order} is done", 20
        )
        eventually(lambda order=order: not yard.pods(order), "its copies are gone", 20)


def _acts(desk: Desk) -> bool:
    status = desk.get("status")
    return status["leading"] and all(
        c["reachable"] and not c["trouble"] for c in status["clusters"]
    )


# --- the API server --------------------------------------------------------------------------------


def test_the_api_server_restarts_while_work_runs_and_comes(yard: Plant, desk: Desk) -> None:
    desk.deploy(service("before", "vram: 8GB"))
    eventually(lambda: desk.state("before") == "running", "it runs")
    alive = lives(yard)
    yard.engine.engine.kill_component("kube-apiserver")
    desk.deploy(service("during", "vram: 16GB"))
    desk.deploy(job("task", "count: 1", 1))
    eventually(lambda: desk.state("during") == "running", "it runs as well", 60)
    eventually(lambda: desk.state("task") == "succeeded", "the job has ended", 60)
    assert desk.state("before") == "running"
    assert {name: lives(yard)[name] for name in alive} == alive
    eventually(lambda: _acts(desk), "all is well again", 20)


def _any_write(asked: Asked) -> bool:
    return asked.writes and "/namespaces/podwarden/" in asked.path


FAULTS: dict[str, Any] = {
    "409": lambda: Says(409, _any_write, 6),
    "429": lambda: Says(429, _any_write, 6, **{"Retry-After": "1"}),
    "500": lambda: Says(500, _any_write, 6),
    "503 for reads and writes": lambda: Says(503, lambda a: not a.watch, 12),
    "broken off": lambda: Breaks(_any_write, 6),
    "every second write is broken off": lambda: _EverySecond(_any_write),
}


class _EverySecond(Breaks):
    def takes(self, asked: Asked) -> bool:
        return super().takes(asked) and self.hits % 2 == 1


@pytest.mark.parametrize("name", FAULTS)
def test_wrong_answers_lose_and_double_nothing(yard: Plant, desk: Desk, name: str) -> None:
    fault: Fault = FAULTS[name]()
    yard.proxy.faults.append(fault)
    desk.deploy(service("served", "vram: 8GB"))
    desk.deploy(job("frames", "count: 1", 0.5, "array: 1-4, retries: 0"))
    eventually(lambda: desk.state("served") == "running", "the service runs", 60)
    eventually(lambda: desk.state("frames") == "succeeded", "the frames are done", 60)
    assert fault.hits > 2, "the fault was met"
    assert disagreements(yard, desk.workloads()) == []
    assert len(yard.pods("served")) == 1
    assert desk.workload("frames")["counts"]["done"] == 4
    yard.proxy.faults.clear()
    eventually(lambda: _acts(desk), "all is well again", 30)


def test_closed_watches_miss_nothing(yard: Plant, desk: Desk) -> None:
    for turn in range(6):
        yard.proxy.cut()
        desk.deploy(job(f"cut{turn}", "count: 1", 0.5))
    none_left(
        lambda: [w["name"] for w in desk.workloads() if w["state"] != "succeeded"], "jobs", 60
    )
    assert disagreements(yard, desk.workloads()) == []


def test_a_dead_network_is_said_and_outlived(yard: Plant, desk: Desk) -> None:
    desk.deploy(service("old", "vram: 8GB"))
    eventually(lambda: desk.state("old") == "running", "it runs")
    alive = lives(yard)
    yard.proxy.faults.append(Breaks(lambda _: True))
    yard.proxy.cut()
    cluster = eventually(lambda: _unreachable(desk), "PodWarden says that it is cut off", 30)
    assert "127.0.0.1" in cluster["trouble"]
    made = desk.deploy(service("new", "vram: 16GB"))
    assert made["state"] == "queued"
    reason = eventually(lambda: (desk.workload("new") or {})["reason"], "it says why it waits", 10)
    assert reason["code"] == "CLUSTER_UNREACHABLE"
    assert (desk.workload("old") or {})["state"] in {"running", "unhealthy"}
    refused = desk.ask("POST", "workloads", json={"file": service("huge", "vram: 500GB")})
    assert refused.status_code in {201, 422}, "what was seen once may be judged, nothing else"

    yard.proxy.faults.clear()
    eventually(lambda: desk.state("new") == "running", "it goes on", 40)
    eventually(lambda: _acts(desk), "and says so", 20)
    assert {name: lives(yard)[name] for name in alive} == alive


def _unreachable(desk: Desk) -> Json | None:
    (cluster,) = desk.get("status")["clusters"]
    return cluster if not cluster["reachable"] and cluster["trouble"] else None


# --- the disk ----------------------------------------------------------------------------------------


def test_a_new_podwarden_takes_over_what_a_lost_one_left(yard: Plant, desk: Desk) -> None:
    desk.post("users", {"name": "eva", "role": "member", "password": "a long enough password"})
    eva = yard.desk(yard.wardens[0])
    answer = eva.http.post(
        f"{eva.warden.url}/api/v1/session",
        json={"name": "eva", "password": "a long enough password"},
    )
    eva.token = answer.json()["token"]
    eva.deploy(service("hers", "vram: 8GB"))
    desk.deploy(service("twice", "vram: 4GB, sharing: shared"))
    desk.deploy(job("done", "count: 1", 0.5))
    desk.deploy(service("halted", "vram: 12GB"))
    desk.deploy(job("frames", "vram: 12GB", 6, "array: 1-6, retries: 0"))
    for name, state in (
        ("hers", "running"),
        ("twice", "running"),
        ("done", "succeeded"),
        ("frames", "running"),
    ):
        eventually(lambda name=name, state=state: desk.state(name) == state, f"{name} {state}", 30)
    desk.put(
        "workloads/twice",
        {"file": service("twice", "vram: 4GB, sharing: shared", REVISED), "recreate": True},
    )
    eventually(lambda: _settled(desk, "twice", 2), "its second revision runs", 30)
    desk.ask("POST", "workloads/halted/stop")
    eventually(lambda: desk.state("halted") == "stopped", "it is stopped", 20)
    old = {w["name"]: w for w in desk.workloads()}

    lost = yard.wardens.pop(0)
    yard.desks.remove(desk)
    desk.close()
    lost.kill()
    shutil.rmtree(lost.data)
    alive = {n: life for n, life in lives(yard).items() if not n.startswith("frames")}
    before = written(yard, ("deployments",))
    began = now()
    fresh = yard.open("fresh", kubeconfig=yard.proxy.kubeconfig)
    yard.wardens.insert(0, yard.wardens.pop())
    yard.desks.insert(0, yard.desks.pop())
    eventually(lambda: _acts(fresh), "it acts", 20)
    assert now() - began < 30
    new = {w["name"]: w for w in fresh.workloads()}
    assert set(new) == set(old)
    for name, was in old.items():
        now_ = new[name]
        for key in ("id", "kind", "owner", "revision", "spec", "priority"):
            assert now_[key] == was[key], (name, key)
    assert new["hers"]["owner"] == "eva"
    assert {n: w["state"] for n, w in new.items() if n != "frames"} == {
        "hers": "running", "twice": "running", "done": "succeeded", "halted": "stopped",
    }  # fmt: skip
    revisions = fresh.get("workloads/twice/revisions")
    assert [r["number"] for r in revisions] == [1, 2]
    assert "env" not in revisions[0]["spec"]
    eventually(lambda: fresh.state("frames") == "succeeded", "the array goes on to its end", 60)
    assert written(yard, ("deployments",)) == before, "no service was touched"
    assert {n: life for n, life in lives(yard).items() if n in alive} == alive, "nothing restarted"
    assert disagreements(yard, fresh.workloads()) == []
    done = fresh.post("workloads/twice/rollback", {"recreate": True})
    assert done["workload"]["revision"] == 3


def _settled(desk: Desk, name: str, revision: int) -> bool:
    found = desk.workload(name) or {}
    return (found["state"], found["revision"]) == ("running", revision)
