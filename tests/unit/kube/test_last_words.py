"""The last words of a copy: bounded, in order, and silence where there is nothing."""

from __future__ import annotations

import httpx
import pytest
from doubles import Lines, Naps, Script, client_of, status

from podwarden.errors import Unavailable
from podwarden.kube.last_words import MOST_BYTES, MOST_LINE, read_last_words


def log(text: str) -> httpx.Response:
    return httpx.Response(200, stream=Lines(text.encode()))


def events(*told: tuple[str, str, str]) -> httpx.Response:
    items = [{"reason": r, "message": m, "lastTimestamp": at} for at, r, m in told]
    return httpx.Response(200, json={"items": items})


async def read(script: Script, *, previous: bool = False):
    client = client_of(script, Naps())
    try:
        return await read_last_words(client, "web-1", "uid-1", previous=previous, lines=3)
    finally:
        await client.close()


async def test_lines_and_events_in_order() -> None:
    told = events(
        ("2030-01-01T00:00:09Z", "Unhealthy", "second"), ("2030-01-01T00:00:01Z", "Pulled", "first")
    )
    script = Script(log("one\ntwo\n\nthree\nfour\n"), told)
    said = await read(script, previous=True)
    assert said.lines == ("two", "three", "four")
    assert said.events == (("Pulled", "first"), ("Unhealthy", "second"))


@pytest.mark.parametrize(
    "nothing", [status(404), status(400, "previous terminated container not found")]
)
async def test_nothing_is_no_error(nothing: httpx.Response) -> None:
    said = await read(Script(nothing, events()))
    assert (said.lines, said.events) == ((), ())


async def test_a_log_without_end_is_cut() -> None:
    said = await read(Script(log("x" * (MOST_BYTES * 3)), events()))
    assert said.lines == ("x" * MOST_LINE,)


async def test_control_bytes_are_kept_for_whoever_shows_them() -> None:
    said = await read(Script(log("\x1b[2J\x00\xff ok\n"), events()))
    assert said.lines == ("\x1b[2J\x00\xff ok",)


async def test_a_server_that_is_away_is_told() -> None:
    with pytest.raises(Unavailable):
        await read(Script(httpx.ConnectError("refused"), httpx.ConnectError("refused")))
