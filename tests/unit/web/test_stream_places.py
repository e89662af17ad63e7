from __future__ import annotations

import asyncio

import pytest

from podwarden.web.problems import TooMany
from podwarden.web.streams import Streams


async def numbers(most: int, closed: list[str]):
    try:
        for number in range(most):
            yield number
        await asyncio.Event().wait()
    finally:
        closed.append("closed")


async def test_items_then_silence_then_the_end():
    streams, closed, seen = Streams(10, 10), [], []
    async for item in streams.paced(numbers(3, closed), 0.01):
        seen.append(item)
        if seen.count(None) == 2:
            streams.close()
    assert seen == [0, 1, 2, None, None]
    assert closed == ["closed"]


async def test_a_source_that_fails_fails_the_stream():
    async def broken():
        yield 1
        raise ValueError("gone")

    paced = Streams(1, 1).paced(broken(), 1)
    assert await anext(paced) == 1
    with pytest.raises(ValueError, match="gone"):
        await anext(paced)


async def test_leaving_early_closes_the_source():
    closed: list[str] = []
    paced = Streams(1, 1).paced(numbers(3, closed), 1)
    assert await anext(paced) == 0
    await paced.aclose()
    assert closed == ["closed"]


async def test_places_are_counted_and_given_back_once():
    streams = Streams(3, 2)
    releases = [streams.take("a"), streams.take("a")]
    with pytest.raises(TooMany):
        streams.take("a")
    streams.take("b")
    with pytest.raises(TooMany):
        streams.take("c")
    releases[0]()
    releases[0]()
    assert streams.open == 2
    streams.take("c")
