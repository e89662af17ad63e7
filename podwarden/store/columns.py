"""Column types that mean the same on both databases."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger, DateTime, Integer, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

# An id that the database gives, never given twice (SQLite needs its own word for that: tables.py).
Serial = BigInteger().with_variant(Integer, "sqlite")


class Moment(TypeDecorator[datetime]):
    """A point in time, UTC, to the microsecond. A naive datetime is a mistake and refused."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a datetime without time zone cannot be stored: {value!r}")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Words(TypeDecorator[str]):
    """Text of any origin. What one database takes and the other refuses (NUL, half surrogate pairs
    out of a program's log) becomes U+FFFD, in stored values as in those that are looked for.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, _dialect: Dialect) -> str | None:
        if value is None:
            return None
        return clean(value)


class Json(TypeDecorator[Any]):
    """Plain JSON data, stored as text: the same bytes on both databases, keys in order."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any | None, _dialect: Dialect) -> str | None:
        if value is None:
            return None
        return dump(value)

    def process_result_value(self, value: str | None, _dialect: Dialect) -> Any | None:
        return None if value is None else load(value)


def clean(text: str) -> str:
    if text.isascii() and "\0" not in text:
        return text
    whole = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    try:
        whole.encode()
    except UnicodeEncodeError:
        return "".join(
            "\N{REPLACEMENT CHARACTER}" if "\ud800" <= c <= "\udfff" else c for c in whole
        )
    return whole


def dump(data: Any) -> str:
    """The one spelling of JSON data: equal data, equal text."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def load(text: str) -> Any:
    return json.loads(text)
