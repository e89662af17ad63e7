"""plan, refusal and preview: the three questions anybody may ask. All pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from podwarden.domain.placement import Claimant, Placement, Plan, Snapshot, Verdict
from podwarden.domain.reason import Code, Reason
from podwarden.scheduling.books import Books
from podwarden.scheduling.explain import Explainer
from podwarden.scheduling.feasible import class_of
from podwarden.scheduling.need import need_of
from podwarden.scheduling.order import in_order
from podwarden.scheduling.passing import MakeRanker, Pass, open_pass, run
from podwarden.scheduling.rank import BestFit
from podwarden.scheduling.refuse import never_fits
from podwarden.scheduling.words import short


def plan(snapshot: Snapshot, now: datetime, *, ranker: MakeRanker = BestFit) -> Plan:
    """Who starts now and where, why the others wait, what is kept for the head of the queue.

    Every claimant appears exactly once: in verdicts (position 0 = starts now, or, displaced, is expected to be
    started by the cluster) or in refusals. ranker: the policy that orders feasible nodes.
    """
    if not snapshot.reachable or not snapshot.complete:
        return _blind(snapshot)
    state = open_pass(snapshot, now, ranker)
    refusals = _refusals(state)
    run(state, [c for c in state.queue if c.workload not in refusals])
    explainer = Explainer(state)
    verdicts, position = [], 0
    for claimant in state.queue:
        entry = state.waiting.get(claimant.workload)
        if claimant.workload in refusals:
            continue
        if entry is None:
            verdicts.append(Verdict(claimant.workload, 0, explainer.moved(claimant)))
            continue
        position += 1
        starts = entry.reservation.told if entry.reservation else None
        verdicts.append(Verdict(claimant.workload, position, explainer.reason(entry), starts))
    return Plan(
        placements=tuple(state.placements),
        verdicts=tuple(verdicts),
        holds=state.holds(),
        refusals=tuple(refusals.values()),
    )


def refusal(snapshot: Snapshot, claimant: Claimant) -> Reason | None:
    """Why the claimant can never fit on anything ever seen; None when it can, or when not everything was seen."""
    if not snapshot.complete or not snapshot.reachable:
        return None
    books = Books(snapshot.nodes)
    return never_fits(books, class_of(books, need_of(claimant)), claimant, snapshot.capabilities)


def preview(
    snapshot: Snapshot, claimant: Claimant, now: datetime, *, ranker: MakeRanker = BestFit
) -> tuple[Plan, Verdict, Placement | None]:
    """The plan as it would be with this claimant in the queue (instead of one of the same id)."""
    others = tuple(c for c in snapshot.claimants if c.workload != claimant.workload)
    made = plan(replace(snapshot, claimants=(*others, claimant)), now, ranker=ranker)
    verdict = made.verdict(claimant.workload)
    assert verdict is not None  # every claimant has exactly one
    placement = next((p for p in made.placements if p.workload == claimant.workload), None)
    return made, verdict, placement


def _refusals(state: Pass) -> dict[str, Verdict]:
    """By workload. What was started once, or lost its node, is never refused: it waits. Only totals are asked
    for, so that it does not matter what the books have been charged with.
    """
    known: dict[object, Reason | None] = {}
    refused = {}
    for claimant in state.queue:
        if claimant.started or claimant.displaced:
            continue
        asked = state.asked(claimant)
        key = (id(asked), claimant.nodes_why, claimant.at_least)
        if key not in known:
            able = state.snapshot.capabilities
            known[key] = never_fits(state.books, asked, claimant, able)
        reason = known[key]
        if reason is not None:
            refused[claimant.workload] = Verdict(claimant.workload, 0, reason)
    return refused


def _blind(snapshot: Snapshot) -> Plan:
    """Nothing is started, refused or held on the word of a cluster that is not seen whole."""
    name = short(snapshot.cluster) or "The cluster"
    text = (
        f"{name} is still being read; nothing is started before all of it was seen."
        if snapshot.reachable
        else f"{name} does not answer; what runs there keeps running, and the queue goes on when it is back."
    )
    verdicts: list[Verdict] = []
    ahead: list[str] = []
    for position, claimant in enumerate(in_order(snapshot.claimants), start=1):
        reason = Reason(Code.CLUSTER_UNREACHABLE, text, ahead=tuple(ahead[-5:]))
        verdicts.append(Verdict(claimant.workload, position, reason))
        ahead.append(claimant.name)
    return Plan(verdicts=tuple(verdicts))
