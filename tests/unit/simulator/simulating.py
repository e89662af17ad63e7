"""An API server that answers lists from memory and notes what is written; it holds watches open."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx

from podwarden.kube.connect import Access

ACCESS = Access(ca="", server="https://192.0.2.1:6443", token="t")


async def until(condition: Callable[[], bool], turns: int = 20_000) -> None:
    """Lets the event loop turn until the condition holds; fails after so many turns."""
    for _ in range(turns):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never became true")


class _Open(httpx.AsyncByteStream):
    """A watch in which nothing happens."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""


class Answers(httpx.AsyncBaseTransport):
    """lists: path -> items. first: "METHOD path" -> the answer to the first such request.

    writes: every request that was no read. most_at_once: writes that were under way together.
    """

    def __init__(
        self,
        lists: dict[str, list[dict[str, Any]]] | None = None,
        *,
        first: dict[str, httpx.Response] | None = None,
    ) -> None:
        self.lists = lists or {}
        self.first = dict(first or {})
        self.writes: list[str] = []
        self.bodies: list[Any] = []
        self.most_at_once = 0
        self._now = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if request.url.params.get("watch"):
            return httpx.Response(200, stream=_Open())
        if request.method == "GET" and path in self.lists:
            return httpx.Response(
                200, json={"metadata": {"resourceVersion": "9"}, "items": self.lists[path]}
            )
        key = f"{request.method} {path}"
        body = json.loads(request.content) if request.content else None
        if request.method != "GET":
            self.writes.append(key)
            self.bodies.append(body)
            await self._busy()
        if key in self.first:
            return self.first.pop(key)
        if request.method == "GET":
            return httpx.Response(404, json={"message": "not found"})
        answer = {**(body or {})}
        answer["metadata"] = {**answer.get("metadata", {}), "uid": f"uid-{len(self.writes)}"}
        return httpx.Response(201, json=answer)

    async def _busy(self) -> None:
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        for _ in range(3):
            await asyncio.sleep(0)
        self._now -= 1
