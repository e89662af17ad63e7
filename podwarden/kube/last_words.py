"""The last lines of one copy's log, and what the cluster said of it: a bounded look, on demand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podwarden.domain.observation import LastWords
from podwarden.errors import NotFound, Refused
from podwarden.kube import kinds
from podwarden.kube.client import Client
from podwarden.kube.labels import NAMESPACE

MOST_BYTES = 64 * 1024  # of the log
MOST_LINE = 1000  # characters kept of a line
MOST_EVENTS = 20
SILENCE = 3.0  # seconds without a byte


async def read_last_words(
    client: Client, name: str, uid: str, *, previous: bool, lines: int
) -> LastWords:
    """previous: of the run before this one. Where there is no log, or no copy, there are no lines.

    Unavailable.
    """
    told = await _log(client, name, previous=previous, lines=lines)
    return LastWords(tuple(told), tuple(await _events(client, uid)))


async def _log(client: Client, name: str, *, previous: bool, lines: int) -> list[str]:
    asked = {"tailLines": str(lines), "limitBytes": str(MOST_BYTES)}
    if previous:
        asked["previous"] = "true"
    path = kinds.POD.path(NAMESPACE, name) + "/log"
    read = b""
    try:
        async with client.stream(
            path, f"read the log of {name}", params=asked, silence=SILENCE
        ) as chunks:
            async for chunk in chunks:
                read += chunk
                if len(read) >= MOST_BYTES:
                    break
    except (NotFound, Refused):
        return []
    text = read[:MOST_BYTES].decode("utf-8", "replace")
    return [line[:MOST_LINE] for line in text.split("\n") if line.strip()][-lines:]


async def _events(client: Client, uid: str) -> list[tuple[str, str]]:
    params = {"fieldSelector": f"involvedObject.uid={uid}", "limit": "100"}
    try:
        answer = await client.get(kinds.EVENT.path(NAMESPACE), params=params)
    except (NotFound, Refused):
        return []
    found = sorted(answer.get("items") or (), key=_when)
    return [
        (str(event.get("reason") or ""), str(event.get("message") or "")[:MOST_LINE])
        for event in found[-MOST_EVENTS:]
    ]


def _when(event: Mapping[str, Any]) -> str:
    """RFC 3339 texts of one server sort as times do, to the second."""
    series = event.get("series") or {}
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return str(last or event.get("metadata", {}).get("creationTimestamp") or "")
