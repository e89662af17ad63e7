"""The documents say what the code says: words, states, reason codes, settings, commands."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from podwarden.domain.access import Role
from podwarden.domain.reason import Code
from podwarden.domain.workload import TRANSITIONS, Kind, Priority, State
from podwarden.settings import Settings

DOCS = Path(__file__).resolve().parents[2] / "docs"


def text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("state", [s.value for s in State])
def test_each_state_is_drawn_and_explained(state: str) -> None:
    assert f"`{state}`" in text("state-machines.md")


def test_the_drawn_transitions_are_those_of_the_code() -> None:
    drawn = set(re.findall(r"^\s+(\w+) --> (\w+)", text("state-machines.md"), re.MULTILINE))
    code = {(a.value, b.value) for a, targets in TRANSITIONS.items() for b in targets}
    assert drawn == code


@pytest.mark.parametrize("code", [c.value for c in Code])
def test_each_reason_code_is_explained_once(code: str) -> None:
    assert text("reason-codes.md").count(f"| `{code}` |") == 1


def test_no_reason_code_is_explained_that_does_not_exist() -> None:
    explained = set(re.findall(r"^\| `([A-Z_]+)` \|", text("reason-codes.md"), re.MULTILINE))
    assert explained == {c.value for c in Code}


@pytest.mark.parametrize(
    "word", [*(k.value for k in Kind), *(r.value for r in Role), *(p.word for p in Priority)]
)
def test_the_glossary_knows_the_words_people_type(word: str) -> None:
    assert f"`{word}`" in text("glossary.md")


@pytest.mark.parametrize("name", [f.name for f in fields(Settings)])
def test_each_setting_is_documented(name: str) -> None:
    assert f"`PODWARDEN_{name.upper()}`" in text("settings.md")
