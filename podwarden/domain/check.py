"""Reading untrusted mappings: every fault is collected, nothing is guessed, hostile input stays cheap.

A `Section` reads one mapping whose keys are known. Each reader returns a usable value in any case and
notes a `Problem` where the input was wrong, so that one pass finds every fault. A key that is absent or
null counts as left out.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from podwarden.errors import Problem, shorten

T = TypeVar("T")

MOST_PROBLEMS = 50  # a hostile file must not make a hostile answer
MOST_LINE = 1024  # characters of a one-line text


def join(path: str, key: str | int) -> str:
    """`gpu` + `vram` -> `gpu.vram`; `ports` + 0 -> `ports[0]`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    word = shorten(key, 40)
    return f"{path}.{word}" if path else word


def show(value: object) -> str:
    """A value as a message may quote it. Containers are named, never printed: they may be deep or huge."""
    if isinstance(value, (Mapping, list, tuple)):
        return "a section" if isinstance(value, Mapping) else "a list"
    if value is None:
        return "null"
    if isinstance(value, float):
        return repr(value)  # nan and inf too
    text = as_text(value)
    if text is None:
        return "a very large number" if isinstance(value, int) else "something that is no text"
    return shorten(text[:200]) or '""'


def nearest(word: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Known words that look like `word`, best first."""
    return difflib.get_close_matches(word[:64].lower().replace("-", "_"), list(known), most, 0.6)


def as_text(value: object) -> str | None:
    """A scalar as text, `true` and `false` in lower case; None when it is no scalar."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value.bit_length() <= 128 else None
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else None
    return None


def text_fault(text: str, *, lines: bool, most: int) -> str:
    """What is wrong with the characters of a text, or ""."""
    if len(text) > most or len(text.encode("utf-8", "surrogatepass")) > most:
        return f"at most {most:,} bytes"
    if "\0" in text:
        return "text without NUL characters"
    if any("\ud800" <= c <= "\udfff" for c in text):
        return "text in valid Unicode, without lone surrogates"
    if not lines and not text.isprintable():
        return "one line of text without control or invisible characters"
    return ""


class Problems:
    """Every fault found so far, at most `MOST_PROBLEMS` of them."""

    def __init__(self) -> None:
        self.found: list[Problem] = []
        self._fields: set[str] = set()

    def add(self, field: str, value: str, fix: str) -> None:
        self._fields.add(field)
        if not self.full:
            self.found.append(Problem(field, value, fix))

    def has(self, field: str) -> bool:
        return field in self._fields

    @property
    def full(self) -> bool:
        return len(self.found) >= MOST_PROBLEMS


class Section:
    """One mapping with known keys at `path` ("" = the file itself).

    elsewhere: where else a key is known (`vram` -> `gpu.vram`), to say so when it stands in the wrong place.
    """

    def __init__(
        self,
        problems: Problems,
        data: Mapping[Any, Any],
        path: str,
        keys: Sequence[str],
        elsewhere: Mapping[str, str] | None = None,
    ) -> None:
        self.problems = problems
        self.data = data
        self.path = path
        for key in data:
            if problems.full:  # looking for the nearest key is work: not for thousands of them
                break
            if not isinstance(key, str):
                self.problems.add(join(path, show(key)), "", "a key must be a word: quote it")
            elif key not in keys:
                self.problems.add(join(path, key), "", _unknown(key, keys, elsewhere or {}))

    def has(self, key: str) -> bool:
        return self.data.get(key) is not None

    def good(self, key: str) -> bool:
        """Given, and without a fault so far."""
        return self.has(key) and not self.problems.has(join(self.path, key))

    def refuse(self, key: str, fix: str) -> None:
        value = self.data.get(key)
        shown = "" if value is None or isinstance(value, (Mapping, list, tuple)) else show(value)
        self.problems.add(join(self.path, key), shown, fix)

    def text(
        self, key: str, default: str = "", *, lines: bool = False, most: int = MOST_LINE
    ) -> str:
        """A text; numbers and booleans are taken as they are written."""
        value = self.data.get(key)
        if value is None:
            return default
        text = as_text(value)
        if text is None:
            self.refuse(key, "a text")
            return default
        fault = text_fault(text, lines=lines, most=most)
        if fault:
            self.refuse(key, fault)
            return default
        return text

    def match(self, key: str, pattern: re.Pattern[str], fix: str, *, most: int = MOST_LINE) -> str:
        """A text of the given form; "" where it was left out (or empty)."""
        text = self.text(key, most=most)
        if text and not pattern.fullmatch(text):
            self.refuse(key, fix)
            return ""
        return text

    def choice(self, key: str, choices: Mapping[str, T], default: T) -> T:
        text = self.text(key)
        if not text:
            return default
        if text not in choices:
            self.refuse(key, "one of " + ", ".join(choices))
            return default
        return choices[text]

    def whole(self, key: str, low: int, high: int, default: int, fix: str = "") -> int:
        value = self.data.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.refuse(key, fix or f"a whole number from {low:,} to {high:,}")
            return default
        return value

    def flag(self, key: str) -> bool:
        value = self.data.get(key)
        if value is None:
            return False
        word = (as_text(value) or "").lower()  # `True` is a text to a reader that changes nothing
        if word not in ("true", "false"):
            self.refuse(key, "true or false")
        return word == "true"

    def parsed(self, key: str, parser: Callable[[Any], int]) -> int | None:
        """A size, a CPU count or a duration, by one of the parsers in `units`."""
        value = self.data.get(key)
        if value is None or value == "":
            return None
        try:
            return parser(value if as_text(value) is not None else "no scalar")
        except ValueError as error:
            self.refuse(key, str(error))
            return None

    def section(
        self, key: str, keys: Sequence[str], elsewhere: Mapping[str, str] | None = None
    ) -> Section | None:
        value = self.data.get(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.problems.add(
                join(self.path, key), show(value), "a section with keys: " + ", ".join(keys)
            )
            return None
        return Section(self.problems, value, join(self.path, key), keys, elsewhere)

    def items(self, key: str, most: int) -> list[Any]:
        """A list of at most `most` entries."""
        value = self.data.get(key)
        if value is None:
            return []
        if not isinstance(value, (list, tuple)):
            self.problems.add(join(self.path, key), show(value), "a list, written as [one, two]")
            return []
        if len(value) > most:
            self.problems.add(join(self.path, key), f"{len(value):,} entries", f"at most {most}")
            return []
        return list(value)

    def sections(self, key: str, keys: Sequence[str], most: int) -> list[Section]:
        found = []
        for place, value in enumerate(self.items(key, most)):
            path = join(join(self.path, key), place)
            if isinstance(value, Mapping):
                found.append(Section(self.problems, value, path, keys))
            else:
                self.problems.add(path, show(value), "a section with keys: " + ", ".join(keys))
        return found

    def texts(
        self, key: str, most: int, *, lines: bool = False, longest: int = MOST_LINE
    ) -> list[str]:
        """A list of texts."""
        entries = self.items(key, most)
        row = Section(self.problems, {}, join(self.path, key), ())
        found = []
        for place, value in enumerate(entries):
            text = as_text(value)
            path = join(row.path, place)
            fault = "a text" if text is None else text_fault(text, lines=lines, most=longest)
            if text is None or fault:
                self.problems.add(path, show(value), fault)
            else:
                found.append(text)
        return found

    def names(self, key: str, most: int, pattern: re.Pattern[str], fix: str) -> tuple[str, ...]:
        """A list of different texts of one form."""
        found: list[str] = []
        for place, text in enumerate(self.texts(key, most)):
            path = join(join(self.path, key), place)
            if not pattern.fullmatch(text):
                self.problems.add(path, show(text), fix)
            elif text in found:
                self.problems.add(path, show(text), "named twice: keep one")
            else:
                found.append(text)
        return tuple(found)

    def pairs(
        self, key: str, pattern: re.Pattern[str], fix: str, *, lines: bool, most: int, longest: int
    ) -> list[tuple[str, str]]:
        """A section of free names, in order of their names."""
        value = self.data.get(key)
        if value is None:
            return []
        path = join(self.path, key)
        if not isinstance(value, Mapping):
            self.problems.add(path, show(value), "a section such as {NAME: value}")
            return []
        if len(value) > most:
            self.problems.add(path, f"{len(value):,} entries", f"at most {most:,}")
            return []
        found = []
        for name, given in value.items():
            text = "" if given is None else as_text(given)
            if not isinstance(name, str) or not pattern.fullmatch(name):
                self.problems.add(join(path, show(name)), "", fix)
                continue
            fault = "a text" if text is None else text_fault(text, lines=lines, most=longest)
            if text is None or fault:
                self.problems.add(join(path, name), "", fault)  # it may be a password
            else:
                found.append((name, text))
        return sorted(found)


def _unknown(key: str, keys: Sequence[str], elsewhere: Mapping[str, str]) -> str:
    word = key[:64].lower().replace("-", "_")
    if word in elsewhere:
        return f"no such key here: write {elsewhere[word]}"
    close = nearest(word, [*keys, *elsewhere], 1)
    if close:
        return f"no such key: did you mean {elsewhere.get(close[0], close[0])}?"
    return "no such key; known are " + ", ".join(keys)
