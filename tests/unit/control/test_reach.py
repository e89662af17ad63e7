"""Whether an NFS server answers: in bounded time, in words, and not asked more often than needed."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager

import pytest

from podwarden.control.reach import BELIEVED, NfsServers, trouble_at


class HandClock:
    def __init__(self):
        self.seconds = 100.0

    def monotonic(self):
        return self.seconds


@asynccontextmanager
async def listening():
    """Takes connections on loopback; gives its port, the connections, and a way to end."""
    taken = []
    server = await asyncio.start_server(lambda r, w: taken.append(w), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], taken, server.close
    finally:
        server.close()
        for writer in taken:
            writer.close()


async def test_a_server_that_answers_is_no_trouble():
    async with listening() as (port, _, _):
        assert await trouble_at("127.0.0.1", port) == ""


async def test_a_closed_port_says_so():
    async with listening() as (port, _, close):
        close()
        said = await trouble_at("127.0.0.1", port)
    assert said == f"127.0.0.1 does not answer on TCP port {port}: the connection was refused"


@pytest.mark.parametrize("host", ["nas.invalid", "a" * 300, "", "\ud800"])
async def test_a_name_that_leads_nowhere(host):
    said = await trouble_at(host, 2049)
    assert "does not answer on TCP port 2049: " in said


async def test_silence_ends_in_time():
    """An address of the documentation's own network: nothing answers there, or the network says so at once."""
    began = time.monotonic()
    said = await trouble_at("192.0.2.1", 2049, within=0.3)
    assert time.monotonic() - began < 5
    assert "192.0.2.1 does not answer on TCP port 2049: " in said


async def test_a_good_answer_is_believed_for_a_while_and_a_bad_one_for_a_short_while():
    clock = HandClock()
    async with listening() as (port, taken, close):
        servers = NfsServers(clock, port=port, within=1.0)
        for _ in range(3):
            assert await servers.trouble("127.0.0.1") == ""
        close()
        clock.seconds += BELIEVED - 1
        assert await servers.trouble("127.0.0.1") == ""
        clock.seconds += 2
        assert "refused" in await servers.trouble("127.0.0.1")
        assert len(taken) <= 1
    again = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", port)
    async with again:
        assert "refused" in await servers.trouble("127.0.0.1"), "it was just told"
        clock.seconds += BELIEVED / 10 + 1
        assert await servers.trouble("127.0.0.1") == ""
