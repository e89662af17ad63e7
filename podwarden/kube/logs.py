"""Lines of running copies, streamed from the API server, across reconnects and restarts.

Every line is asked for with its time stamp, so that a stream that broke goes on after the last line that was seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from datetime import datetime

from podwarden.errors import NotFound, PodWardenError, Refused, Unavailable
from podwarden.kube import kinds
from podwarden.kube.client import Client
from podwarden.kube.index import Index
from podwarden.kube.labels import NAMESPACE
from podwarden.kube.pods import PodFacts

MOST_LINE = 64 * 1024  # bytes; what is longer is cut, and says so
MOST_WAITING = 1000  # lines of all copies that nobody has taken yet
SILENCE = 600.0  # seconds without a line; then the stream is opened again
LAST_WORDS = 2.0  # seconds of silence after the program's end
CUT = "… (cut)"

Wait = Callable[[int, float], Awaitable[int]]


Queue = asyncio.Queue["str | PodWardenError | None"]


class _Seen:
    """What a reader has passed on, so that a repeated start of a stream is not. stamp: of the last line.

    count: of all that were new.
    """

    def __init__(self) -> None:
        self.stamp = ""
        self.count = 0
        self._same: set[str] = set()  # lines that carry exactly this stamp
        self._repeats = False

    def again(self) -> None:
        """The stream is opened anew: from `stamp` on, to the second."""
        self._repeats = True

    def is_new(self, stamp: str, line: str) -> bool:
        now, last = _padded(stamp), _padded(self.stamp)
        if self._repeats and stamp and (now < last or (now == last and line in self._same)):
            return False
        if now > last:
            self._repeats = False
            self.stamp = stamp
            self._same = set()
        self._same.add(line)
        self.count += 1
        return True


class Logs:
    """wait: Link.wait_change, to notice new copies."""

    def __init__(
        self, client: Client, index: Index, wait: Wait, *, sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        self._client = client
        self._index = index
        self._wait = wait
        self._sleep = sleep

    async def lines(
        self, workload: str, *, instance: str | None, follow: bool, tail: int | None
    ) -> AsyncGenerator[str, None]:
        pods = self._pods(workload, instance)
        if instance is not None and not pods:
            raise NotFound(f"There is no {instance} of this workload now.")
        if not follow:
            for pod in pods:
                async with aclosing(self._once(pod.name, tail)) as lines:
                    async for line in lines:
                        yield line if len(pods) == 1 else f"{pod.name} | {line}"
            return
        async with aclosing(self._followed(workload, instance, tail)) as lines:
            async for line in lines:
                yield line

    def _pods(self, workload: str, instance: str | None) -> list[PodFacts]:
        pods = [pod for pod in self._index.pods_of(workload) if instance in (None, pod.name)]
        return sorted(pods, key=lambda pod: (str(pod.created_at), pod.name))

    async def _once(self, name: str, tail: int | None) -> AsyncGenerator[str, None]:
        try:
            async with aclosing(self._stream(name, follow=False, tail=tail, since=None)) as lines:
                async for _, line in lines:
                    yield line
        except NotFound:
            return
        except Refused as error:
            if not _not_started(error):
                raise

    async def _followed(
        self, workload: str, instance: str | None, tail: int | None
    ) -> AsyncGenerator[str, None]:
        """Until every copy has ended (a service's never do), new ones included."""
        queue: Queue = asyncio.Queue(MOST_WAITING)
        reading = asyncio.create_task(self._supervise(workload, instance, tail, queue))
        try:
            while (item := await queue.get()) is not None:
                if isinstance(item, PodWardenError):
                    raise item
                yield item
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _supervise(
        self, workload: str, instance: str | None, tail: int | None, queue: Queue
    ) -> None:
        """One reader for each copy; ends the queue with None, or with what went wrong."""
        readers: dict[str, asyncio.Task[None]] = {}
        ending: dict[str, asyncio.Task[None]] = {}
        ends: dict[str, _Seen] = {}
        try:
            while True:
                revision = self._index.revision
                pods = self._pods(workload, instance)
                for pod in pods:
                    if pod.uid not in readers:
                        prefix = "" if instance is not None or len(pods) == 1 else f"{pod.name} | "
                        seen = _Seen()
                        reading = self._read(pod, tail, queue, prefix, seen)
                        readers[pod.uid] = asyncio.create_task(reading)
                        ends[pod.uid] = seen
                    if pod.ended and pod.uid not in ending:
                        last = _last_words(readers[pod.uid], ends[pod.uid], queue)
                        ending[pod.uid] = asyncio.create_task(last)
                running = [task for task in readers.values() if not task.done()]
                for task in readers.values():
                    if task.done() and not task.cancelled():
                        task.result()
                if not running and all(pod.ended for pod in pods):
                    break
                news = asyncio.ensure_future(self._wait(revision, 30.0))
                try:
                    await asyncio.wait({news, *running}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    news.cancel()
            await queue.put(None)
        except PodWardenError as error:
            await queue.put(error)
        finally:
            tasks = [*readers.values(), *ending.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(
        self, pod: PodFacts, tail: int | None, queue: Queue, prefix: str, seen: _Seen
    ) -> None:
        """One copy to its end: reconnects after the last line, waits while it has not started."""
        failures = 0
        while True:
            lines = self._stream(
                pod.name, follow=True, tail=None if seen.stamp else tail, since=seen.stamp or None
            )
            try:
                async with aclosing(lines):
                    async for stamp, line in lines:
                        if seen.is_new(stamp, line):
                            failures = 0
                            await queue.put(prefix + line)
            except NotFound:
                return
            except Refused as error:
                if not _not_started(error):
                    raise
            except Unavailable:
                pass
            now = self._index.pods.get((pod.namespace, pod.name))
            if now is None or now.uid != pod.uid or now.ended:
                return
            seen.again()
            await self._sleep(min(0.2 * 2.0**failures, 5.0))
            failures = min(failures + 1, 6)

    async def _stream(
        self, name: str, *, follow: bool, tail: int | None, since: str | None
    ) -> AsyncGenerator[tuple[str, str], None]:
        """(time stamp, line). The first seconds after a reconnect may repeat lines."""
        asked = {"timestamps": "true"}
        if follow:
            asked["follow"] = "true"
        if since is not None:
            asked["sinceTime"] = since
        elif tail is not None:
            asked["tailLines"] = str(max(tail, 0))
        path = kinds.POD.path(NAMESPACE, name) + "/log"
        async with self._client.stream(
            path, f"read the log of {name}", params=asked, silence=SILENCE
        ) as chunks:
            async for raw in _split(chunks):
                stamp, _, text = raw.decode("utf-8", "replace").partition(" ")
                if _is_stamp(stamp):
                    yield stamp, text
                else:  # a part of an over-long line, or a server that adds no stamps
                    yield "", raw.decode("utf-8", "replace")


async def _last_words(reader: asyncio.Task[None], seen: _Seen, queue: Queue) -> None:
    """A stream should end with its program; one that stays open in silence is ended for it."""
    while not reader.done():
        before = seen.count
        await asyncio.wait({reader}, timeout=LAST_WORDS)
        if seen.count == before and not queue.full():
            reader.cancel()


async def _split(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Lines without their end; of a longer one the first 64 KiB, the rest is thrown away as it comes."""
    rest, skipping = b"", False
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if skipping:
                skipping = False
            else:
                yield line if len(line) <= MOST_LINE else line[:MOST_LINE] + CUT.encode()
        if len(rest) > MOST_LINE:
            if not skipping:
                yield rest[:MOST_LINE] + CUT.encode()
            rest, skipping = b"", True
    if rest and not skipping:
        yield rest


def _padded(stamp: str) -> str:
    """RFC 3339 with trailing zeros cut, made comparable as text."""
    whole, _, part = stamp.rstrip("Z").partition(".")
    return f"{whole}.{part:0<9}"


def _is_stamp(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return len(text) > 10


def _not_started(error: Refused) -> bool:
    """The container is being made, its image pulled: there is no log yet."""
    return any(
        word in error.message
        for word in ("waiting to start", "is not available", "not have a host")
    )
