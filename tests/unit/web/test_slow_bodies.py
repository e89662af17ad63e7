"""A body that never ends is answered and its connection let go; long answers are not cut."""

from __future__ import annotations

import asyncio
import json

import pytest
from starlette.responses import PlainTextResponse

from podwarden.web.guard import Bodies

LIMIT = 0.05  # seconds


async def _ask(inner, *messages) -> list[dict]:
    """What is sent for a POST whose body comes as `messages`, and nothing after them."""
    queue = list(messages)
    sent = []

    async def receive():
        if queue:
            return queue.pop(0)
        return await asyncio.get_running_loop().create_future()

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/login", "headers": []}
    await asyncio.wait_for(Bodies(inner, most=1000, seconds=LIMIT)(scope, receive, send), 5)
    return sent


async def _reads(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    await PlainTextResponse("done")(scope, receive, send)


async def _reads_and_hides_what_went_wrong(scope, receive, send):
    try:
        await _reads(scope, receive, send)
    except Exception:  # noqa: BLE001 - as frameworks do
        await PlainTextResponse("unreadable", 400)(scope, receive, send)


async def _reads_then_waits_longer(scope, receive, send):
    await receive()
    await asyncio.wait([asyncio.ensure_future(receive())], timeout=3 * LIMIT)
    await PlainTextResponse("done")(scope, receive, send)


@pytest.mark.parametrize("inner", [_reads, _reads_and_hides_what_went_wrong])
@pytest.mark.parametrize(
    "start", [(), ({"type": "http.request", "body": b"x", "more_body": True},)]
)
async def test_a_body_that_does_not_end_is_refused(inner, start) -> None:
    first, second = await _ask(inner, *start)
    assert first["status"] == 408
    assert (b"connection", b"close") in first["headers"]
    assert json.loads(second["body"])["code"] == "BODY_TOO_SLOW"


@pytest.mark.parametrize("inner", [_reads, _reads_then_waits_longer])
async def test_a_whole_body_is_taken_however_long_the_answer_takes(inner) -> None:
    first, second = await _ask(inner, {"type": "http.request", "body": b"x", "more_body": False})
    assert (first["status"], second["body"]) == (200, b"done")
