"""The error tree. Each class is one thing a caller can decide on.

PodWardenError
├── Refused            the request was understood and will not be done (exit code 1, HTTP 4xx)
│   ├── Invalid        a field has a value it cannot have: field, value, fix (HTTP 422)
│   ├── NotFound       the thing named does not exist (HTTP 404)
│   ├── Conflict       a name taken, a state that forbids it, an outdated version (HTTP 409)
│   ├── Forbidden      known, but not allowed to (HTTP 403)
│   └── Unauthenticated  who are you (HTTP 401)
├── Unavailable        something PodWarden needs does not answer now (exit code 3, HTTP 503)
├── FenceLost          another PodWarden leads; this one must stop acting
└── SetupFailed        a start that cannot go on: what, and what to do about it

Messages are whole sentences for the person who reads them; `code` is the stable machine name.
"""

from __future__ import annotations

from dataclasses import dataclass


class PodWardenError(Exception):
    code = "ERROR"

    @property
    def message(self) -> str:
        return str(self)


class Refused(PodWardenError):
    code = "REFUSED"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault in an input. `field` is a dotted path (`gpu.vram`, `ports[0].port`);
    `value` is what was given, shortened; `fix` says what would be accepted; `line` (1-based) where
    the input was a file.
    """

    field: str
    value: str
    fix: str
    line: int | None = None

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line is not None else ""
        value = f" {self.value}" if self.value else ""
        return f"{where}{self.field}{value}: {self.fix}"


class Invalid(Refused):
    """Bad input; `problems` lists every fault found, in the order of the input."""

    code = "INVALID"

    def __init__(self, problems: list[Problem], *, source: str = "") -> None:
        self.problems = problems
        self.source = source
        text = "; ".join(str(problem) for problem in problems)
        super().__init__(f"{source}: {text}" if source else text)

    @classmethod
    def of(cls, field_: str, value: object, fix: str) -> Invalid:
        return cls([Problem(field_, shorten(value), fix)])


class NotFound(Refused):
    code = "NOT_FOUND"


class Conflict(Refused):
    code = "CONFLICT"


class Forbidden(Refused):
    code = "FORBIDDEN"


class Unauthenticated(Refused):
    code = "UNAUTHENTICATED"


class Unavailable(PodWardenError):
    code = "UNAVAILABLE"


class FenceLost(PodWardenError):
    code = "FENCE_LOST"


class SetupFailed(PodWardenError):
    code = "SETUP_FAILED"


def shorten(value: object, most: int = 60) -> str:
    """A value as it may stand in a message: one line, printable, at most `most` characters."""
    text = value if isinstance(value, str) else repr(value)
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text if len(text) <= most else text[: most - 1] + "…"
