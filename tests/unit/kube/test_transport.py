"""The transport against a scripted server on a real socket: framing, reuse, limits, and every way to break off."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from podwarden.kube.transport import Direct

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """Answers each request with the next script; connections: how many were made."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self.connections = 0
        self.hold = asyncio.Event()
        self.hold.set()
        self.asked = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self.answers:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (int(line.split(b":")[1]) for line in head.lower().split(b"\r\n")
                     if line.startswith(b"content-length")), 0,
                )  # fmt: skip
                self.requests.append(head + await reader.readexactly(length))
                self.asked.set()
                await self.hold.wait()
                writer.write(self.answers.pop(0))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def talking(
    *answers: bytes, connections: int = 4, seconds: float = 5.0
) -> AsyncIterator[tuple[httpx.AsyncClient, Server]]:
    script = Server(*answers)
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}",
        transport=Direct(None, connections),
        timeout=seconds,
        trust_env=False,
    )
    try:
        yield client, script
    finally:
        await client.aclose()
        server.close()
        await server.wait_closed()


async def test_requests_follow_each_other_on_one_connection() -> None:
    async with talking(OK, OK, OK) as (client, server):
        for _ in range(3):
            assert (await client.post("/a?b=c", content=b"{}")).text == "ok"
    assert server.connections == 1
    assert server.requests[0].startswith(b"POST /a?b=c HTTP/1.1\r\n")
    assert server.requests[0].endswith(b"\r\n\r\n{}")


async def test_the_server_may_end_a_connection_after_its_answer() -> None:
    last = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
    async with talking(last, OK) as (client, server):
        assert (await client.get("/")).text == "ok"
        assert (await client.get("/")).text == "ok"
    assert server.connections == 2


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nto the end", "to the end"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", ""),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, "ok"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n",
            "abc0123456789",
        ),
    ],
)
async def test_bodies_end_where_the_answer_says(answer: bytes, text: str) -> None:
    async with talking(answer) as (client, server):
        sent = asyncio.create_task(client.get("/"))
        assert (await sent).text == text
    assert not server.answers


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"nonsense\r\n\r\n",
    ],
)
async def test_an_answer_that_breaks_off_or_is_none_is_an_error(answer: bytes) -> None:
    async with talking(answer) as (client, _):
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get("/")


async def test_a_stream_gives_each_piece_as_it_comes_and_its_connection_is_not_used_again() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with talking(head + b"2\r\na\n\r\n2\r\nb\n\r\n", OK) as (client, server):
        async with client.stream("GET", "/watch") as answer:
            pieces = answer.aiter_raw()
            assert [await anext(pieces), await anext(pieces)] == [b"a\n", b"b\n"]
        assert (await client.get("/")).text == "ok"
    assert server.connections == 2


async def test_silence_is_a_time_out_and_leaves_the_connection() -> None:
    async with talking(OK, OK, seconds=0.2) as (client, server):
        server.hold.clear()
        with pytest.raises(httpx.ReadTimeout):
            await client.get("/")
        server.hold.set()
        server.answers.append(OK)
        assert (await client.get("/")).text == "ok"
    assert server.connections == 2


async def test_no_more_connections_than_allowed() -> None:
    async with talking(*[OK] * 6, connections=2) as (client, server):
        answers = await asyncio.gather(*(client.get("/") for _ in range(6)))
    assert {answer.text for answer in answers} == {"ok"}
    assert server.connections == 2


async def test_waiting_for_a_connection_has_an_end() -> None:
    async with talking(OK, connections=1, seconds=0.2) as (client, server):
        server.hold.clear()
        first = asyncio.create_task(client.get("/", timeout=5))
        await server.asked.wait()
        with pytest.raises(httpx.PoolTimeout):
            await client.get("/")
        server.hold.set()
        assert (await first).text == "ok"


async def test_a_caller_that_leaves_gives_its_place_back() -> None:
    async with talking(OK, OK, connections=1) as (client, server):
        server.hold.clear()
        leaving = asyncio.create_task(client.get("/"))
        await server.asked.wait()
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        server.hold.set()
        assert (await client.get("/")).text == "ok"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_nobody_there_is_a_refused_connection(host: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with httpx.AsyncClient(transport=Direct(None, 1), trust_env=False) as client:
        with pytest.raises(httpx.ConnectError) as caught:
            await client.get(f"http://{host}:{port}/")
    assert isinstance(caught.value.__cause__, ConnectionRefusedError)
