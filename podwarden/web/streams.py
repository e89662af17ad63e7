"""Long answers (changes, logs): counted, bounded for each user, ended when PodWarden stops."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, TypeVar

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from podwarden.web.problems import TooMany

T = TypeVar("T")


_END: Any = object()


class Streams:
    """most: open at once; most_each: of one user."""

    def __init__(self, most: int, most_each: int) -> None:
        self._most = most
        self._most_each = most_each
        self._open: Counter[str] = Counter()
        self._closing = asyncio.Event()

    @property
    def open(self) -> int:
        return self._open.total()

    def close(self) -> None:
        """End every stream now; the server waits for them."""
        self._closing.set()

    def take(self, user: str) -> Callable[[], None]:
        """Counts one more; gives what releases it. TooMany when this user, or everybody together, has
        too many open.
        """
        if self._open[user] >= self._most_each or self.open >= self._most:
            raise TooMany(
                f"{self._open[user]} live connections of {user} are open, {self.open} in all: no more "
                "are possible. Close another page or command.",
                after=5,
            )
        self._open[user] += 1
        left = [user]

        def release() -> None:
            while left:
                self._open[left.pop()] -= 1
                self._open += Counter()  # forgets the zeros

        return release

    async def paced(self, source: AsyncIterator[T], every: float) -> AsyncIterator[T | None]:
        """The items of `source`, and None whenever `every` seconds passed without one. Ends with the
        source, or as soon as PodWarden stops. The source is closed at the end.
        """
        closing = asyncio.ensure_future(self._closing.wait())
        pending: asyncio.Future[T] | None = None
        try:
            while True:
                if pending is None:
                    pending = asyncio.ensure_future(anext(source, _END))
                waiting: set[asyncio.Future[Any]] = {pending, closing}
                done, _ = await asyncio.wait(
                    waiting, timeout=every, return_when=asyncio.FIRST_COMPLETED
                )
                if closing in done:
                    return
                if pending not in done:
                    yield None
                    continue
                item = pending.result()
                pending = None
                if item is _END:
                    return
                yield item
        finally:
            left = [each for each in (pending, closing) if each is not None]
            for each in left:
                each.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            if isinstance(source, AsyncGenerator):
                await source.aclose()


class Stream(StreamingResponse):
    """An answer without an end. Its place is given back however it ends, started or not."""

    def __init__(
        self, content: AsyncIterator[str], *, media_type: str, release: Callable[[], None]
    ) -> None:
        super().__init__(content, media_type=media_type, headers={"X-Accel-Buffering": "no"})
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._release()
