"""A Kubernetes API in memory for tests: scripted answers behind the client's own transport seam."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import httpx

from podwarden.kube.client import Client, Retry
from podwarden.kube.connect import Access

SERVER = "https://cluster.test:6443"
ACCESS = Access(SERVER, ca="", token="secret-token")

Json = dict[str, Any]


def status(code: int, message: str = "", **more: Any) -> httpx.Response:
    """An error as the API server words it."""
    body = {"kind": "Status", "status": "Failure", "code": code, "message": message, **more}
    return httpx.Response(code, json=body)


class Naps:
    """A sleep that takes no time, remembers what was asked, and lets others run."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
        await asyncio.sleep(0)


class Script(httpx.AsyncBaseTransport):
    """Answers requests in order; an exception in the list is raised. The last answer repeats."""

    def __init__(
        self, *answers: httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]
    ) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []
        self._came = asyncio.Condition()

    async def asked_for(self, count: int) -> None:
        """Returns once so many requests have come."""
        async with self._came:
            await self._came.wait_for(lambda: len(self.requests) >= count)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        async with self._came:
            self._came.notify_all()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, httpx.Response):
            return answer
        return answer(request)


def client_of(transport: httpx.AsyncBaseTransport, naps: Naps | None = None, **more: Any) -> Client:
    return Client(ACCESS, retry=Retry(sleep=naps or Naps(), **more), transport=transport)


class Lines(httpx.AsyncByteStream):
    """A watch's body: chunks, then an error, or its end, or silence for ever."""

    def __init__(self, *chunks: bytes, then: Exception | None = None, open_: bool = False) -> None:
        self._chunks, self._then, self._open = chunks, then, open_

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk
        if self._then is not None:
            raise self._then
        if self._open:
            await asyncio.Event().wait()


def event(type_: str, obj: Json) -> bytes:
    return json.dumps({"type": type_, "object": obj}).encode() + b"\n"


def listed(items: Iterable[Json], version: str, more: str = "") -> httpx.Response:
    meta = {"resourceVersion": version, **({"continue": more} if more else {})}
    return httpx.Response(200, json={"metadata": meta, "items": list(items)})
