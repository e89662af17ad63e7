"""A network between PodWarden and a real API server that can be made to fail, at the client's own transport seam."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx

from podwarden.kube.connect import Access, tls_context

Rule = Callable[[httpx.Request], Awaitable[httpx.Response | None]]


class Network(httpx.AsyncBaseTransport):
    """Passes everything on. rules: asked before each request; the first answer counts, an exception is raised.

    lose(n): the next n answers to writes get lost after the server has done its work.
    """

    def __init__(self, access: Access) -> None:
        self._wire = httpx.AsyncHTTPTransport(verify=tls_context(access), trust_env=False)
        self.rules: list[Rule] = []
        self.requests: list[tuple[str, str]] = []
        self._lost = 0
        self._cut = asyncio.Event()
        self._alive = asyncio.Event()
        self._alive.set()

    def lose(self, answers: int) -> None:
        self._lost = answers

    def cut(self) -> None:
        """Every open stream breaks."""
        self._cut.set()
        self._cut = asyncio.Event()

    def die(self) -> None:
        """Nothing gets through any more, and nobody says so: a cable that was pulled."""
        self._alive.clear()

    def live(self) -> None:
        self._alive.set()

    async def alive(self) -> None:
        await self._alive.wait()

    async def broken(self) -> None:
        await self._cut.wait()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append((request.method, request.url.path))
        if not self._alive.is_set():
            await self._silence(request)
        for rule in self.rules:
            answer = await rule(request)
            if answer is not None:
                return answer
        answer = await self._wire.handle_async_request(request)
        if self._lost and request.method != "GET":
            self._lost -= 1
            await answer.aread()
            await answer.aclose()
            raise httpx.ReadTimeout("the answer got lost", request=request)
        assert isinstance(answer.stream, httpx.AsyncByteStream)
        return httpx.Response(
            answer.status_code,
            headers=answer.headers,
            stream=_Stream(answer.stream, self),
            request=request,
        )

    async def _silence(self, request: httpx.Request) -> None:
        """Until the client's own patience ends."""
        await asyncio.sleep(request.extensions["timeout"]["read"])
        raise httpx.ReadTimeout("silence", request=request)

    async def aclose(self) -> None:
        await self._wire.aclose()


class _Stream(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream, network: Network) -> None:
        self._inner, self._network = inner, network

    async def __aiter__(self) -> AsyncIterator[bytes]:
        cut = asyncio.ensure_future(self._network.broken())
        chunks = aiter(self._inner)
        chunk = asyncio.ensure_future(anext(chunks, None))
        try:
            while True:
                await asyncio.wait({cut, chunk}, return_when=asyncio.FIRST_COMPLETED)
                if cut.done():
                    raise httpx.ReadError("the stream was cut")
                await self._network.alive()
                data = chunk.result()
                if data is None:
                    return
                yield data
                chunk = asyncio.ensure_future(anext(chunks, None))
        finally:
            cut.cancel()
            chunk.cancel()
            await asyncio.gather(cut, chunk, return_exceptions=True)

    async def aclose(self) -> None:
        await self._inner.aclose()


def times(count: int, rule: Rule, *, where: Callable[[httpx.Request], bool]) -> Rule:
    """`rule` for the first `count` requests that `where` picks."""
    left = count

    async def limited(request: httpx.Request) -> httpx.Response | None:
        nonlocal left
        if left and where(request):
            left -= 1
            return await rule(request)
        return None

    return limited


def says(code: int, **headers: str) -> Rule:
    async def rule(request: httpx.Request) -> httpx.Response:
        body = {"kind": "Status", "code": code, "message": "injected", "reason": "Injected"}
        return httpx.Response(code, json=body, headers=headers, request=request)

    return rule


def fails(error: Callable[[str], httpx.HTTPError]) -> Rule:
    async def rule(request: httpx.Request) -> httpx.Response:
        raise error("injected")

    return rule


def writes(request: httpx.Request) -> bool:
    return request.method in {"PATCH", "POST", "PUT", "DELETE"}


def watches(request: httpx.Request) -> bool:
    return request.url.params.get("watch") == "true"
