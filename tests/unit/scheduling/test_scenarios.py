"""Every case of tests/scenarios/*.yaml: a snapshot in short notation, and what the plan must say about it.

expect, by workload: `n3/1` (starts there; slots joined by ` + `, GPUs of a slot by `,`),
`waits CODE`, `refused CODE`, `moves n4` (displaced), `nothing` (wants none). says: words that the sentence contains. line: waiting, in order.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from plan_checker import faults
from short_notation import NOW, at, gpu_name, snapshot

from podwarden.scheduling import plan
from podwarden.scheduling.codec import plan_to_json, snapshot_from_json, snapshot_to_json

FOLDER = Path(__file__).parents[2] / "scenarios"
CASES = [
    pytest.param(case, id=f"{file.stem}: {case['name']}")
    for file in sorted(FOLDER.glob("*.yaml"))
    for case in yaml.safe_load(file.read_text(encoding="utf-8"))
]


def shown(slot) -> str:
    return ",".join(gpu_name(d) for d in slot.devices) or slot.node


def outcome(verdict, made, placed) -> str:
    name = verdict.workload[2:]
    if verdict in made.refusals:
        return f"refused {verdict.reason.code}"
    if name in placed:
        return " + ".join(shown(s) for s in placed[name].slots)
    if verdict.position:
        return f"waits {verdict.reason.code}"
    if verdict.reason is None:
        return "nothing"
    return f"moves {verdict.reason.text.split(' on ')[1].rstrip('.')}"


@pytest.mark.parametrize("case", CASES)
def test_scenario(case):
    seen = snapshot(case)
    made = plan(seen, NOW)
    placed = {p.workload[2:]: p for p in made.placements}
    verdicts = {v.workload[2:]: v for v in (*made.verdicts, *made.refusals)}
    assert {n: outcome(v, made, placed) for n, v in verdicts.items()} == case["expect"]
    for name, words in case.get("says", {}).items():
        sentence = verdicts[name].reason.sentence
        for word in [words] if isinstance(words, str) else words:
            assert word in sentence, sentence
    if "line" in case:
        assert [v.workload[2:] for v in made.verdicts if v.position] == case["line"]
    if "holds" in case:
        assert {gpu_name(h.device): h.workload[2:] for h in made.holds} == case["holds"]
    for name, when in case.get("starts", {}).items():
        assert verdicts[name].starts_at == (None if when is None else at(when))
    for name, nodes in case.get("ranking", {}).items():
        assert list(placed[name].ranking) == nodes
    for name, bands in case.get("bands", {}).items():
        assert list(placed[name].bands) == bands
    for name, ahead in case.get("ahead", {}).items():
        assert list(verdicts[name].reason.ahead) == ahead


@pytest.mark.parametrize("case", CASES)
def test_scenario_holds_all_rules_and_replays(case):
    seen = snapshot(case)
    made = plan(seen, NOW)
    assert faults(seen, NOW, made) == []
    again = snapshot_from_json(snapshot_to_json(seen))
    assert again == seen
    assert plan_to_json(plan(again, NOW)) == plan_to_json(made)


def test_there_are_enough_of_them():
    assert len(CASES) >= 40
