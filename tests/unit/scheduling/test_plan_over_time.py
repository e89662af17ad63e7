"""Plans one after another in virtual time: what a loop around plan() does to the queue (P-49, fill, P-44)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from plan_checker import faults
from short_notation import NOW, claimant, node, snapshot

from podwarden.domain.inventory import Holder, Holding
from podwarden.domain.placement import Claimant, Snapshot
from podwarden.scheduling import plan

TEN = timedelta(minutes=10)


@dataclass
class Loop:
    """Commits each plan at once; jobs run exactly as long as their limit."""

    snapshot: Snapshot
    now: datetime = NOW
    started: dict[str, datetime] = field(default_factory=dict)
    busy_minutes: float = 0.0

    def submit(self, queued: Claimant) -> None:
        queue = (*self.snapshot.claimants, replace(queued, queued_at=self.now))
        self.snapshot = replace(self.snapshot, claimants=queue)

    def turn(self) -> None:
        made = plan(self.snapshot, self.now)
        assert faults(self.snapshot, self.now, made) == []
        by_id = {c.workload: c for c in self.snapshot.claimants}
        held = list(self.snapshot.holdings)
        for placement in made.placements:
            job = by_id.pop(placement.workload)
            self.started[job.name] = self.now
            ends = self.now + job.time_limit
            holder = Holder(job.name, job.workload, instance=job.name, endless=False, ends_by=ends)
            held += [Holding(d, s.node, 0, 64, holder) for s in placement.slots for d in s.devices]
        self.snapshot = replace(
            self.snapshot, holdings=tuple(held), claimants=tuple(by_id.values())
        )

    def advance(self, minutes: int) -> None:
        self.busy_minutes += minutes * len(self.snapshot.holdings)
        self.now += timedelta(minutes=minutes)
        left = tuple(h for h in self.snapshot.holdings if h.holder.ends_by > self.now)
        self.snapshot = replace(self.snapshot, holdings=left)


def test_a_large_job_gets_its_turn_under_a_stream_of_small_ones():
    """P-49: 2 nodes x 4 GPUs, endless 1-GPU jobs of 10 min, one 4-GPU job: it starts within 2 x the longest."""
    gpus = {"gpus": ["A10 24GB"] * 4}
    loop = Loop(Snapshot("home", NOW, (node("n1", gpus), node("n2", gpus))))
    number = 0

    def stream(jobs):
        nonlocal number
        for _ in range(jobs):
            number += 1
            loop.submit(claimant(f"small{number:04}", {"gpu": "8GB", "limit": "10m"}))

    for _ in range(10):  # the cluster is full of jobs that end at different moments
        stream(1)
        loop.turn()
        loop.advance(1)
    loop.submit(claimant("large", {"gpu": "4x24GB", "limit": "30m"}))
    asked = loop.now
    for _ in range(60):
        stream(1)
        loop.turn()
        loop.advance(1)
    assert loop.started["large"] - asked <= 2 * TEN
    assert loop.busy_minutes / (70 * 8) > 0.6
    later = [s for name, s in loop.started.items() if name != "large" and s > loop.started["large"]]
    assert later  # the stream went on


def test_every_cause_of_six_when_freed_starts_exactly_its_job():
    """P-44: freeing one cause starts the job that waited for it, and no other."""
    case = {
        "nodes": {
            "n1": {"gpus": ["RTX 3090 24GB", "RTX 3090 24GB"]},
            "n2": {"cordoned": True, "gpus": ["L4 24GB"]},
            "n3": {"ready": False, "gpus": ["T4 16GB"]},
        },
        "held": ["n1/0 by svc"],
        "queue": [
            {"count": "2x24GB model=RTX_3090"},
            {"vram": "48GB model=A6000"},
            {"model": "8GB model=H100"},
            {"cordoned": "8GB model=L4"},
            {"quota": {"gpu": "8GB model=RTX_3090", "quota": "alice holds 2 of her 2 GPUs."}},
            {"unreachable": {"gpu": "8GB", "nodes": ["n3"], "why": "volume models"}},
        ],
    }

    def starts(**changes):
        seen = snapshot({**case, **{k: v for k, v in changes.items() if k != "node"}})
        if "node" in changes:
            seen = replace(seen, nodes=(*seen.nodes, changes["node"]))
        return {p.workload[2:] for p in plan(seen, NOW).placements}

    assert starts() == set()
    assert starts(held=[]) == {"count"}
    assert starts(node=node("n8", {"gpus": ["A6000 48GB"]})) == {"vram"}
    assert starts(node=node("n8", {"gpus": ["H100 80GB"]})) == {"model"}
    assert starts(nodes={**case["nodes"], "n2": {"gpus": ["L4 24GB"]}}) == {"cordoned"}
    assert starts(nodes={**case["nodes"], "n3": {"gpus": ["T4 16GB"]}}) == {"unreachable"}
    free = [*case["queue"][:4], {"quota": "8GB model=RTX_3090"}, case["queue"][5]]
    assert starts(queue=free) == {"quota"}


def test_the_promised_start_is_kept_and_never_moves_back():
    gpus = {"gpus": ["A10 24GB"] * 2}
    loop = Loop(Snapshot("home", NOW, (node("n1", gpus),)))
    for name, limit in (("a", "5m"), ("b", "20m")):
        loop.submit(claimant(name, {"gpu": "8GB", "limit": limit}))
    loop.turn()
    loop.submit(claimant("pair", {"gpu": "2x8GB", "limit": "10m"}))
    promised = set()
    for minute in range(30):
        loop.submit(claimant(f"s{minute:02}", {"gpu": "8GB", "limit": "7m"}))
        verdict = plan(loop.snapshot, loop.now).verdict("w-pair")
        if verdict is not None and verdict.position:
            promised.add(verdict.starts_at)
        loop.turn()
        loop.advance(1)
    assert promised == {NOW + timedelta(minutes=20)}
    assert loop.started["pair"] == NOW + timedelta(minutes=20)
