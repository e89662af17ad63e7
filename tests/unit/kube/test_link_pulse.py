"""The look whether a server answers: whatever it says, the next look comes."""

from __future__ import annotations

import asyncio
import logging

import httpx
import pytest
from doubles import ACCESS, Script, status

from podwarden.kube.link import Link, Pace


async def test_an_answer_nobody_foresaw_is_told_and_looked_at_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    said: list[object] = ["odd", {"name": "deviceclasses"}]  # the first is no object
    served = [httpx.Response(200, json={"resources": [each]}) for each in said]

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/version":
            return httpx.Response(200, json={"major": "1", "minor": "37", "gitVersion": "v1.37.2"})
        if request.url.path == "/apis/resource.k8s.io/v1":
            return served.pop(0) if len(served) > 1 else served[0]
        return status(404)

    go_on = asyncio.Event()

    async def rest(seconds: float) -> None:
        if seconds == 5.0:  # between two pulses
            await go_on.wait()
        await asyncio.sleep(0)

    link = Link("home", ACCESS, transport=Script(answer), pace=Pace(sleep=rest))
    with caplog.at_level(logging.CRITICAL, logger="podwarden.kube.link"):
        await link.start()
        try:
            async with asyncio.timeout(10):
                while "cannot read" not in link.observe().trouble:
                    await link.wait_change(link.observe().revision, 0.1)
                assert not link.observe().reachable
                go_on.set()
                while link.facts is None or not link.observe().reachable:
                    await link.wait_change(link.observe().revision, 0.1)
        finally:
            await link.close()
    assert link.facts.served == {"deviceclasses"}
