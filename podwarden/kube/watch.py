"""Follows one list of the API server: list once, then watch, and never lose the thread.

A watch that ends (its time is up, the server restarts, the connection dies) resumes from the last version seen.
Only a version that is too old (410) costs a new list, whose difference to what is known is all that is passed on.
A stream without a byte for `silence` seconds counts as dead; the server sends a bookmark every minute.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from podwarden.errors import NotFound, PodWardenError, Unavailable
from podwarden.kube.client import METADATA_ONLY, Client, Json
from podwarden.kube.errors import Expired, from_event
from podwarden.kube.kinds import Kind

_log = logging.getLogger(__name__)

Key = tuple[str, str]  # namespace ("" for what has none), name


def key_of(obj: Mapping[str, Any]) -> Key:
    meta = obj["metadata"]
    return meta.get("namespace", ""), meta["name"]


@dataclass(frozen=True, slots=True)
class Source:
    """What to follow. select: label and field selectors. metadata_only: the objects' bodies stay away.

    seconds: how long the server keeps one watch open. silence: longer than the minute between bookmarks.
    """

    kind: Kind
    namespace: str = ""
    select: Mapping[str, str] = field(default_factory=dict)
    metadata_only: bool = False
    seconds: int = 300
    silence: float = 90.0

    @property
    def path(self) -> str:
        return self.kind.path(self.namespace)


class Sink(Protocol):
    """Takes what a watch sees. Calls come one at a time, in the server's order per kind."""

    def put(self, kind: Kind, obj: Json) -> None: ...
    def drop(self, kind: Kind, key: Key) -> None: ...
    def known(self, kind: Kind) -> Iterable[Key]: ...
    def seen(self, kind: Kind) -> None: ...


class Watch:
    """One source, followed until cancelled; `run` may be called again and resumes.

    synced: the first list is complete. trouble: "" or why nothing new can be seen; served False: the
    server has no such kind.
    """

    def __init__(
        self,
        client: Client,
        source: Source,
        sink: Sink,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.source = source
        self.synced = False
        self.served = True
        self.trouble = ""
        self.lists = 0
        self._client = client
        self._sink = sink
        self._sleep = sleep
        self._clock = clock
        self._version = ""

    async def run(self) -> None:
        failures = 0
        while True:
            began, version = self._clock(), self._version
            try:
                if not self._version:
                    await self._list()
                await self._follow()
            except Expired:
                self._version = ""
            except NotFound:
                self._unserved()
            except PodWardenError as error:
                if failures:
                    self._say(error.message)
            except Exception:  # noqa: BLE001 - edge of the loop: it must go on
                _log.exception("following %s failed", self.source.path)
                self._say(f"{self._client.server} sent something that PodWarden cannot read.")
            lived = self._clock() - began >= 1.0 or self._version not in ("", version)
            failures = 0 if lived else failures + 1
            if not self.served:
                await self._sleep(60.0)
            elif failures:
                await self._sleep(min(0.1 * 2.0 ** min(failures, 8), 10.0))

    async def _list(self) -> None:
        source = self.source
        found: set[Key] = set()
        version = ""
        pages = self._client.pages(
            source.path, params=source.select, accept=METADATA_ONLY if source.metadata_only else ""
        )
        async for page in pages:
            version = page["metadata"]["resourceVersion"]
            for item in page.get("items") or ():
                found.add(key_of(item))
                self._put(item)
            await asyncio.sleep(0)  # thousands of objects must not stop everything else
        for key in [key for key in self._sink.known(source.kind) if key not in found]:
            self._sink.drop(source.kind, key)
        self._version = version
        self.lists += 1
        self.served = True
        self.synced = True
        self._say("")
        self._sink.seen(source.kind)

    async def _follow(self) -> None:
        source = self.source
        asked = {
            **source.select,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(source.seconds),
        }
        accept = METADATA_ONLY.replace("List", "") if source.metadata_only else ""
        doing = f"watch {source.path}"
        async with self._client.stream(
            source.path, doing, params=asked, accept=accept, silence=source.silence
        ) as chunks:
            self._say("")
            rest = b""
            async for chunk in chunks:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._take(line, doing)
                if lines:
                    self._sink.seen(source.kind)

    def _take(self, line: bytes, doing: str) -> None:
        if not line:
            return
        try:
            event = json.loads(line)
            type_, obj = event["type"], event["object"]
        except (ValueError, KeyError, TypeError) as error:
            raise Unavailable(
                f"{self._client.server} sent something unreadable: {doing}."
            ) from error
        if type_ == "ERROR":
            raise from_event(self._client.server, doing, obj)
        if type_ == "DELETED":
            self._sink.drop(self.source.kind, key_of(obj))
        elif type_ != "BOOKMARK":
            self._put(obj)
        self._version = obj["metadata"]["resourceVersion"]

    def _put(self, obj: Json) -> None:
        """One odd object must not hide all others."""
        try:
            self._sink.put(self.source.kind, obj)
        except Exception:  # noqa: BLE001 - edge of the loop: it must go on
            _log.exception(
                "%s %s cannot be read and is left out", self.source.kind.name, key_of(obj)
            )

    def _unserved(self) -> None:
        """An older or smaller cluster: nothing of this kind, looked for again every minute."""
        for key in list(self._sink.known(self.source.kind)):
            self._sink.drop(self.source.kind, key)
        self.served = False
        self.synced = True
        self._version = ""
        self._say("")
        self._sink.seen(self.source.kind)

    def _say(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            self._sink.seen(self.source.kind)
