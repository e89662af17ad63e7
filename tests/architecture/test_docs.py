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


def test_the_codes_that_nothing_gives_yet_are_said_to_be_so() -> None:
    package = DOCS.parent / "podwarden"
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for path in package.rglob("*.py")
        if path.relative_to(package).parts[0] != "domain"
    )
    given = {c for c in Code if re.search(rf"\bCode\.{c.name}\b", code)}
    if not re.search(r"\bquota=", code):  # the plan takes one, and nobody gives it
        given.discard(Code.QUOTA)
    (said,) = re.findall(
        r"^Some codes .*? not given by this release: (.*?)^$",
        text("reason-codes.md"),
        re.MULTILINE | re.DOTALL,
    )
    assert set(re.findall(r"`([A-Z_]+)`", said)) == {c.value for c in set(Code) - given}


KEPT_ONLY = {
    "preemptible": "preemptible",
    "idle_stop": "idle_stop_s",
    "notify": "notify",
    "gpu.over_budget": "over_budget",
}


def test_the_keys_that_nothing_acts_on_yet_are_said_to_be_so() -> None:
    (said,) = re.findall(
        r"^(`.*`) are read, checked and kept", text("workload-file.md"), re.MULTILINE
    )
    assert re.findall(r"`([a-z_.]+)`", said) == list(KEPT_ONLY)
    marked = re.findall(
        r"^\| `([a-z_.]+)` \|.*\(kept, see below\)", text("workload-file.md"), re.MULTILINE
    )
    assert marked == list(KEPT_ONLY)


@pytest.mark.parametrize("name", [n for n in KEPT_ONLY.values() if n != "preemptible"])
def test_a_key_that_something_acts_on_is_not_called_kept_only(name: str) -> None:
    package = DOCS.parent / "podwarden"
    for room in ("control", "kube", "scheduling"):
        for path in (package / room).rglob("*.py"):
            assert f".{name}" not in path.read_text(encoding="utf-8"), path
