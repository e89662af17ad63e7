"""Change notices to listeners in this process (pages, SSE). Bounded: a slow listener loses its backlog
and is told to read everything again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

MOST_WAITING = 256  # notices a listener may leave unread
MOST_KEPT = 1024  # notices kept for listeners that come back


@dataclass(frozen=True, slots=True)
class Notice:
    """One change worth a fresh look. kind: workload | queue | gpus | cluster | reset. id rises within
    one process; subject: a workload's id or a cluster's name.
    """

    id: int
    kind: str
    subject: str = ""


class Subscription:
    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: deque[Notice] = deque()
        self._news = asyncio.Event()
        self.closed = False

    async def next(self, timeout: float) -> Notice | None:  # noqa: ASYNC109 - part of the face
        """The next change; None when `timeout` seconds passed without one, or the feed has ended."""
        if not self._waiting and not self.closed:
            self._news.clear()
            try:
                async with asyncio.timeout(timeout):
                    await self._news.wait()
            except TimeoutError:
                return None
        return self._waiting.popleft() if self._waiting else None

    def offer(self, notice: Notice) -> None:
        if self._waiting and self._waiting[-1].kind == "reset":
            self._waiting[-1] = Notice(notice.id, "reset")
        elif len(self._waiting) >= self._most:
            self._waiting.clear()
            self._waiting.append(Notice(notice.id, "reset"))
        else:
            self._waiting.append(notice)
        self._news.set()

    def close(self) -> None:
        self.closed = True
        self._news.set()


class Feed:
    """publish() is for this room; anyone may subscribe()."""

    def __init__(self, most: int = MOST_WAITING, kept: int = MOST_KEPT) -> None:
        self._most = most
        self._kept: deque[Notice] = deque(maxlen=kept)
        self._last = 0
        self._listeners: set[Subscription] = set()
        self.closed = False

    def publish(self, kind: str, subject: str = "") -> None:
        """Never blocks, never fails."""
        self._last += 1
        notice = Notice(self._last, kind, subject)
        self._kept.append(notice)
        for listener in self._listeners:
            listener.offer(notice)

    def since(self, after: int) -> tuple[Notice, ...] | None:
        """What came after notice `after`; None when that is too long ago to know."""
        if after > self._last:
            return None
        oldest = self._kept[0].id if self._kept else self._last + 1
        if after < oldest - 1:
            return None
        return tuple(notice for notice in self._kept if notice.id > after)

    def close(self) -> None:
        """Listeners get what they have waiting, then nothing."""
        self.closed = True
        for listener in self._listeners:
            listener.close()

    @asynccontextmanager
    async def subscribe(self, after: int | None = None) -> AsyncIterator[Subscription]:
        """after: the last notice the listener knows; what it missed comes first, or a `reset`."""
        listener = Subscription(self._most)
        if after is not None:
            missed = self.since(after)
            for notice in (Notice(self._last, "reset"),) if missed is None else missed:
                listener.offer(notice)
        if self.closed:
            listener.close()
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
