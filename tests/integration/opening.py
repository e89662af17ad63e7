"""What tests of the store pass around: a way to open one more store, and a clock that they turn."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from podwarden.store import Store

Opener = Callable[[], Store]


class HandClock:
    """Wall time that moves only when told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **span: float) -> None:
        self.now += timedelta(**span)
