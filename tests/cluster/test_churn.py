"""Random work and random trouble on the real engine; the oracle watches, the book is balanced at the end.

60 workloads and 5 kills; 300 and 25 with PODWARDEN_TEST_ALL=1. The seed is printed; PODWARDEN_SEED repeats it.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path

import pytest
from agreement import counted_wrong, disagreements
from churn import NODES, Churn
from deadline import eventually, none_left
from plant import Desk, Plant, plant
from rawapi import Json
from witness import Witness

ALL = os.environ.get("PODWARDEN_TEST_ALL") == "1"
AGREE = "what the store and the cluster say differently"
MOVING = {"starting", "updating", "stopping", "unhealthy"}


@pytest.mark.timeout(1500 if ALL else 480)
def test_nothing_is_lost_or_doubled_or_untrue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Chance belongs to the long run: a change is judged by the same chaos as the one before it.
    seed = int(os.environ.get("PODWARDEN_SEED") or (random.randrange(10**6) if ALL else 12))
    with capsys.disabled():
        sys.stdout.write(f"\nchurn: repeat with PODWARDEN_SEED={seed}\n")
    with plant(tmp_path, NODES) as yard:
        desk = yard.open()
        warden = yard.wardens[0]
        churn = Churn(yard, desk, warden, seed, 300 if ALL else 60, 25 if ALL else 5)
        with Witness(yard, warden) as witness:
            try:
                churn.run()
                eventually(warden.answers, "PodWarden is up", 30)
                wrong = churn.wrong + _settle(yard, desk, churn, witness)
            finally:
                _keep(tmp_path, churn, witness, desk)
            _clear(yard, desk)
    where = f"seed {seed}, see {tmp_path}"
    assert not wrong, f"{where}: " + "\n".join(wrong)
    faults = "\n".join(witness.faults.values())
    assert not faults, f"{where}: {len(witness.faults)} untrue:\n{faults}"
    assert churn.killed == churn.kills
    assert witness.judged > 50, "the witness hardly saw a queue"


def _settle(yard: Plant, desk: Desk, churn: Churn, witness: Witness) -> list[str]:
    """Lets everything come to its end; what disagrees then, in the cluster and in the book."""
    none_left(lambda: _services(desk, MOVING), "services that do not come to rest", 90)
    none_left(lambda: _of_services(disagreements(yard, desk.workloads()), desk), AGREE, 8)
    for one in _services(desk, {"running", "queued"}):
        name = one.split(" ", maxsplit=1)[0]
        desk.post(f"workloads/{name}/stop")
        churn.book[name].stopped = True
    busy = MOVING | {"queued", "running"}
    none_left(lambda: _lines(desk, busy), "workloads that do not end", 150)
    none_left(lambda: disagreements(yard, desk.workloads()), AGREE, 8)
    return counted_wrong(churn.book, desk.workloads(), list(witness.ended.values()), yard)


def _clear(yard: Plant, desk: Desk) -> None:
    for one in desk.workloads():
        desk.delete(f"workloads/{one['id']}")
    none_left(lambda: [w["name"] for w in desk.workloads()], "deleted workloads", 60)
    none_left(yard.leftovers, "objects of deleted workloads", 30)
    none_left(lambda: [p["metadata"]["name"] for p in yard.pods()], "pods", 30)


def _lines(desk: Desk, states: set[str]) -> list[str]:
    return [_line(w) for w in desk.workloads() if w["state"] in states]


def _services(desk: Desk, states: set[str]) -> list[str]:
    return [_line(w) for w in desk.workloads() if w["state"] in states and w["kind"] == "service"]


def _line(one: Json) -> str:
    why = one["reason"] or {}
    return f"{one['name']} {one['state']}: {why.get('code', '')} {why.get('text', '')}"


def _of_services(wrong: list[str], desk: Desk) -> list[str]:
    """Jobs still move at that moment."""
    names = {w["name"] for w in desk.workloads() if w["kind"] == "service"}
    return [text for text in wrong if text.split(" ", maxsplit=1)[0] in names]


def _keep(folder: Path, churn: Churn, witness: Witness, desk: Desk) -> None:
    """For whoever has to find out why."""
    (folder / "told.txt").write_text("\n".join([*churn.told, *churn.wrong]))
    witness.write(folder / "faults.txt")
    (folder / "workloads.json").write_text(json.dumps(desk.workloads(), indent=1))
