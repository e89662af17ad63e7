"""What a template can be told with `--set NAME=VALUE`: kinds of parameters and the check of a value."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from podwarden.domain.check import MOST_LINE, text_fault
from podwarden.domain.sections import OBJECT, OBJECT_FIX, array_fault
from podwarden.domain.units import parse_cpu, parse_duration, parse_size, parse_vram

Value = str | int | bool

KINDS = ("string", "int", "size", "vram", "cpu", "duration", "choice", "range", "secret", "bool")
_WHOLE = re.compile(r"-?\d{1,12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One setting of a template.

    default: as it would be typed; "" with `required` must be given, "" without is left out of the
    workload. choices: for kind `choice`. low, high: bounds of an `int`, inclusive. example: a value that
    works, for people and for the trial of the template.
    """

    name: str
    kind: str = "string"
    title: str = ""
    default: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = 10**9
    help: str = ""
    example: str = ""

    def sample(self) -> str:
        """A value of the right kind, to try a template with every parameter set."""
        if self.default or self.example:
            return self.default or self.example
        plain = {
            "int": str(self.low),
            "choice": self.choices[0] if self.choices else "",
            "size": "1Gi",
            "vram": "8GB",
            "cpu": "1",
            "duration": "1h",
            "range": "1-2",
            "bool": "true",
        }
        return plain.get(self.kind, "sample")


def value_of(parameter: Parameter, text: str) -> Value:
    """The typed text as a value; ValueError with what would be accepted."""
    if text == "":
        if parameter.required:
            raise ValueError(_missing(parameter))
        return ""
    check = _CHECKS.get(parameter.kind)
    if check is not None:
        check(text)
        return text
    if parameter.kind == "int":
        return _whole(parameter, text)
    if parameter.kind == "bool":
        if text not in ("true", "false"):
            raise ValueError("true or false")
        return text == "true"
    if text not in parameter.choices:
        raise ValueError("one of " + ", ".join(parameter.choices))
    return text


def _missing(parameter: Parameter) -> str:
    says = parameter.help or parameter.title
    return "is missing" + (f": {says[0].lower()}{says[1:].rstrip('.')}" if says else "")


def _whole(parameter: Parameter, text: str) -> int:
    if not _WHOLE.fullmatch(text) or not parameter.low <= int(text) <= parameter.high:
        raise ValueError(f"a whole number from {parameter.low:,} to {parameter.high:,}")
    return int(text)


def _string(text: str) -> None:
    fault = text_fault(text, lines=False, most=MOST_LINE)
    if fault:
        raise ValueError(fault)


def _range(text: str) -> None:
    fault = array_fault(text)
    if fault:
        raise ValueError(fault)


def _secret(text: str) -> None:
    if len(text) > 63 or not OBJECT.fullmatch(text):
        raise ValueError("the name of a stored secret: " + OBJECT_FIX)


_CHECKS: dict[str, Callable[[str], object]] = {
    "string": _string,
    "size": parse_size,
    "vram": parse_vram,
    "cpu": parse_cpu,
    "duration": parse_duration,
    "range": _range,
    "secret": _secret,
}
