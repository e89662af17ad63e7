"""Following a list: resume, 410, restarts, dead connections, kinds that do not exist. No time passes here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from doubles import Json, Lines, Naps, Script, client_of, event, listed, status

from podwarden.kube.kinds import CONFIG_MAP, POD, Kind
from podwarden.kube.watch import Key, Source, Watch, key_of


class Book:
    """A sink that keeps versions by key."""

    def __init__(self) -> None:
        self.now: dict[Key, str] = {}
        self.log: list[tuple[str, Any]] = []

    def put(self, kind: Kind, obj: Json) -> None:
        self.now[key_of(obj)] = obj["metadata"]["resourceVersion"]
        self.log.append(("put", obj["metadata"]["name"]))

    def drop(self, kind: Kind, key: Key) -> None:
        self.now.pop(key, None)
        self.log.append(("drop", key[1]))

    def known(self, kind: Kind) -> list[Key]:
        return list(self.now)

    def seen(self, kind: Kind) -> None:
        self.log.append(("seen", kind.plural))


def pod(name: str, version: str) -> Json:
    return {"metadata": {"name": name, "namespace": "x", "uid": name, "resourceVersion": version}}


def stream(*chunks: bytes, **more: Any) -> httpx.Response:
    return httpx.Response(200, stream=Lines(*chunks, **more))


class Run:
    """A watch on scripted answers, run until a condition holds or the script hangs on its open stream."""

    def __init__(self, *answers: Any, source: Source | None = None) -> None:
        self.script = Script(*answers)
        self.naps, self.book = Naps(), Book()
        self.client = client_of(self.script, self.naps, attempts=2)
        self.watch = Watch(
            self.client, source or Source(POD), self.book, sleep=self.naps, clock=lambda: 0.0
        )

    async def until(self, condition: Callable[[], bool]) -> None:
        task = asyncio.create_task(self.watch.run())
        try:
            async with asyncio.timeout(5):
                while not condition():
                    await asyncio.sleep(0)
                    assert not task.done(), task.exception()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self.client.close()

    def asked(self) -> list[str]:
        """What each request wanted: `list`, `more`, or `watch@<version>`."""
        return [
            f"watch@{q['resourceVersion']}"
            if "watch" in q
            else "more"
            if "continue" in q
            else "list"
            for q in (dict(request.url.params) for request in self.script.requests)
        ]


async def test_a_list_then_its_changes_in_order() -> None:
    run = Run(
        listed([pod("a", "1"), pod("b", "2")], "5"),
        stream(
            event("ADDED", pod("c", "6")) + event("MODIFIED", pod("a", "7")),
            event("DELETED", pod("b", "8")),
            open_=True,
        ),
    )
    await run.until(lambda: ("drop", "b") in run.book.log)
    assert run.book.now == {("x", "a"): "7", ("x", "c"): "6"}
    assert run.watch.synced
    assert run.asked() == ["list", "watch@5"]
    assert run.script.requests[1].url.params["allowWatchBookmarks"] == "true"


async def test_an_event_may_come_in_pieces() -> None:
    raw = event("ADDED", pod("c", "6"))
    run = Run(listed([], "5"), stream(raw[:10], raw[10:30], raw[30:], open_=True))
    await run.until(lambda: ("x", "c") in run.book.now)


async def test_the_end_of_a_stream_resumes_at_the_last_version_even_a_bookmark() -> None:
    bookmark = event("BOOKMARK", {"metadata": {"resourceVersion": "44"}})
    run = Run(
        listed([pod("a", "1")], "5"),
        stream(event("ADDED", pod("b", "6"))),
        stream(bookmark),
        stream(open_=True),
    )
    await run.until(lambda: len(run.script.requests) == 4)
    assert run.asked() == ["list", "watch@5", "watch@6", "watch@44"]
    assert run.watch.lists == 1


async def test_a_dead_or_broken_stream_resumes_too() -> None:
    run = Run(
        listed([pod("a", "1")], "5"),
        stream(then=httpx.ReadTimeout("silent")),
        stream(event("ADDED", pod("b", "9")), then=httpx.RemoteProtocolError("cut")),
        stream(open_=True),
    )
    await run.until(lambda: len(run.script.requests) == 4)
    assert run.asked() == ["list", "watch@5", "watch@5", "watch@9"]
    assert set(run.book.now) == {("x", "a"), ("x", "b")}


async def test_410_lists_again_and_passes_on_only_the_difference() -> None:
    gone = event("ERROR", {"kind": "Status", "code": 410, "message": "too old resource version"})
    run = Run(
        listed([pod("a", "1"), pod("b", "2")], "5"),
        stream(gone),
        listed([pod("a", "1"), pod("c", "8")], "9"),
        stream(open_=True),
    )
    await run.until(lambda: len(run.script.requests) == 4)
    assert run.asked() == ["list", "watch@5", "list", "watch@9"]
    assert set(run.book.now) == {("x", "a"), ("x", "c")}
    assert run.book.log.count(("drop", "b")) == 1
    assert ("drop", "a") not in run.book.log


async def test_410_as_an_answer_and_in_the_middle_of_a_list() -> None:
    run = Run(
        listed([pod("a", "1")], "5"),
        status(410, "gone"),
        listed([pod("a", "1")], "7", "next"),
        status(410, "continue token expired"),
        listed([pod("d", "8")], "9"),
        stream(open_=True),
    )
    await run.until(lambda: run.asked()[-1:] == ["watch@9"])
    assert run.asked() == ["list", "watch@5", "list", "more", "list", "watch@9"]
    assert set(run.book.now) == {("x", "d")}


async def test_a_server_that_is_away_is_waited_for_and_named() -> None:
    away = httpx.ConnectError("refused")
    run = Run(listed([], "5"), stream(), away, away, away, away, status(503), stream(open_=True))
    said: list[str] = []

    def back() -> bool:
        if run.watch.trouble and not said:
            said.append(run.watch.trouble)
        return len(run.script.requests) == 8 and not run.watch.trouble

    await run.until(back)
    assert said
    assert "cluster.test" in said[0]
    assert run.asked()[2:] == ["watch@5"] * 6
    assert sorted(run.naps.taken) == run.naps.taken  # it waits longer each time
    assert max(run.naps.taken) <= 10.0


async def test_a_server_that_ends_every_watch_at_once_is_not_hammered() -> None:
    run = Run(listed([], "5"), lambda _request: stream())
    await run.until(lambda: len(run.naps.taken) >= 12)
    assert run.naps.taken[-1] == 10.0


async def test_a_kind_that_does_not_exist_is_empty_and_complete() -> None:
    run = Run(status(404, "no"))
    await run.until(lambda: run.watch.synced)
    assert not run.watch.served
    assert run.watch.trouble == ""


async def test_nonsense_in_a_stream_is_an_outage_not_the_end() -> None:
    run = Run(
        listed([], "5"),
        stream(b"<html>\n"),
        stream(b'{"type": "ADDED"}\n'),
        stream(b"[]\n"),
        stream(event("ADDED", pod("a", "6")), open_=True),
    )
    await run.until(lambda: ("x", "a") in run.book.now)
    assert run.asked() == ["list"] + ["watch@5"] * 4


async def test_metadata_only_asks_for_no_bodies() -> None:
    run = Run(
        listed([pod("a", "1")], "5"),
        stream(open_=True),
        source=Source(CONFIG_MAP, "podwarden", {"labelSelector": "l"}, metadata_only=True),
    )
    await run.until(lambda: len(run.script.requests) == 2)
    first, second = run.script.requests
    assert "PartialObjectMetadataList" in first.headers["Accept"]
    assert "PartialObjectMetadata;" in second.headers["Accept"]
    assert second.url.path == "/api/v1/namespaces/podwarden/configmaps"
    assert second.url.params["labelSelector"] == "l"


async def test_run_again_goes_on_where_it_was() -> None:
    run = Run(listed([pod("a", "1")], "5"), stream(open_=True))
    task = asyncio.create_task(run.watch.run())
    await run.script.asked_for(2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    run.script.answers = [stream(event("ADDED", pod("b", "6")), open_=True)]
    await run.until(lambda: ("x", "b") in run.book.now)
    assert run.asked() == ["list", "watch@5", "watch@5"]
    assert run.watch.lists == 1


async def test_an_object_that_cannot_be_read_hides_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = Run(
        listed([pod("odd", "1"), pod("a", "2")], "5"),
        stream(event("MODIFIED", pod("b", "6")), open_=True),
    )
    put = run.book.put

    def picky(kind: Kind, obj: Json) -> None:
        if obj["metadata"]["name"] == "odd":
            raise KeyError("spec")
        put(kind, obj)

    run.book.put = picky  # type: ignore[method-assign]
    await run.until(lambda: ("x", "b") in run.book.now)
    assert set(run.book.now) == {("x", "a"), ("x", "b")}
    assert "('x', 'odd') cannot be read" in caplog.text
