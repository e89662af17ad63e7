"""Everything that PodWarden does with one cluster: looks by watch, writes behind the fence.

Looking never waits: `observe` answers from memory, and says when it cannot see. Every write carries the fence of
the leader that ordered it; the cluster refuses the writes of one that no longer leads (FenceLost). Every write may be
repeated, and says the same again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx

from podwarden.domain.observation import Instance, LastWords, Observation
from podwarden.domain.placement import Hold
from podwarden.errors import NotFound, PodWardenError, Unavailable
from podwarden.kube import kinds
from podwarden.kube.adopt import Adopted, read_adoptable
from podwarden.kube.client import ONCE, Client, Retry
from podwarden.kube.connect import Access, check_dates
from podwarden.kube.fencing import Fencing
from podwarden.kube.index import Index
from podwarden.kube.labels import NAMESPACE, WORKLOAD
from podwarden.kube.last_words import read_last_words
from podwarden.kube.logs import Logs
from podwarden.kube.record import RECORD
from podwarden.kube.render import Rendered
from podwarden.kube.view import Health, View
from podwarden.kube.watch import Source, Watch
from podwarden.kube.writes import Writer

_log = logging.getLogger(__name__)

ODD_ANSWERS = (AttributeError, KeyError, TypeError, ValueError)  # not shaped as the API says

_OWN = {"labelSelector": WORKLOAD}
_QUIET = ",".join(
    [
        "involvedObject.kind=Pod",
        *(f"reason!={word}" for word in ("Scheduled", "Created", "Started", "Pulled", "Killing")),
    ]
)
SOURCES = (
    Source(kinds.NODE),
    Source(kinds.SLICE),
    Source(kinds.POD),
    Source(kinds.CLAIM),
    Source(kinds.TAINT_RULE),
    Source(kinds.DEPLOYMENT, NAMESPACE, _OWN),
    Source(kinds.JOB, NAMESPACE, _OWN),
    Source(kinds.SERVICE),  # other people's, too: their ports are taken
    Source(kinds.CONFIG_MAP, NAMESPACE, _OWN, metadata_only=True),
    Source(kinds.SECRET, NAMESPACE, _OWN, metadata_only=True),
    Source(kinds.CLAIM_TEMPLATE, NAMESPACE, _OWN, metadata_only=True),
    Source(kinds.VOLUME_CLAIM, NAMESPACE, _OWN),
    Source(kinds.VOLUME),
    # Events get no bookmarks: only the end of its time ends a silent watch of them.
    Source(kinds.EVENT, NAMESPACE, {"fieldSelector": _QUIET}, silence=330.0),
)


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds. pulse: between two looks whether the server answers. silent: after that it is unreachable."""

    pulse: float = 5.0
    silent: float = 10.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a server says of itself. served: plurals of resource.k8s.io/v1."""

    version: str
    number: tuple[int, int]
    served: frozenset[str]


async def probe(
    access: Access,
    *,
    now: datetime | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> Facts:
    """One try to reach a cluster, at most 5 s a question.

    Invalid: its client certificate is not valid now. Unavailable, Refused: with the server, the cause, the fix.
    """
    check_dates(access, now or datetime.now(UTC))
    client = Client(access, retry=ONCE, transport=transport)
    try:
        facts = await _facts(client)
        await client.get(kinds.NODE.path(), params={"limit": "1"})
    finally:
        await client.close()
    return facts


async def _facts(client: Client) -> Facts:
    said = await client.get("/version", retry=ONCE)
    try:
        resources = (await client.get(f"/apis/{kinds.RESOURCE}", retry=ONCE)).get("resources") or ()
    except NotFound:
        resources = ()
    number = _number(str(said.get("major", ""))), _number(str(said.get("minor", "")))
    names = frozenset(str(resource.get("name")) for resource in resources)
    return Facts(str(said.get("gitVersion", "")), number, names)


def _words(server: str, error: Exception) -> str:
    if isinstance(error, PodWardenError):
        return error.message
    return f"{server} answers with something that PodWarden cannot read."


def _number(text: str) -> int:
    digits = "".join(character for character in text if character.isdigit())
    return int(digits) if digits else 0


class Link:
    """One cluster. Use within one event loop; `start` before anything else, `close` at the end."""

    def __init__(
        self,
        name: str,
        access: Access,
        *,
        retry: Retry | None = None,
        pace: Pace | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.name = name
        self.access = access
        self.facts: Facts | None = None
        self.damaged: tuple[str, ...] = ()  # records that `adoptable` could not read
        self._pace = pace or Pace()
        self._client = Client(access, retry=retry, transport=transport)
        self._index = Index(name)
        self._view = View(self._index)
        self._watches = tuple(
            Watch(self._client, source, self._index, sleep=self._pace.sleep, clock=self._pace.clock)
            for source in SOURCES
        )
        self._fencing = Fencing(self._client, sleep=self._pace.sleep)
        self._writer = Writer(self._client, self._index, self._synced, sleep=self._pace.sleep)
        self._tasks: list[asyncio.Task[None]] = []
        self._following: list[asyncio.Task[None]] = []
        self._contact: float | None = None
        self._trouble = ""
        self._reachable = False
        self._told = 0
        self._state = (False, "")
        self._changed = asyncio.Event()
        self._index.on_change(self._notify)

    async def start(self) -> None:
        """Returns at once; `observe().complete` tells when everything was read."""
        self._follow()
        self._tasks = [asyncio.create_task(self._pulse(), name=f"pulse {self.name}")]

    async def close(self) -> None:
        tasks = [*self._tasks, *self._following]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks, self._following = [], []
        await self._client.close()

    # --- looking -------------------------------------------------------------------------------

    def observe(self) -> Observation:
        """From memory, never blocks. Equal revisions: the same object."""
        facts = self.facts
        health = Health(
            complete=self._synced(),
            reachable=self._reachable,
            trouble=self._said(),
            version=facts.number if facts is not None else (0, 0),
            served=facts.served if facts is not None else frozenset(),
        )
        return self._view.observation(health, self._pace.now())

    async def wait_change(self, after: int, timeout: float) -> int:  # noqa: ASYNC109 - part of the contract
        """The revision as soon as it is above `after`, or whatever it is after `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                while self._index.revision <= after:
                    await self._changed.wait()
        except TimeoutError:
            pass
        return self._index.revision

    def _synced(self) -> bool:
        return self.facts is not None and all(watch.synced for watch in self._watches)

    def _said(self) -> str:
        return self._trouble or next(
            (watch.trouble for watch in self._watches if watch.trouble), ""
        )

    def _notify(self) -> None:
        """After each batch from a watch. A change of the connection's health counts as a change, too."""
        state = (self._synced(), self._said())
        if state != self._state:
            self._state = state
            self._index.revision += 1
        if self._index.revision != self._told:
            self._told = self._index.revision
            self._changed.set()
            self._changed = asyncio.Event()

    def _follow(self) -> None:
        self._following = [
            asyncio.create_task(watch.run(), name=f"watch {self.name} {watch.source.kind.plural}")
            for watch in self._watches
        ]

    async def _pulse(self) -> None:
        """A dead network looks like a quiet one: only a question shows the difference."""
        began = self._pace.clock()
        while True:
            try:
                check_dates(self.access, self._pace.now())
                if self.facts is None or self._trouble:
                    self.facts = await _facts(self._client)
                else:
                    await self._client.get("/version", retry=ONCE)
            except (PodWardenError, *ODD_ANSWERS) as error:
                if not isinstance(error, PodWardenError):
                    _log.exception("%s cannot be read", self.access.server)
                silent = self._pace.clock() - (began if self._contact is None else self._contact)
                still = self._contact is not None and silent < self._pace.silent
                self._set_health(reachable=still, trouble=_words(self.access.server, error))
            else:
                lost = bool(self._trouble)
                self._contact = self._pace.clock()
                self._set_health(reachable=True, trouble="")
                if lost:
                    await self._resume()
            await self._pace.sleep(self._pace.pulse)

    def _set_health(self, *, reachable: bool, trouble: str) -> None:
        if (reachable, trouble) != (self._reachable, self._trouble):
            self._reachable, self._trouble = reachable, trouble
            self._index.touch()
        else:
            self._notify()

    async def _resume(self) -> None:
        """Streams that were open across an outage may be dead without knowing it."""
        for task in self._following:
            task.cancel()
        await asyncio.gather(*self._following, return_exceptions=True)
        self._follow()

    # --- writing -------------------------------------------------------------------------------

    async def fence(self) -> int:
        """The fence that the cluster carries now, 0 when none was raised."""
        return await self._fencing.carried()

    async def raise_fence(self, fence: int) -> None:
        """Raises it and ensures what a cluster has once. FenceLost when it is higher already; equal is fine.

        Returns when the cluster surely refuses every lower one.
        """
        served = (self.facts or await _facts(self._client)).served
        await self._fencing.raise_to(fence, served)

    async def apply(self, rendered: Rendered, fence: int) -> None:
        """All objects, the one that starts copies last; then what earlier revisions left goes.

        Conflict code STILL_REMOVING: an earlier object of that name is still on its way out.
        """
        await self._writer.apply(rendered, fence)

    async def remove(self, workload: str, *, keep_volumes: bool, fence: int) -> None:
        """Everything of the workload, half of it or nothing: as much as there is. Returns before copies are gone."""
        await self._writer.remove(workload, keep_volumes=keep_volumes, fence=fence)

    async def remove_instance(self, workload: str, instance: str, fence: int) -> None:
        """One copy; whatever owns it makes another. Nothing happens when it is gone already."""
        await self._writer.remove_instance(workload, instance, fence)

    async def scale(self, workload: str, replicas: int, fence: int) -> None:
        """A service to so many copies; a job to so many at once, 0 = suspended. NotFound without either."""
        await self._writer.scale(workload, replicas, fence)

    async def open_gates(self, workload: str, slots: Sequence[tuple[str, str]], fence: int) -> None:
        """slots: (instance, node). Open ones and those that are gone are passed over."""
        await self._writer.open_gates(workload, slots, fence)

    async def set_holds(self, holds: Sequence[Hold], fence: int) -> None:
        """These and no others. A cluster that cannot hold has none, whatever is asked."""
        if "devicetaintrules" in (self.facts or await _facts(self._client)).served:
            await self._writer.set_holds(holds, fence)

    # --- reading on demand -----------------------------------------------------------------------

    def logs(
        self,
        workload: str,
        *,
        instance: str | None = None,
        follow: bool = False,
        tail: int | None = None,
    ) -> AsyncIterator[str]:
        """Lines as they were printed, control characters included, at most 64 KiB each.

        Several copies: each line behind its copy's name. NotFound for an instance that is none of this workload.
        """
        logs = Logs(self._client, self._index, self.wait_change, sleep=self._pace.sleep)
        return logs.lines(workload, instance=instance, follow=follow, tail=tail)

    async def last_words(self, instance: Instance, *, previous: bool, lines: int) -> LastWords:
        """What one copy printed last, at most 64 KiB, and what the cluster said of it. previous: of its run before.

        Empty where there is nothing. Unavailable.
        """
        return await read_last_words(
            self._client, instance.name, instance.uid, previous=previous, lines=lines
        )

    async def adoptable(self) -> tuple[Adopted, ...]:
        """What an earlier PodWarden left, by name. Records that cannot be read are named in `damaged`."""
        records, deployments, jobs = await asyncio.gather(
            self._client.list(kinds.CONFIG_MAP.path(NAMESPACE), params={"labelSelector": RECORD}),
            self._client.list(kinds.DEPLOYMENT.path(NAMESPACE), params=_OWN),
            self._client.list(kinds.JOB.path(NAMESPACE), params=_OWN),
        )
        found, self.damaged = read_adoptable(records, [*deployments, *jobs])
        return found

    async def ready(self, timeout: float) -> Observation:  # noqa: ASYNC109 - like wait_change
        """The first complete observation. Unavailable, with the cause, when it takes longer."""
        ends = self._pace.clock() + timeout
        while True:
            seen = self.observe()
            left = ends - self._pace.clock()
            if seen.complete:
                return seen
            if left <= 0:
                raise Unavailable(
                    seen.trouble or f"{self.access.server} was not read completely in time."
                )
            await self.wait_change(seen.revision, left)
