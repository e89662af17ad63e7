"""The one seam to time: loops ask a clock, tests bring their own."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Wall time, UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back; they go on while the process is stopped."""

    async def wait(self, event: asyncio.Event, seconds: float | None) -> bool:
        """True when the event is set within `seconds` (None: for ever), else False."""


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    async def wait(self, event: asyncio.Event, seconds: float | None) -> bool:
        if event.is_set():
            return True
        if seconds is not None and seconds <= 0:
            return False
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return False
        return True
