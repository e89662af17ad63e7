"""Waiting for what must become true, with an end to the wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(condition: Callable[[], T], what: str, seconds: float = 15.0) -> T:
    """The first truthy result of `condition`; fails, naming `what` and the last result, after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}; last seen: {result!r}"
        time.sleep(0.05)


def holds(condition: Callable[[], T], what: str, seconds: float) -> None:
    """Fails as soon as `condition` is not truthy any more within `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        result = condition()
        assert result, f"no longer true: {what}; seen: {result!r}"
        time.sleep(0.1)


def none_left(look: Callable[[], list[T]], what: str, seconds: float) -> None:
    """Until `look` finds nothing; fails, naming what is left, after `seconds`."""
    deadline = time.monotonic() + seconds
    while left := look():
        assert time.monotonic() < deadline, f"still there after {seconds} s: {what}: {left}"
        time.sleep(0.1)
