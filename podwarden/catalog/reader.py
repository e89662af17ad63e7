"""A careful YAML reader: plain data out, with the line of every entry.

Refused, because each has been used to blow up or to fool a reader: aliases and anchors, merge keys, tags,
several documents, repeated keys, depth beyond 32, more than 50,000 entries, files beyond 1 MiB.
An unquoted scalar becomes a number or a boolean only where writing it back gives the same characters, so
that `1.10`, `010`, `no` and `10:20` stay what was typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from podwarden.domain.check import join
from podwarden.errors import Invalid, Problem

MOST_BYTES = 1 << 20
MOST_ENTRIES = 50_000
MOST_DEPTH = 32

# The C parser is faster by two orders of magnitude; both give the same events.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII)
_FRACTION = re.compile(r"-?(?:0|[1-9]\d{0,17})\.\d{1,17}", re.ASCII)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


@dataclass(frozen=True, slots=True)
class Tree:
    """value: dict, list, str, int, float, bool, None. lines: dotted path -> 1-based line of its key."""

    value: Any
    lines: Mapping[str, int] = field(default_factory=dict)

    def line(self, path: str) -> int | None:
        """The line of `path`, or of the nearest thing around it that the file has."""
        while path and path not in self.lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self.lines.get(path)

    def located(self, problems: list[Problem]) -> list[Problem]:
        """The problems with their lines, in the order of the file."""
        found = [p if p.line else replace(p, line=self.line(p.field)) for p in problems]
        return sorted(found, key=lambda p: p.line or 0)


def read(text: str, source: str, *, aliases: bool = False) -> Tree:
    """One YAML document; Invalid with line and cause where it is none, or one that is refused.

    aliases: take anchors, aliases and merge keys too, as Compose files have them; what an alias stands
    for counts as if it were written out.
    """
    _check_characters(text, source)
    reading = _Reading(source, aliases=aliases)
    try:
        return reading.document(yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else None
        raise Invalid(
            [Problem("YAML", "", _cause(error, text, line), line)], source=source
        ) from error
    except yaml.YAMLError as error:
        fix = "text without control characters"
        raise Invalid([Problem("YAML", "", fix, _control_line(text))], source=source) from error


def _check_characters(text: str, source: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise Invalid([Problem("YAML", "", "text in valid Unicode")], source=source) from error
    if size > MOST_BYTES:
        fix = f"a file of at most {MOST_BYTES:,} bytes"
        raise Invalid([Problem("YAML", f"{size:,} bytes", fix)], source=source)


def _cause(error: yaml.MarkedYAMLError, text: str, line: int | None) -> str:
    rows = text.splitlines()
    row = rows[line - 1] if line and line <= len(rows) else ""
    if "\t" in row[: len(row) - len(row.lstrip())]:
        return "indent with spaces; YAML does not take tabs"
    words = (error.problem or error.context or "it cannot be read").strip()
    quotes = "; put text with ${…} in quotes" if "${" in row else ""
    return f"cannot be read as YAML: {words}{quotes}"


def _control_line(text: str) -> int | None:
    for number, row in enumerate(text.split("\n"), 1):
        if any(ord(c) < 32 and c not in "\t\r" for c in row) or "\x7f" in row:
            return number
    return None


class _Reading:
    """Builds plain data from parser events, one document."""

    def __init__(self, source: str, *, aliases: bool = False) -> None:
        self.source = source
        self.aliases = aliases
        self.anchors: dict[str, tuple[Any, int, int]] = {}  # name -> value, entries, levels in it
        self.lines: dict[str, int] = {}
        self.entries = 0
        self.deepest = 0

    def document(self, events: Iterator[Any]) -> Tree:
        value, seen = None, False
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if seen:
                    self._refuse(event, "one document per file: remove what follows ---")
                seen = True
                value = self._value(next(events), events, "", 0)
        if value is None:
            raise Invalid([Problem("YAML", "", "the file is empty")], source=self.source)
        return Tree(value, self.lines)

    def _refuse(self, event: Any, fix: str, field_: str = "") -> None:
        problem = Problem(field_ or "YAML", "", fix, event.start_mark.line + 1)
        raise Invalid([problem], source=self.source)

    def _value(self, event: Any, events: Iterator[Any], path: str, depth: int) -> Any:
        self._check(event, path, depth)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, path, depth)
        before, outer, self.deepest = self.entries, self.deepest, depth
        value: Any
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._list(events, path, depth)
        else:
            value = self._mapping(events, path, depth)
        if event.anchor is not None:  # known from here on: it cannot contain itself
            self.anchors[event.anchor] = (value, self.entries - before, self.deepest - depth)
        self.deepest = max(outer, self.deepest)
        return value

    def _alias(self, event: Any, path: str, depth: int) -> Any:
        if event.anchor not in self.anchors:
            self._refuse(event, f"no anchor &{event.anchor} stands before it", path)
        value, entries, levels = self.anchors[event.anchor]
        self.entries += entries
        self.deepest = max(self.deepest, depth + levels)
        self._check_size(event)
        return value

    def _check(self, event: Any, path: str, depth: int) -> None:
        self.entries += 1
        if not self.aliases and getattr(event, "anchor", None) is not None:
            self._refuse(event, "no anchors and aliases (& and *): write the value out", path)
        if getattr(event, "tag", None) is not None:
            self._refuse(event, "no tags (!): write a plain value", path)
        self.deepest = max(self.deepest, depth)
        self._check_size(event)

    def _check_size(self, event: Any) -> None:
        if self.deepest > MOST_DEPTH:
            self._refuse(event, f"nested deeper than {MOST_DEPTH} levels")
        if self.entries > MOST_ENTRIES:
            self._refuse(event, f"more than {MOST_ENTRIES:,} entries")

    def _list(self, events: Iterator[Any], path: str, depth: int) -> list[Any]:
        found: list[Any] = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            place = join(path, len(found))
            self.lines[place] = event.start_mark.line + 1
            found.append(self._value(event, events, place, depth + 1))
        return found

    def _mapping(self, events: Iterator[Any], path: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: list[Any] = []
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            self._check(event, path, depth)
            if not isinstance(event, yaml.ScalarEvent):
                self._refuse(event, "a key must be a word", path)
            key: str = event.value
            place = join(path, key)
            if key == "<<":
                if not self.aliases:
                    self._refuse(event, "no merge keys (<<): write the values out", path)
                merged.append((event, self._value(next(events), events, place, depth + 1)))
                continue
            if key in found:
                first = self.lines[place]
                self._refuse(event, f"stands twice, first in line {first}: keep one", place)
            self.lines[place] = event.start_mark.line + 1
            found[key] = self._value(next(events), events, place, depth + 1)
        for event, value in merged:
            self._merge(event, value, found, path)
        return found

    def _merge(self, event: Any, value: Any, found: dict[str, Any], path: str) -> None:
        """What is written out goes before what is merged, and the first of several before the next."""
        for section in value if isinstance(value, list) else [value]:
            if not isinstance(section, dict):
                self._refuse(event, "a merge key (<<) takes a section, or a list of sections", path)
            for key, entry in section.items():
                if key not in found:
                    self.lines[join(path, key)] = event.start_mark.line + 1
                    found[key] = entry


def _scalar(event: Any) -> Any:
    text: str = event.value
    if not event.implicit[0]:  # quoted or a block: a text
        return text
    if text in _NULLS:
        return None
    if text in ("true", "false"):
        return text == "true"
    if _WHOLE.fullmatch(text) and text != "-0":
        return int(text)
    if _FRACTION.fullmatch(text) and repr(float(text)) == text:
        return float(text)
    return text
