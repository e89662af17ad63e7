"""How a command ends when it does not end well: a sentence on stderr and an exit code."""

from __future__ import annotations

from typing import Any

REFUSED = 1
USAGE = 2
NOT_REACHABLE = 3


class Failure(Exception):
    """code: the exit code. details: the problem as the API gave it, printed as it is with `-o json`."""

    def __init__(
        self, message: str, code: int = REFUSED, *, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.details = details


class Gone(Failure):
    """What was asked for does not exist (any more)."""
