"""Placeholders of a template, filled on the parsed tree: a value can never become structure.

`${name}` alone in a text takes the parameter's value with its type; inside a longer text it is written
out; `$${` means the two characters `${`. An entry that is nothing but one empty parameter is left out.
A section in a list may carry `when: name` or `unless: name`: it stands there only if that parameter has
(or has not) a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from podwarden.catalog.parameters import Value
from podwarden.domain.check import join

GPUS = "gpus"  # the number of GPUs, after what the user asked for on the command line
_HOLE = re.compile(r"\$\$\{|\$\{([^}]*)\}?")
_CONDITIONS = ("when", "unless")
_LEFT_OUT = object()


@dataclass(frozen=True, slots=True)
class Hole:
    """A place in a template that names a parameter."""

    path: str
    name: str
    in_key: bool = False


@dataclass(slots=True)
class Filled:
    """value: the tree. used: dotted path in it -> names of the parameters that shaped it."""

    value: Any
    used: dict[str, tuple[str, ...]] = field(default_factory=dict)


def holes(tree: Any, path: str = "") -> Iterator[Hole]:
    """Every place that names a parameter, in order."""
    if isinstance(tree, str):
        for found in _HOLE.finditer(tree):
            if found[1] is not None:
                yield Hole(path, found[1] if found[0].endswith("}") else "")
    elif isinstance(tree, Mapping):
        for key, value in tree.items():
            place = join(path, key)
            if "${" in key:
                yield Hole(place, key, in_key=True)
            if key in _CONDITIONS and isinstance(value, str):
                yield Hole(place, value)
            else:
                yield from holes(value, place)
    elif isinstance(tree, list):
        for number, value in enumerate(tree):
            yield from holes(value, join(path, number))


def fill(tree: Any, values: Mapping[str, Value]) -> Filled:
    """The tree with every hole filled; each name in it must be in `values`."""
    filled = Filled(None)
    filled.value = _fill(tree, values, filled.used, "")
    return filled


def _fill(
    tree: Any, values: Mapping[str, Value], used: dict[str, tuple[str, ...]], path: str
) -> Any:
    if isinstance(tree, str):
        return _text(tree, values, used, path)
    if isinstance(tree, Mapping):
        section: dict[str, Any] = {}
        for key, value in tree.items():
            result = _fill(value, values, used, join(path, key))
            if result is not _LEFT_OUT:
                section[key] = result
        return section
    if isinstance(tree, list):
        entries: list[Any] = []
        for value in tree:
            wanted, rest = _condition(value, values)
            if not wanted:
                continue
            result = _fill(rest, values, used, join(path, len(entries)))
            if result is not _LEFT_OUT:
                entries.append(result)
        return entries
    return tree


def _condition(entry: Any, values: Mapping[str, Value]) -> tuple[bool, Any]:
    if not isinstance(entry, Mapping):
        return True, entry
    wanted = True
    if "when" in entry:
        wanted = bool(values[entry["when"]])
    if "unless" in entry:
        wanted = wanted and not values[entry["unless"]]
    return wanted, {key: value for key, value in entry.items() if key not in _CONDITIONS}


def _text(
    text: str, values: Mapping[str, Value], used: dict[str, tuple[str, ...]], path: str
) -> Any:
    names = tuple(found[1] for found in _HOLE.finditer(text) if found[1] is not None)
    if names:
        used[path] = names
    if len(names) == 1 and text == f"${{{names[0]}}}":
        value = values[names[0]]
        return _LEFT_OUT if value == "" else value
    return _HOLE.sub(lambda found: "${" if found[1] is None else _written(values[found[1]]), text)


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
