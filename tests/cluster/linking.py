"""Builders and waiting for the tests of a Link against a real API server."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from running import RunningEngine

from podwarden.domain.observation import Observation
from podwarden.kube.connect import Access, read_kubeconfig
from podwarden.kube.link import Link

T = TypeVar("T")


def access_of(engine: RunningEngine) -> Access:
    return read_kubeconfig(engine.kubeconfig.read_text(), now=datetime.now(UTC))


@asynccontextmanager
async def linked(engine: RunningEngine, **more: Any) -> AsyncIterator[tuple[Link, int]]:
    """A link that has read everything, and the fence that it leads with."""
    link = Link("home", access_of(engine), **more)
    await link.start()
    try:
        await link.ready(20)
        fence = await link.fence() + 1
        await link.raise_fence(fence)
        yield link, fence
    finally:
        await link.close()


async def seen(link: Link, what: Callable[[Observation], T], why: str, seconds: float = 15.0) -> T:
    """The first truthy word of `what` about an observation, woken by changes only."""
    deadline = time.monotonic() + seconds
    while True:
        observation = link.observe()
        result = what(observation)
        if result:
            return result
        left = deadline - time.monotonic()
        assert left > 0, f"not within {seconds} s: {why}; last seen: {observation}"
        await link.wait_change(observation.revision, min(left, 1.0))


async def becomes(condition: Callable[[], T], why: str, seconds: float = 15.0) -> T:
    """As `seen`, about the API server's own objects: what `condition` asks it by itself."""
    deadline = time.monotonic() + seconds
    while True:
        result = await asyncio.to_thread(condition)
        if result:
            return result
        assert time.monotonic() < deadline, f"not within {seconds} s: {why}"
        await asyncio.sleep(0.05)


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:6]}"
