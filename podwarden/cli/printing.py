"""What goes to the terminal: tables, JSON, and text from elsewhere that must not drive the terminal."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

# Change the direction of the text around them, or hide in it.
_TRICKY = frozenset("\u061c\u200b\u200e\u200f\u2028\u2029\ufeff") | {
    chr(c) for c in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
}


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"


Output = Annotated[
    Format, typer.Option("-o", "--output", help="text for people, json for programs.")
]


def safe(text: str, *, tabs: bool = False) -> str:
    """Text with control characters made visible (as an escape), so that it cannot drive the terminal."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(c, tabs=tabs) for c in text)


def _visible(char: str, *, tabs: bool) -> str:
    if char == "\t" and tabs:
        return char
    if char in _TRICKY or unicodedata.category(char) in ("Cc", "Cs"):
        return char.encode("unicode_escape", "surrogatepass").decode("ascii")
    return char


def say(text: str) -> None:
    """A line of the answer; lines inside stay lines."""
    print("\n".join(safe(line) for line in text.split("\n")))


def hint(text: str) -> None:
    """A line beside the answer: progress, next steps, errors."""
    print("\n".join(safe(line) for line in text.split("\n")), file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """ASCII only, so that nothing in it drives the terminal."""
    print(json.dumps(value, indent=2, ensure_ascii=True))


def log_line(line: str) -> None:
    """A line of somebody's log: as it is into a file or a pipe, made harmless on a terminal."""
    print(safe(line, tabs=True) if sys.stdout.isatty() else line, flush=True)


def width(text: str) -> int:
    """Columns on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Left-aligned columns two blanks apart; sizes stand with their whole parts under each other."""
    columns = [_aligned([safe(row[place]) for row in rows]) for place in range(len(heads))]
    widths = [
        max([width(head), *(width(cell) for cell in column)])
        for head, column in zip(heads, columns, strict=True)
    ]
    lines = [heads, *zip(*columns, strict=True)] if rows else [heads]
    return "\n".join(
        "  ".join(
            cell + " " * (widest - width(cell)) for cell, widest in zip(line, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def _aligned(cells: list[str]) -> list[str]:
    """`8.0 GiB` below `24.0 GiB` gets a blank in front. Columns of other things stay as they are."""
    if not any(cell.endswith(" GiB") for cell in cells):
        return cells
    wholes = [len(cell) - len(cell.lstrip("0123456789")) for cell in cells]
    return [
        " " * (max(wholes) - whole) + cell if whole else cell
        for cell, whole in zip(cells, wholes, strict=True)
    ]


def print_json_error(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=True), file=sys.stderr)
