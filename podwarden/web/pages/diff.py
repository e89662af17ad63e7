"""Differences of two workload files, line by line."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher

import yaml

from podwarden.domain.document import to_document
from podwarden.domain.workload import Spec

CONTEXT = 2  # unchanged lines around a change
MOST_LINES = 400


@dataclass(frozen=True, slots=True)
class Line:
    """kind: add, del, ctx."""

    kind: str
    text: str


def written(spec: Spec) -> str:
    """The workload file of a spec as YAML."""
    return yaml.safe_dump(to_document(spec), sort_keys=False, allow_unicode=True, width=100)


def difference(before: Spec, after: Spec) -> tuple[Line, ...]:
    """Empty when both mean the same."""
    old, new = written(before).splitlines(), written(after).splitlines()
    if old == new:
        return ()
    lines: list[Line] = []
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT):
        if lines:
            lines.append(Line("ctx", "…"))
        for word, a1, a2, b1, b2 in group:
            if word == "equal":
                lines += [Line("ctx", text) for text in old[a1:a2]]
                continue
            lines += [Line("del", text) for text in old[a1:a2]]
            lines += [Line("add", text) for text in new[b1:b2]]
    return tuple(lines[:MOST_LINES])
