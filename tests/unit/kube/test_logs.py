"""Log lines: long ones cut, broken streams resumed without gaps or repeats, copies that come and go."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import httpx
import pytest
from doubles import Lines, Naps, Script, client_of, status
from objects import pod

from podwarden.errors import NotFound, Refused, Unavailable
from podwarden.kube import kinds
from podwarden.kube.index import Index
from podwarden.kube.logs import CUT, MOST_LINE, Logs


def printed(*lines: str, then: Exception | None = None) -> httpx.Response:
    return httpx.Response(
        200, stream=Lines("".join(f"{line}\n" for line in lines).encode(), then=then)
    )


class Desk:
    """Logs over scripted answers. Nothing announces a change."""

    def __init__(self, *answers: Any, pods: list[dict[str, Any]] | None = None) -> None:
        self.script = Script(*answers)
        self.index = Index("home")
        for each in pods if pods is not None else [pod("p1", own="id-a", on="n1")]:
            self.index.put(kinds.POD, each)
        self.client = client_of(self.script, attempts=1)
        self.logs = Logs(self.client, self.index, self._wait, sleep=Naps())

    async def _wait(self, after: int, timeout: float) -> int:  # noqa: ASYNC109
        await asyncio.sleep(timeout)
        return after

    def ends(self, name: str) -> None:
        self.index.put(kinds.POD, pod(name, own="id-a", on="n1", phase="Succeeded"))

    async def read(self, **more: Any) -> list[str]:
        asked = {"instance": None, "follow": False, "tail": None, **more}
        async with asyncio.timeout(5), aclosing(self.logs.lines("id-a", **asked)) as lines:
            found = [line async for line in lines]
        await self.client.close()
        return found


T = "2026-11-30T12:00:0"


async def test_time_stamps_are_asked_for_and_taken_off() -> None:
    desk = Desk(printed(f"{T}1.5Z hello world", f"{T}2Z ", f"{T}3Z \x1b[31mred"))
    assert await desk.read(tail=7) == ["hello world", "", "\x1b[31mred"]
    query = desk.script.requests[0].url.params
    assert (query["timestamps"], query["tailLines"]) == ("true", "7")
    assert "follow" not in query


async def test_a_server_without_stamps_is_taken_as_it_is() -> None:
    assert await Desk(printed("plain text", "2026 was good")).read() == [
        "plain text",
        "2026 was good",
    ]


async def test_long_lines_are_cut_and_the_rest_of_them_is_thrown_away() -> None:
    long = f"{T}1Z " + "x" * (3 * MOST_LINE)
    chunks = [long[i : i + 50_000].encode() for i in range(0, len(long), 50_000)]
    desk = Desk(
        httpx.Response(200, stream=Lines(*chunks, b"\n", f"{T}2Z next\n".encode(), b"no end"))
    )
    first, second, last = await desk.read()
    assert len(first) <= MOST_LINE + len(CUT)
    assert first.endswith(CUT)
    assert (second, last) == ("next", "no end")


async def test_bytes_that_are_no_text_do_no_harm() -> None:
    desk = Desk(httpx.Response(200, stream=Lines(f"{T}1Z ".encode() + b"\xff\xfe\x00\n")))
    assert await desk.read() == ["\ufffd\ufffd\x00"]


async def test_several_copies_say_who_speaks() -> None:
    two = [pod("p1", own="id-a", on="n1"), pod("p2", own="id-a", on="n1")]
    desk = Desk(printed(f"{T}1Z one"), printed(f"{T}1Z two"), pods=two)
    assert await desk.read() == ["p1 | one", "p2 | two"]
    alone = Desk(printed(f"{T}1Z one"), pods=two)
    assert await alone.read(instance="p1") == ["one"]


async def test_what_has_not_started_has_no_lines_yet_and_what_is_gone_none_any_more() -> None:
    waiting = status(400, 'container "a" in pod "p1" is waiting to start: ContainerCreating')
    assert await Desk(waiting).read() == []
    assert await Desk(status(404, "gone")).read() == []
    with pytest.raises(NotFound):
        await Desk(printed()).read(instance="stranger")
    with pytest.raises(Refused):
        await Desk(status(403, "no")).read()
    with pytest.raises(Unavailable):
        await Desk(status(500, "kubelet away")).read()


async def test_following_goes_on_after_a_broken_stream_without_gap_or_repeat() -> None:
    desk = Desk(
        printed(f"{T}1.1Z a", f"{T}1.12Z b", f"{T}1.12Z c", then=httpx.ReadError("cut")),
        status(500, "away"),
        printed(
            f"{T}1.1Z a", f"{T}1.12Z b", f"{T}1.12Z c", f"{T}1.12Z d", f"{T}1.12Z d", f"{T}2Z e"
        ),
        lambda _request: (desk.ends("p1"), printed(f"{T}2Z e", f"{T}3Z f"))[1],
    )
    assert await desk.read(follow=True, tail=5) == ["a", "b", "c", "d", "e", "f"]
    first, _, third = (request.url.params for request in desk.script.requests[:3])
    assert first["tailLines"] == "5"
    assert third["sinceTime"] == f"{T}1.12Z"
    assert "tailLines" not in third


async def test_following_waits_for_a_start_and_ends_with_the_last_copy() -> None:
    desk = Desk(
        status(400, "container is waiting to start"),
        lambda _request: (desk.ends("p1"), printed(f"{T}1Z started"))[1],
    )
    assert await desk.read(follow=True) == ["started"]


async def test_following_takes_new_copies_in() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if "/pods/p1/" in request.url.path:
            desk.index.put(kinds.POD, pod("p2", own="id-a", on="n1"))
            desk.ends("p1")
            return printed(f"{T}1Z old")
        desk.ends("p2")
        return printed(f"{T}2Z new")

    desk = Desk(answer)
    assert await desk.read(follow=True) == ["old", "p2 | new"]


async def test_a_refusal_while_following_reaches_the_reader() -> None:
    with pytest.raises(Refused, match="administrator"):
        await Desk(status(403, "no")).read(follow=True)


async def test_a_reader_that_leaves_takes_everything_with_it() -> None:
    desk = Desk(httpx.Response(200, stream=Lines(f"{T}1Z a\n".encode(), open_=True)))
    before = asyncio.all_tasks()
    async with aclosing(desk.logs.lines("id-a", instance=None, follow=True, tail=None)) as lines:
        assert await anext(lines) == "a"
    await desk.client.close()
    assert asyncio.all_tasks() == before
