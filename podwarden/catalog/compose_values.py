"""Single values of a Compose file: `${…}` filled in, variables, files of variables, sizes and times."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from typing import Any

from podwarden.catalog.compose_remarks import Place, Remarks
from podwarden.domain.check import as_text
from podwarden.errors import Invalid

_HOLE = re.compile(
    r"\$(?:(?P<dollar>\$)"
    r"|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:(?P<how>:?[-?+])(?P<rest>(?:[^{}]|\$\{[^{}]*\})*))?\}"
    r"|(?P<plain>[A-Za-z_][A-Za-z0-9_]*)"
    r"|)"
)
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,3})?)\s*([bkmgt]?)i?b?", re.ASCII | re.IGNORECASE)
_POWERS = {"": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_TIME = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(us|ms|s|m|h)", re.ASCII)
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def filled(place: Place, variables: Mapping[str, str]) -> Any:
    """The value with every `${VAR}` in it filled in; keys stay as they are.

    A variable without a value and without a default is a fault: Compose would go on with nothing.
    """
    value = place.value
    if isinstance(value, str):
        return interpolate(place, value, variables)
    if isinstance(value, list):
        return [filled(entry, variables) for entry in place.entries()]
    if isinstance(value, dict):
        return {key: filled(place.entry(key, entry), variables) for key, entry in value.items()}
    return value


def interpolate(place: Place, text: str, variables: Mapping[str, str]) -> str:
    """`${A}`, `${A:-default}`, `${A-default}`, `${A:?why}`, `${A?why}`, `${A:+other}`, `${A+other}`, `$A`, `$$`."""

    def one(found: re.Match[str]) -> str:
        if found["dollar"]:
            return "$"
        name = found["name"] or found["plain"]
        if name is None:
            place.fault("write $$ for a dollar sign, ${NAME} for a variable", found[0])
            return ""
        return _value(place, name, found["how"] or "", found["rest"] or "", variables)

    return _HOLE.sub(one, text) if "$" in text else text


def _value(place: Place, name: str, how: str, rest: str, variables: Mapping[str, str]) -> str:
    given = variables.get(name)
    missing = given is None or (how.startswith(":") and given == "")
    if how.endswith("+"):
        return "" if missing else interpolate(place, rest, variables)
    if not missing:
        return given or ""
    if how.endswith("-"):
        return interpolate(place, rest, variables)
    why = f" ({rest})" if rest else ""
    place.fault(f"has no value{why}: put {name}=… into the file .env beside it", f"${{{name}}}")
    return ""


def variables_of(place: Place, variables: Mapping[str, str]) -> dict[str, str]:
    """`environment`: a list of NAME=VALUE, or a section."""
    found: dict[str, str] = {}
    if isinstance(place.value, dict):
        pairs = [(entry, entry.key) for entry in place.items()]
    else:
        pairs = [(entry, "") for entry in place.entries()]
    for entry, key in pairs:
        text: str | None
        if key:
            name, text = key, None if entry.value is None else as_text(entry.value)
            wrong = entry.value is not None and text is None
        else:
            line = as_text(entry.value)
            name, equals, rest = (line or "").partition("=")
            text, wrong = (rest if equals else None), line is None
        if wrong or not name:
            entry.fault("a variable such as NAME=value", "")
        elif text is not None:
            found[name] = text
        elif name in variables:
            found[name] = variables[name]
        else:
            entry.leave_out("has no value here; Compose would take it from your shell", name)
    return found


def read_env_file(place: Place, text: str, variables: Mapping[str, str]) -> dict[str, str]:
    """A file of NAME=VALUE lines with comments, quotes and `${…}`, as Compose reads it."""
    found: dict[str, str] = {}
    for number, row in enumerate(text.splitlines(), 1):
        line = row.strip().removeprefix("export ").strip()
        if not line or line.startswith("#"):
            continue
        name, equals, rest = line.partition("=")
        name = name.strip()
        if not _VARIABLE.fullmatch(name):
            place.fault(f"line {number} of that file is no NAME=value", "")
        elif equals:
            found[name] = _env_value(place, rest.strip(), {**variables, **found})
        elif name in variables:
            found[name] = variables[name]
    return found


def read_dotenv(text: str) -> dict[str, str]:
    """The file `.env` beside a Compose file. Invalid names its lines."""
    remarks = Remarks()
    found = read_env_file(Place(".env", "", remarks), text, {})
    if remarks.faults:
        raise Invalid(remarks.faults, source=".env")
    return found


def _env_value(place: Place, text: str, variables: Mapping[str, str]) -> str:
    if text.startswith("'"):
        return text[1:].partition("'")[0]
    if text.startswith('"'):
        body = re.match(r'"((?:[^"\\]|\\.)*)', text)
        inside = body[1] if body else ""
        plain = re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), inside)
        return interpolate(place, plain, variables)
    return interpolate(place, re.split(r"\s#", text, maxsplit=1)[0].strip(), variables)


def words(place: Place) -> list[str]:
    """A command: a list as it is, a text cut as a shell would cut it."""
    if isinstance(place.value, list):
        found = [as_text(entry.value) for entry in place.entries()]
        if None in found:
            place.fault("a list of texts")
        return [text for text in found if text is not None]
    text = as_text(place.value)
    if text is None:
        place.fault("a command, as a text or a list")
        return []
    try:
        return shlex.split(text)
    except ValueError:
        place.fault("a command whose quotes are closed")
        return []


def size(place: Place) -> str:
    """`512mb`, `1.5g`, bytes as a number -> `512Mi`; "" after a fault."""
    text = as_text(place.value)
    found = _SIZE.fullmatch(text.strip()) if text is not None else None
    if not found:
        place.fault("a size such as 512mb or 2g")
        return ""
    mib = float(found[1]) * 1024 ** _POWERS[found[2].lower()] / (1 << 20)
    return f"{max(math.ceil(mib), 1)}Mi"


def seconds(place: Place) -> int:
    """`1m30s`, `500ms` -> whole seconds, at least 1; 0 after a fault."""
    text = as_text(place.value) or ""
    parts = _TIME.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        place.fault("a time such as 30s or 1m30s")
        return 0
    return max(math.ceil(sum(float(number) * _SECONDS[unit] for number, unit in parts)), 1)


def whole(place: Place) -> int | None:
    """A whole number, also where `${…}` made it a text; None after a fault."""
    text = as_text(place.value)
    if text is None or not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        place.fault("a whole number")
        return None
    return int(text)


def flag(place: Place) -> bool:
    return (as_text(place.value) or "").lower() in ("true", "yes", "on", "1")


def child(place: Place, *keys: str) -> Place | None:
    """The value below, None where it or a section on the way is missing."""
    for key in keys:
        if not isinstance(place.value, dict) or place.value.get(key) is None:
            return None
        place = place.entry(key, place.value[key])
    return place
