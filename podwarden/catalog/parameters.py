"""What a template can be told with `--set NAME=VALUE`: kinds of parameters and the check of a value."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from podwarden.domain.check import MOST_LINE, text_fault
from podwarden.domain.sections import OBJECT, OBJECT_FIX, array_fault
from podwarden.domain.units import parse_cpu, parse_duration, parse_size, parse_vram

Value = str | int | bool

KINDS = (
    "string", "int", "size", "vram", "cpu", "duration", "choice", "range", "secret", "bool",
    "storage", "file",
)  # fmt: skip
PARTS = ("storage", "path")  # `${scene.storage}`, `${scene.path}` of a `storage` or a `file`
_WHOLE = re.compile(r"-?\d{1,12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One setting of a template.

    default: as it would be typed; "" with `required` must be given, "" without is left out of the
    workload. choices: for kind `choice`. low, high: bounds of an `int`, inclusive. example: a value that
    works, for people and for the trial of the template. generate: for kind `secret`, left out means a
    new random one (see `Template.generated`).
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
    generate: bool = False

    @property
    def placed(self) -> bool:
        """Its value names a place in a storage, and has the parts of one."""
        return self.kind in ("storage", "file")

    def secret_name(self, workload: str) -> str:
        """The stored secret that stands for a generated one: one of its own for each workload."""
        return f"{workload}-{self.name.replace('_', '-')}"

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
            "storage": "sample:folder",
            "file": "sample:folder/file",
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


def parts_of(parameter: Parameter, value: Value) -> dict[str, Value]:
    """`renders:shot7/a.blend` for scene -> {scene.storage: renders, scene.path: shot7/a.blend}."""
    if not parameter.placed:
        return {}
    text = str(value)
    storage, colon, path = text.partition(":")
    if not colon:
        storage, path = (text, "") if parameter.kind == "storage" else ("", text)
    return {f"{parameter.name}.storage": storage, f"{parameter.name}.path": path.strip("/")}


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


def _storage(text: str) -> None:
    name, colon, path = text.partition(":")
    if not _names_storage(name) or (colon and not _inside(path.strip("/"))):
        raise ValueError(
            "a storage such as media, or a folder in it such as media:films, without .."
        )


def _file(text: str) -> None:
    name, colon, path = text.partition(":")
    if not _inside(path if colon else name) or (colon and not _names_storage(name)):
        raise ValueError("a file in a storage such as renders:shot7/scene.blend, without ..")


def _names_storage(text: str) -> bool:
    return len(text) <= 63 and OBJECT.fullmatch(text) is not None


def _inside(path: str) -> bool:
    """A path that cannot lead out of the folder it is seen from."""
    plain = not text_fault(path, lines=False, most=MOST_LINE)
    return plain and all(part not in ("", ".", "..") for part in path.split("/"))


_CHECKS: dict[str, Callable[[str], object]] = {
    "string": _string,
    "size": parse_size,
    "vram": parse_vram,
    "cpu": parse_cpu,
    "duration": parse_duration,
    "range": _range,
    "secret": _secret,
    "storage": _storage,
    "file": _file,
}
