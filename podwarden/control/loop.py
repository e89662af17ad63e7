"""The one runner of every loop: turn after turn, woken by hints, backing off after errors.

A turn returns what it did in one sentence ("" = nothing happened) and when it wants to run again without
a hint. The only broad `except` of this room is here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from podwarden.control.clock import Clock
from podwarden.errors import FenceLost, PodWardenError, Unavailable

log = logging.getLogger("podwarden.control")

FIRST_BACK_OFF, LAST_BACK_OFF = 0.2, 15.0  # seconds


@dataclass(frozen=True, slots=True)
class Turn:
    """said: one sentence, "" when nothing happened. again: seconds until the next turn without a hint."""

    said: str = ""
    again: float | None = None


class Loop:
    """One loop. `pace`: the share of the time a turn may take (0.5 = rest as long as it worked, at most
    `longest_rest` seconds); a hint during the rest is kept. 1.0 = never rest.
    """

    def __init__(
        self,
        name: str,
        turn: Callable[[], Awaitable[Turn]],
        clock: Clock,
        *,
        pace: float = 1.0,
        longest_rest: float = 0.5,
    ) -> None:
        self.name = name
        self.trouble = ""  # the last error, "" after a good turn
        self.said = ""  # what the last turn that did something said
        self._turn = turn
        self._clock = clock
        self._rest_factor = (1 - pace) / pace
        self._longest_rest = longest_rest
        self._hint = asyncio.Event()
        self._never = asyncio.Event()

    def hint(self) -> None:
        self._hint.set()

    async def run(self) -> None:
        """Until cancelled. Raises FenceLost: whoever runs the loops must stop them all."""
        back_off = FIRST_BACK_OFF
        while True:
            self._hint.clear()
            began = self._clock.monotonic()
            try:
                done = await self._turn()
            except FenceLost:
                raise
            except Exception as error:  # noqa: BLE001 - the outer edge of a loop
                self._complain(error)
                await self._clock.wait(self._never, back_off)
                back_off = min(back_off * 2, LAST_BACK_OFF)
                continue
            self.trouble = ""
            back_off = FIRST_BACK_OFF
            if done.said:
                self.said = done.said
                log.info("%s: %s", self.name, done.said)
            worked = self._clock.monotonic() - began
            rest = min(worked * self._rest_factor, self._longest_rest)
            if rest > 0.005:
                await self._clock.wait(self._never, rest)
            await self._clock.wait(self._hint, done.again)

    def _complain(self, error: Exception) -> None:
        said = str(error) or type(error).__name__
        if said != self.trouble:
            expected = isinstance(error, Unavailable)
            log.warning("%s: %s", self.name, said, exc_info=None if expected else error)
        self.trouble = said


async def guarded(name: str, work: Awaitable[None]) -> Exception | None:
    """One piece of background work: its error as a value, told to the log. FenceLost goes through."""
    try:
        await work
    except FenceLost:
        raise
    except Exception as error:
        expected = isinstance(error, PodWardenError)
        log.warning("%s: %s", name, error, exc_info=None if expected else error)
        return error
    return None
