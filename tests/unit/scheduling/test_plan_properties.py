"""What holds for every plan, on snapshots nobody thought of. The judge (plan_checker) shares no code with plan."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_checker import Ledger, faults, step
from short_notation import NOW

from podwarden.domain.inventory import Device, DeviceHealth, Holder, Holding, Node
from podwarden.domain.placement import Claimant, ForeignDemand, Reserved, Snapshot
from podwarden.domain.request import Request, Sharing
from podwarden.domain.units import promisable
from podwarden.scheduling import plan, preview
from podwarden.scheduling.codec import (
    plan_from_json,
    plan_to_json,
    snapshot_from_json,
    snapshot_to_json,
)

GB = 1024
SIZES = {"GTX 1070": 8 * GB, "RTX 3060": 12 * GB, "RTX A4000": 16376, "RTX 3090": 24 * GB}
CALM = [HealthCheck.too_slow, HealthCheck.differing_executors]
minutes = st.integers(1, 30).map(lambda n: timedelta(minutes=10 * n))


@st.composite
def devices(draw, node: str):
    found = []
    for index in range(draw(st.integers(0, 4))):
        model = draw(st.sampled_from(sorted(SIZES)))
        outside = draw(st.sampled_from([0, 0, 0, 0, 3000]))
        sick = draw(st.integers(0, 11)) == 0
        found.append(
            Device(
                node, index, f"gpu-{node}-{index}", model, SIZES[model], promisable(SIZES[model], outside),
                health=DeviceHealth.LOST if sick else DeviceHealth.OK,
                present=draw(st.integers(0, 11)) > 0,
                whole_only=draw(st.integers(0, 7)) == 0,
                compute_capability=draw(st.sampled_from(["6.1", "8.6", "8.10", ""])),
                encoders=draw(st.sampled_from([None, None, 2])),
                outside_mib=outside,
            )
        )  # fmt: skip
    return tuple(sorted(found, key=lambda d: (d.vram_mib, d.uuid)))


@st.composite
def holdings_of(draw, device: Device):
    how = draw(st.sampled_from(["free", "free", "whole", "shared"]))
    if how == "free" or (how == "shared" and device.whole_only):
        return ()
    shared, left, found = how == "shared", device.memory_mib, []
    for number in range(draw(st.integers(1, 2)) if shared else 1):
        memory = draw(st.sampled_from([2 * GB, 5 * GB]))
        if shared and memory > left:
            break
        left -= memory
        end = draw(
            st.sampled_from(["endless", "endless", "limit", "expected", "unknown", "ending"])
        )
        cpu, ram = draw(st.integers(1, 3)) * 1000, draw(st.integers(1, 4)) * GB
        holder = Holder(
            name=f"h-{device.uuid}-{number}",
            workload=draw(st.sampled_from(["", f"h-{device.uuid}-{number}"])),
            endless=end in ("endless", "ending"),
            ends_by=NOW + draw(minutes) if end in ("limit", "expected") else None,
            expected_end=end == "expected",
            terminating=end == "ending",
            cpu_milli=cpu,
            memory_mib=ram,
        )
        found.append(
            Holding(device.uuid, device.node, memory if shared else 0, 1 if shared else 64, holder)
        )
    return tuple(found)


requests = st.builds(
    Request,
    count=st.sampled_from([1, 1, 1, 2, 3]),
    vram_mib=st.sampled_from([None, 4 * GB, 8 * GB, 12 * GB, 16 * GB, 24 * GB]),
    sharing=st.sampled_from([Sharing.DEDICATED, Sharing.DEDICATED, Sharing.SHARED]),
    model=st.sampled_from([(), (), (), ("rtx 3090",), ("RTX A4000", "RTX 3060")]),
    compute=st.sampled_from(["", "", ">=8.6", "<8.9"]),
    encoder_sessions=st.sampled_from([0, 0, 1]),
).map(lambda r: replace(r, vram_mib=4 * GB) if r.shared and r.vram_mib is None else r)


@st.composite
def claimants(draw, number: int, names: list[str]):
    endless = draw(st.booleans())
    slots = draw(st.sampled_from([1, 1, 1, 2, 4]))
    limited = not endless and draw(st.booleans())
    return Claimant(
        workload=f"w{number:02}",
        name=f"w{number:02}",
        endless=endless,
        priority=draw(st.sampled_from([0, 500, 500, 1000])),
        queued_at=NOW - timedelta(minutes=draw(st.integers(0, 5))),
        request=draw(st.one_of(st.none(), requests, requests, requests)),
        cpu_milli=draw(st.sampled_from([100, 1000, 4000])),
        memory_mib=draw(st.sampled_from([128, GB, 16 * GB])),
        slots=slots,
        at_least=draw(st.sampled_from([1, slots])),
        time_limit=draw(minutes) if limited else None,
        expected=None if endless or limited else draw(st.one_of(st.none(), minutes)),
        nodes=draw(st.sampled_from([None, None, None, frozenset(names[:1])])),
        nodes_why=draw(st.sampled_from(["node", "volume data"])),
        avoid=draw(st.sampled_from([(), (), (), tuple(names[-1:])])),
        open_hours=draw(st.integers(0, 9)) > 0,
        hours="22:00-07:00",
        quota=draw(st.sampled_from(["", "", "", "", "", "bob holds 1 of 1 GPUs."])),
        started=draw(st.booleans()),
    )


@st.composite
def snapshots(draw, *, calm: bool = False):
    """calm: without foreign demand and displaced services."""
    nodes, held = [], []
    for number in range(draw(st.integers(1, 4))):
        name = f"n{number}"
        gpus = draw(devices(name))
        mine = [h for d in gpus for h in draw(holdings_of(d))]
        held += mine
        nodes.append(
            Node(
                name,
                cpu_milli=sum(h.holder.cpu_milli for h in mine) + draw(st.integers(0, 8)) * 1000,
                memory_mib=sum(h.holder.memory_mib for h in mine) + draw(st.integers(0, 32)) * GB,
                pods=len(mine) + draw(st.sampled_from([0, 2, 100, 100, 100])),
                used_cpu_milli=sum(h.holder.cpu_milli for h in mine),
                used_memory_mib=sum(h.holder.memory_mib for h in mine),
                used_pods=len(mine),
                ready=draw(st.integers(0, 9)) > 0,
                cordoned=draw(st.integers(0, 9)) == 0,
                devices=gpus,
            )
        )
    names = [n.name for n in nodes]
    queue = [draw(claimants(i, names)) for i in range(draw(st.integers(0, 8)))]
    foreign = ()
    if not calm:
        queue = [replace(c, displaced=draw(st.integers(0, 5)) == 0) for c in queue]
        foreign = draw(st.sampled_from([(), (ForeignDemand("x", "chart", 1),)]))
    mix = draw(st.sampled_from([(), ((1, 8 * GB, 3), (2, 16 * GB, 1), (1, 0, 1))]))
    return Snapshot(
        "home", NOW, tuple(nodes), tuple(held), claimants=tuple(queue), foreign=foreign, mix=mix
    )


def no_rule_is_broken(snapshot):
    assert faults(snapshot, NOW, plan(snapshot, NOW)) == []


def the_order_of_the_snapshot_does_not_matter(snapshot, random):
    def shuffled(items):
        return tuple(random.sample(items, len(items)))

    other = replace(
        snapshot,
        nodes=shuffled(snapshot.nodes),
        holdings=shuffled(snapshot.holdings),
        claimants=shuffled(snapshot.claimants),
    )
    assert plan_to_json(plan(other, NOW)) == plan_to_json(plan(snapshot, NOW))


def saved_and_replayed_bit_for_bit(snapshot):
    text = snapshot_to_json(snapshot)
    again = snapshot_from_json(text)
    assert again == snapshot
    assert snapshot_to_json(again) == text
    made = plan(snapshot, NOW)
    assert plan_to_json(plan(again, NOW)) == plan_to_json(made)
    assert plan_from_json(plan_to_json(made)) == made


def committed(snapshot, made):
    """The snapshot after control wrote the plan down and set its holds."""
    by_id = {c.workload: c for c in snapshot.claimants}
    reserved, left = [], dict(by_id)
    for placement in made.placements:
        c = left.pop(placement.workload)
        shared = c.request is not None and c.request.shared
        limit = c.time_limit or c.expected
        reserved += [
            Reserved(
                c.workload, c.name, slot.node, slot.devices,
                memory_mib=step(c.request.vram_mib) if shared else 0,
                shares=1 if shared else 64,
                encoders=c.request.encoder_sessions if c.request else 0,
                cpu_milli=c.cpu_milli,
                instance_memory_mib=c.memory_mib,
                endless=c.endless,
                ends_by=NOW + limit if limit and not c.endless else None,
            )
            for slot in placement.slots
        ]  # fmt: skip
    return replace(
        snapshot,
        reserved=tuple(reserved),
        claimants=tuple(left.values()),
        holds=tuple((h.device, h.workload) for h in made.holds),
    )


def planning_again_after_the_commit_admits_nothing(snapshot):
    made = plan(snapshot, NOW)
    again = plan(committed(snapshot, made), NOW)
    assert again.placements == ()


def nobody_delays_the_head(snapshot):
    """At the told start, with everything gone that is sure or promised to be gone, the head still fits."""
    made = plan(snapshot, NOW)
    by_id = {c.workload: c for c in snapshot.claimants}
    order = [v.workload for v in made.verdicts]
    for verdict in made.verdicts:
        head = by_id[verdict.workload]
        if verdict.starts_at is None or head.at_least > 1:
            continue
        kept = [h for h in snapshot.holdings if not ended(h.holder, verdict.starts_at)]
        gone = [h for h in snapshot.holdings if ended(h.holder, verdict.starts_at)]
        ledger = Ledger(replace(snapshot, holdings=tuple(kept)))
        for held in gone:
            ledger.cpu[held.node] -= held.holder.cpu_milli
            ledger.ram[held.node] -= held.holder.memory_mib
            ledger.pods[held.node] -= 1
        for placement in made.placements:
            other = by_id[placement.workload]
            later = order.index(other.workload) > order.index(head.workload)
            limit = other.time_limit if later else (other.time_limit or other.expected)
            if limit is None or other.endless or NOW + limit > verdict.starts_at:
                for slot in placement.slots:
                    ledger.take(other, slot)
        assert ledger.fits_now(head), (head, verdict)


def ended(holder, moment) -> bool:
    return holder.terminating or (holder.ends_by is not None and holder.ends_by <= moment)


def the_preview_is_the_plan(snapshot, data):
    newcomer = data.draw(claimants(99, [n.name for n in snapshot.nodes]))
    made, verdict, placement = preview(snapshot, newcomer, NOW)
    assert made == plan(replace(snapshot, claimants=(*snapshot.claimants, newcomer)), NOW)
    assert verdict.workload == newcomer.workload
    assert (placement is not None) == any(p.workload == newcomer.workload for p in made.placements)


def remedies_that_name_whom_to_stop_are_true(snapshot):
    """Stopping exactly those lets the claimant start, unless somebody in front takes the room."""
    made = plan(snapshot, NOW)
    by_id = {c.workload: c for c in snapshot.claimants}
    for verdict in made.verdicts:
        if verdict.reason is None or not verdict.reason.remedy.startswith("Stop "):
            continue
        head = verdict.reason.remedy.partition(".")[0].partition(", or")[0]
        head = head.removeprefix("Stop ").removesuffix(" to start now")
        names = set(head.replace(" and ", ", ").split(", "))
        holders = {h.holder.name for h in snapshot.holdings} & names
        if len(holders) < len(names):
            continue  # it names one that this very plan starts
        gone = [h for h in snapshot.holdings if h.holder.name in names]
        ledger = Ledger(
            replace(snapshot, holdings=tuple(h for h in snapshot.holdings if h not in gone))
        )
        for held in gone:
            ledger.cpu[held.node] -= held.holder.cpu_milli
            ledger.ram[held.node] -= held.holder.memory_mib
            ledger.pods[held.node] -= 1
        for placement in made.placements:
            for slot in placement.slots:
                ledger.take(by_id[placement.workload], slot)
        assert ledger.fits_now(by_id[verdict.workload]), verdict


PROPERTIES = [
    pytest.param(no_rule_is_broken, (snapshots(),), id="no_rule_is_broken"),
    pytest.param(
        the_order_of_the_snapshot_does_not_matter,
        (
            snapshots(),
            st.randoms(use_true_random=False),
        ),
        id="the_order_of_the_snapshot_does_not_matter",
    ),
    pytest.param(
        saved_and_replayed_bit_for_bit, (snapshots(),), id="saved_and_replayed_bit_for_bit"
    ),
    pytest.param(
        planning_again_after_the_commit_admits_nothing,
        (snapshots(calm=True),),
        id="planning_again_after_the_commit_admits_nothing",
    ),
    pytest.param(nobody_delays_the_head, (snapshots(calm=True),), id="nobody_delays_the_head"),
    pytest.param(
        the_preview_is_the_plan,
        (
            snapshots(),
            st.data(),
        ),
        id="the_preview_is_the_plan",
    ),
    pytest.param(
        remedies_that_name_whom_to_stop_are_true,
        (snapshots(calm=True),),
        id="remedies_that_name_whom_to_stop_are_true",
    ),
]


def examine(check, strategies, examples: int) -> None:
    limits = settings(max_examples=examples, deadline=None, suppress_health_check=CALM)
    limits(given(*strategies)(check))()


@pytest.mark.parametrize(("check", "strategies"), PROPERTIES)
def test_property(check, strategies):
    examine(check, strategies, 40)


@pytest.mark.long
@pytest.mark.parametrize(("check", "strategies"), PROPERTIES)
def test_property_at_length(check, strategies):
    examine(check, strategies, 800)


def test_the_judge_sees_faults():
    """The checker itself: a plan that gives one GPU twice and forgets a claimant does not pass."""
    device = Device("n1", 0, "gpu-n1-0", "A10", 24 * GB, promisable(24 * GB))
    node = Node("n1", 8000, 8 * GB, devices=(device,))
    queue = tuple(Claimant(f"w{i}", f"w{i}", True, 500, NOW, Request(1, 8 * GB)) for i in range(2))
    snapshot = Snapshot("home", NOW, (node,), claimants=queue)
    made = plan(snapshot, NOW)
    assert faults(snapshot, NOW, made) == []
    twice = replace(made, placements=made.placements * 2, verdicts=made.verdicts[:1])
    found = " ".join(faults(snapshot, NOW, twice))
    assert "is not free" in found
    assert "exactly once" in found
    assert Counter(found.split())["gpu-n1-0"] == 1
