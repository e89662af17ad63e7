"""HTTP/1.1 to one server over asyncio's own TLS, as a transport of httpx.

httpx's default costs about a millisecond of CPU per request and per chunk of a stream (its layers of protocol,
pool and socket); a cluster that starts workloads makes some twenty of either for each. This does what an API server
needs and no more: no proxies, no redirects, no HTTP/2. Errors are httpx's own, with the cause kept.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import httpx

LINE = 1 << 20  # bytes that a head or a line may have
PIECE = 1 << 16  # bytes read at once from a long body
IDLE = 30.0  # seconds that an unused connection is kept

Place = tuple[str, int, str]  # host, port, name in the certificate
Headers = list[tuple[bytes, bytes]]


@dataclass(slots=True, eq=False)
class _Wire:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    place: Place
    used: float = 0.0

    def fresh(self) -> bool:
        """Whether the next request may go here. What arrived unasked makes a connection useless."""
        gone = self.writer.is_closing() or self.reader.at_eof()
        return not gone and time.monotonic() - self.used < IDLE

    async def close(self) -> None:
        self.writer.transport.abort()
        with suppress(OSError, ssl.SSLError):
            await self.writer.wait_closed()


class Direct(httpx.AsyncBaseTransport):
    """tls: None for plain TCP. connections: how many at once; further requests wait their turn."""

    def __init__(self, tls: ssl.SSLContext | None, connections: int) -> None:
        self._tls = tls
        self._room = asyncio.Semaphore(connections)
        self._idle: list[_Wire] = []
        self._busy: set[_Wire] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        limits = request.extensions.get("timeout") or {}
        with _timed(httpx.PoolTimeout):
            async with asyncio.timeout(limits.get("pool")):
                await self._room.acquire()
        wire: _Wire | None = None
        try:
            wire = await self._wire(request, limits.get("connect"))
            with _sent():
                async with asyncio.timeout(limits.get("write")):
                    wire.writer.write(_head(request) + request.content)
                    await wire.writer.drain()
            read = limits.get("read")
            status, headers = await _answer(wire.reader, read)
            body = _Body(self, wire, _framing(request.method, status, headers), read)
        except BaseException:
            await self._leave(wire, keep=False)
            raise
        return httpx.Response(status, headers=headers, stream=body)

    async def aclose(self) -> None:
        for wire in [*self._idle, *self._busy]:
            await wire.close()
        self._idle.clear()

    async def _wire(self, request: httpx.Request, limit: float | None) -> _Wire:
        url = request.url
        name = str(request.extensions.get("sni_hostname") or url.host)
        place = (url.host, url.port or (443 if self._tls else 80), name)
        while self._idle:
            wire = self._idle.pop()
            if wire.place == place and wire.fresh():
                break
            await wire.close()
        else:
            wire = await self._connect(place, limit)
        self._busy.add(wire)
        return wire

    async def _connect(self, place: Place, limit: float | None) -> _Wire:
        host, port, name = place
        named = name if self._tls else None
        with _timed(httpx.ConnectTimeout):
            async with asyncio.timeout(limit):
                try:
                    pair = await asyncio.open_connection(
                        host, port, ssl=self._tls, server_hostname=named, limit=LINE
                    )
                except OSError as error:  # TLS errors and unknown names, too
                    raise httpx.ConnectError(str(error)) from _plain(error)
        sock = pair[1].get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return _Wire(*pair, place)

    async def _leave(self, wire: _Wire | None, *, keep: bool) -> None:
        """Each request leaves once, whatever became of it."""
        self._room.release()
        if wire is None:
            return
        self._busy.discard(wire)
        if keep and not wire.writer.is_closing():
            wire.used = time.monotonic()
            self._idle.append(wire)
        else:
            await wire.close()


@dataclass(frozen=True, slots=True)
class _Framing:
    """How the body ends. length: None = chunked, or with the connection where `chunked` is False."""

    length: int | None
    chunked: bool
    keep: bool


class _Body(httpx.AsyncByteStream):
    def __init__(self, pool: Direct, wire: _Wire, framing: _Framing, limit: float | None) -> None:
        self._pool = pool
        self._wire = wire
        self._framing = framing
        self._limit = limit
        self._whole = framing.length == 0
        self._left = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        reader, framing = self._wire.reader, self._framing
        if framing.chunked:
            async for piece in self._chunks(reader):
                yield piece
        elif framing.length is not None:
            left = framing.length
            while left:
                piece = await self._some(reader, min(left, PIECE))
                if not piece:
                    raise httpx.RemoteProtocolError("The answer broke off.")
                left -= len(piece)
                yield piece
        else:
            while piece := await self._some(reader, PIECE):
                yield piece
        self._whole = True

    async def aclose(self) -> None:
        if not self._left:
            self._left = True
            await self._pool._leave(self._wire, keep=self._whole and self._framing.keep)  # noqa: SLF001 - its pool

    async def _chunks(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        while True:
            with _received():
                async with asyncio.timeout(self._limit):
                    size = int((await reader.readuntil(b"\n")).split(b";")[0], 16)
                    piece = await reader.readexactly(size) if size else b""
                    await reader.readuntil(b"\n")  # also ends the trailers, of which there are none
            if not size:
                return
            yield piece

    async def _some(self, reader: asyncio.StreamReader, most: int) -> bytes:
        with _received():
            async with asyncio.timeout(self._limit):
                return await reader.read(most)


def _head(request: httpx.Request) -> bytes:
    lines = [b"%s %s HTTP/1.1" % (request.method.encode(), request.url.raw_path)]
    lines += [b"%s: %s" % pair for pair in request.headers.raw]
    return b"\r\n".join(lines) + b"\r\n\r\n"


async def _answer(reader: asyncio.StreamReader, limit: float | None) -> tuple[int, Headers]:
    """Status and headers of the final answer; interim ones are skipped."""
    while True:
        with _received():
            async with asyncio.timeout(limit):
                head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head[:-4].split(b"\r\n")
        try:
            version, status, *_ = first.split(b" ", 2)
            headers = [
                (name, value.strip()) for name, _, value in (e.partition(b":") for e in lines)
            ]
            number = int(status)
        except ValueError as error:
            raise httpx.RemoteProtocolError(f"No HTTP: {first[:60]!r}") from error
        if not version.startswith(b"HTTP/1."):
            raise httpx.RemoteProtocolError(f"No HTTP: {first[:60]!r}")
        if number >= 200:
            return number, headers


def _framing(method: str, status: int, headers: Headers) -> _Framing:
    found = {name.lower(): value.lower() for name, value in headers}
    keep = b"close" not in found.get(b"connection", b"")
    if method == "HEAD" or status in (204, 304):
        return _Framing(0, chunked=False, keep=keep)
    if b"chunked" in found.get(b"transfer-encoding", b""):
        return _Framing(None, chunked=True, keep=keep)
    length = found.get(b"content-length")
    if length is None:
        return _Framing(None, chunked=False, keep=False)
    if not length.isdigit():
        raise httpx.RemoteProtocolError(f"A length of {length[:20]!r}.")
    return _Framing(int(length), chunked=False, keep=keep)


def _plain(error: OSError) -> OSError:
    """Failures of several addresses come joined in one text; all refused is still refused."""
    said = str(error)
    if error.errno is None and said.startswith("Multiple exceptions"):
        tried = said.count("Connect call failed")
        if tried and tried == said.count("[Errno 111]"):
            return ConnectionRefusedError(said)
    return error


@contextmanager
def _timed(kind: type[httpx.TimeoutException]) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise kind("") from error


@contextmanager
def _sent() -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise httpx.WriteTimeout("") from error
    except OSError as error:
        raise httpx.WriteError(str(error)) from error


@contextmanager
def _received() -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise httpx.ReadTimeout("") from error
    except OSError as error:
        raise httpx.ReadError(str(error)) from error
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
        raise httpx.RemoteProtocolError("The answer broke off.") from error
