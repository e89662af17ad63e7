"""Snapshots and plans as JSON, without loss, so that a decision can be saved and replayed bit for bit.

A document is `{"format": "podwarden/snapshot/1" | "podwarden/plan/1", "data": ...}`. Records are objects by field
name; a field that is missing takes its default, an unknown one is refused: a file of a newer PodWarden is not half
understood. Times are ISO 8601 in UTC, durations are seconds, sets are sorted lists. The text is canonical:
equal values give equal bytes.
"""

from __future__ import annotations

import json
import math
import types
import typing
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any

from podwarden.domain.placement import Plan, Snapshot
from podwarden.errors import Invalid, shorten

SNAPSHOT_FORMAT = "podwarden/snapshot/1"
PLAN_FORMAT = "podwarden/plan/1"
_FIX = "a snapshot as `podwarden snapshot` writes it"

Decode = Callable[[Any, str], Any]


def snapshot_to_json(snapshot: Snapshot) -> str:
    return _dump(SNAPSHOT_FORMAT, snapshot)


def plan_to_json(plan: Plan) -> str:
    return _dump(PLAN_FORMAT, plan)


def snapshot_from_json(text: str | bytes) -> Snapshot:
    """Raises Invalid that names the place in the document, when it is not a snapshot of this format."""
    return typing.cast("Snapshot", _load(SNAPSHOT_FORMAT, Snapshot, text))


def plan_from_json(text: str | bytes) -> Plan:
    """Raises Invalid as snapshot_from_json does."""
    return typing.cast("Plan", _load(PLAN_FORMAT, Plan, text))


def _dump(name: str, value: object) -> str:
    document = {"format": name, "data": _encode(value)}
    return json.dumps(
        document, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
    )


def _load(name: str, kind: type, text: str | bytes) -> object:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid.of("", shorten(str(error)), f"this is not JSON; give {_FIX}") from error
    if not isinstance(document, dict) or document.get("format") != name:
        found = document.get("format") if isinstance(document, dict) else document
        raise Invalid.of("format", found, f"give {name}: {_FIX}")
    return _decoder(kind)(document.get("data"), "data")


def _encode(value: object) -> Any:
    if is_dataclass(value):
        return {f.name: _encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    if isinstance(value, frozenset):
        return sorted(_encode(item) for item in value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.value if isinstance(value, Enum) else value


@cache
def _decoder(kind: Any) -> Decode:
    """What turns decoded JSON into a value of this type, or raises Invalid with the place."""
    if is_dataclass(kind):
        return _record(typing.cast("type", kind))
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _optional(_decoder(next(a for a in typing.get_args(kind) if a is not type(None))))
    if origin is tuple:
        return _tuple(typing.get_args(kind))
    if origin is frozenset:
        return _set(_decoder(typing.get_args(kind)[0]))
    if issubclass(kind, Enum):
        return _enum(kind)
    return {datetime: _time, timedelta: _duration}.get(kind) or _plain(kind)


def _record(kind: type) -> Decode:
    hints = typing.get_type_hints(kind)
    parts: dict[str, Decode] = {}
    needed = set()
    for field in fields(kind):
        parts[field.name] = _decoder(hints[field.name])
        if field.default is MISSING and field.default_factory is MISSING:
            needed.add(field.name)

    def decode(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise Invalid.of(where, value, "an object")
        for name in value:
            if name not in parts:
                raise Invalid.of(f"{where}.{name}", value[name], "no such field in this version")
        for name in sorted(needed):
            if name not in value:
                raise Invalid.of(f"{where}.{name}", "", "this field is missing")
        return kind(**{name: parts[name](item, f"{where}.{name}") for name, item in value.items()})

    return decode


def _optional(inner: Decode) -> Decode:
    return lambda value, where: None if value is None else inner(value, where)


def _tuple(kinds: tuple[Any, ...]) -> Decode:
    endless = kinds[-1] is Ellipsis
    parts = [_decoder(kind) for kind in kinds if kind is not Ellipsis]

    def decode(value: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(value, list) or (not endless and len(value) != len(parts)):
            raise Invalid.of(where, value, "a list" if endless else f"a list of {len(parts)}")
        chosen = parts * len(value) if endless else parts
        return tuple(
            part(item, f"{where}[{i}]")
            for i, (part, item) in enumerate(zip(chosen, value, strict=False))
        )

    return decode


def _set(inner: Decode) -> Decode:
    def decode(value: Any, where: str) -> frozenset[Any]:
        if not isinstance(value, list):
            raise Invalid.of(where, value, "a list")
        return frozenset(inner(item, f"{where}[{i}]") for i, item in enumerate(value))

    return decode


def _enum(kind: type[Enum]) -> Decode:
    def decode(value: Any, where: str) -> Enum:
        try:
            return kind(value)
        except ValueError as error:
            known = ", ".join(str(member.value) for member in kind)
            raise Invalid.of(where, value, f"one of {known}") from error

    return decode


def _time(value: Any, where: str) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise Invalid.of(where, value, "a time such as 2026-01-02T12:00:00+00:00") from error
    if moment.tzinfo is None:
        raise Invalid.of(where, value, "a time with its zone")
    return moment.astimezone(UTC)


def _duration(value: Any, where: str) -> timedelta:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or abs(value) > 1e10:
        raise Invalid.of(where, value, "a number of seconds")
    return timedelta(seconds=value)


def _plain(kind: type) -> Decode:
    word = {int: "a whole number", str: "a text", bool: "true or false"}[kind]

    def decode(value: Any, where: str) -> Any:
        if type(value) is not kind:
            raise Invalid.of(where, value, word)
        return value

    return decode
