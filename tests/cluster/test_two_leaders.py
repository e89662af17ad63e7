"""Two PodWarden processes on one PostgreSQL and one cluster: one acts, the other waits; the one that was stopped inside
an apply and wakes up later changes nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from deadline import eventually, holds
from integration.postgres import Postgres
from marks import fence, lives, versions
from plant import Desk, Plant, Warden, job, now, plant, service
from proxy import Holds

TAKE_OVER = 10.0  # seconds


@dataclass
class Pair:
    yard: Plant
    wardens: tuple[Warden, Warden]
    desks: tuple[Desk, Desk]

    def leader(self) -> int:
        """0 or 1; None of them or both: an error."""
        leading = [desk.get("status")["leading"] for desk in self.desks]
        assert sum(leading) == 1, leading
        return leading.index(True)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def pair(tmp_path: Path, postgres: Postgres) -> Iterator[Pair]:
    """Both on the shipped lease, the cluster behind a proxy. They share the key of their secrets, as the docs say."""
    url = postgres.new_database()
    with plant(tmp_path) as yard:
        first = yard.warden("one", database=url, PODWARDEN_LEASE_SECONDS="6")
        first.start()
        desk = yard.desk(first)
        yard.adopt(desk, yard.proxy.kubeconfig)
        second = yard.warden("two", database=url, PODWARDEN_LEASE_SECONDS="6")
        second.data.mkdir(mode=0o700)
        shutil.copy2(first.data / "secrets.key", second.data / "secrets.key")
        second.start()
        other = yard.desk(second)
        for one in (desk, other):
            eventually(lambda one=one: _reads(one), "both read the cluster")
        yield Pair(yard, (first, second), (desk, other))


def _reads(desk: Desk) -> bool:
    clusters = desk.get("status")["clusters"]
    return bool(clusters) and all(c["reachable"] for c in clusters)


def test_one_acts_and_the_other_takes_over_when_it_is_killed(pair: Pair) -> None:
    here, there = pair.desks
    assert pair.leader() == 0
    assert here.get("status")["leader"] == there.get("status")["leader"]

    there.deploy(service("kept", "vram: 8GB"))
    there.deploy(job("quick", "count: 1", 1))
    eventually(lambda: here.state("kept") == "running", "asked there, done here")
    eventually(lambda: there.state("quick") == "succeeded", "the job has ended")
    before = lives(pair.yard)
    first_fence = fence(pair.yard)

    pair.wardens[0].kill()
    killed = now()
    there.deploy(service("after", "vram: 8GB"))
    eventually(lambda: there.get("status")["leading"], "the other leads", TAKE_OVER)
    eventually(lambda: there.state("after") == "running", "it acts", 20)
    took = now() - killed
    assert took < TAKE_OVER + 10, f"{took:.1f} s"
    assert fence(pair.yard) > first_fence
    assert {name: before[name] for name in before} == {
        name: life for name, life in lives(pair.yard).items() if name in before
    }

    pair.wardens[0].start()
    pair.desks[0].login()
    holds(lambda: pair.leader() == 1, "the one that came back only watches", 3)
    there.delete("workloads/kept")
    eventually(lambda: here.workload("kept") is None, "seen by both")


def test_a_clean_stop_hands_over_at_once(pair: Pair) -> None:
    pair.wardens[0].stop()
    eventually(lambda: pair.desks[1].get("status")["leading"], "the other leads", 4)


@pytest.mark.parametrize("kind", ["resourceclaimtemplates", "deployments"])
def test_a_leader_stopped_inside_an_apply_changes_nothing_when_it_wakes(
    pair: Pair, kind: str
) -> None:
    here, there = pair.desks
    here.deploy(service("steady", "vram: 8GB"))
    eventually(lambda: here.state("steady") == "running", "something runs already")
    caught = Holds(lambda a: a.method == "PATCH" and f"/{kind}/split" in a.path)
    pair.yard.proxy.faults.append(caught)
    here.deploy(service("split", "vram: 16GB"))
    assert caught.caught.wait(15), "its apply is on the way"
    pair.wardens[0].pause()

    eventually(lambda: there.get("status")["leading"], "the other leads", TAKE_OVER)
    eventually(lambda: there.state("split") == "running", "the other finished the deploy", 20)
    there.post("workloads/steady/stop")
    there.deploy(service("late", "vram: 24GB"))
    eventually(lambda: there.state("steady") == "stopped", "and goes on", 15)
    eventually(lambda: there.state("late") == "running", "and on", 15)

    before, alive = versions(pair.yard), lives(pair.yard)
    caught.release()
    eventually(lambda: caught.answers, "the old leader's request arrives at last")
    assert caught.answers == [403], "the cluster refuses it"
    pair.wardens[0].resume()
    eventually(lambda: not here.get("status")["leading"], "it knows that it does not lead")
    holds(lambda: versions(pair.yard) == before, "no object changes", 6)
    assert lives(pair.yard) == alive
    assert pair.leader() == 1
    states = {w["name"]: w["state"] for w in here.workloads()}
    assert states == {"steady": "stopped", "split": "running", "late": "running"}
    asked = [e["text"] for e in there.events("split") if e["kind"] == "admitted"]
    assert len(asked) == 1, "admitted once"
