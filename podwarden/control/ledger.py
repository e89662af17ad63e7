"""The index of active workloads, and the one way to write: what was committed is indexed and announced.

The store is the truth. `Books` keeps the active rows of one cluster in memory, so that a planning pass does
not read ten thousand rows; they are filled when this process starts to lead, fed by its own writes, and by
the events of other processes (`Ledger.follow`). A row that turns out stale is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypeVar

from podwarden.control.books import Books
from podwarden.control.clock import Clock
from podwarden.control.feed import Feed
from podwarden.control.loop import Turn
from podwarden.domain.event import Event, EventKind
from podwarden.domain.workload import Revision, Workload
from podwarden.errors import Conflict, NotFound
from podwarden.store import Store, Unit

T = TypeVar("T")

FOLLOW_SECONDS = 1.0  # how soon orders taken by another process are seen
MOST_EVENTS = 500  # read per turn


class Entry:
    """One transaction as the ledger sees it: rows saved, events written, rows that were stale."""

    def __init__(self, unit: Unit, now: datetime) -> None:
        self.unit = unit
        self.now = now
        self.saved: list[Workload] = []
        self.gone: list[Workload] = []
        self.stale: list[str] = []
        self.events: list[Event] = []

    def add(self, workload: Workload, *revisions: Revision) -> Workload:
        """Raises Conflict: the name is taken in that cluster."""
        self.unit.workloads.add(workload, revisions[-1])
        for revision in revisions[:-1]:
            self.unit.workloads.add_revision(revision)
        self.saved.append(workload)
        return workload

    def save(self, workload: Workload) -> Workload | None:
        """None when somebody else changed or removed the row meanwhile: it is read again after the commit."""
        try:
            saved = self.unit.workloads.save(workload)
        except NotFound:
            self.gone.append(workload)
            return None
        except Conflict as conflict:
            if conflict.code != "STALE":
                raise
            self.stale.append(workload.id)
            return None
        self.saved.append(saved)
        return saved

    def forget(self, workload: Workload) -> None:
        self.unit.workloads.delete(workload.id)
        self.gone.append(workload)

    def note(
        self,
        workload: Workload,
        kind: EventKind,
        text: str,
        *,
        actor: str = "podwarden",
        code: str = "",
    ) -> None:
        self.tell(workload.id, kind, text, actor=actor, code=code, name=workload.name)

    def tell(
        self,
        subject: str,
        kind: EventKind,
        text: str,
        *,
        actor: str = "podwarden",
        code: str = "",
        name: str = "",
    ) -> None:
        event = Event(self.now, subject, kind, text, actor=actor, code=code, name=name)
        self.events.append(self.unit.events.append(event))


class Ledger:
    """listeners: called with a cluster's name after its rows changed (the room of that cluster)."""

    def __init__(self, store: Store, feed: Feed, clock: Clock) -> None:
        self.store = store
        self._feed = feed
        self._clock = clock
        self._books: dict[str, Books] = {}
        self._listeners: dict[str, Callable[[], None]] = {}
        self._own: set[int] = set()
        self._last_event = 0
        self.clusters_changed: Callable[[], None] = lambda: None

    def books(self, cluster: str) -> Books | None:
        """None: this process does not lead that cluster."""
        return self._books.get(cluster)

    def all_books(self) -> Iterable[Books]:
        return self._books.values()

    async def open_books(self, cluster: str, listener: Callable[[], None]) -> Books:
        """Read every active row; from here on they are kept up to date."""
        books = Books(cluster)
        self._books[cluster] = books
        self._listeners[cluster] = listener
        for row in await self.store.read(lambda unit: unit.workloads.active(cluster)):
            books.put(row)
        return books

    def close_books(self, cluster: str) -> None:
        self._books.pop(cluster, None)
        self._listeners.pop(cluster, None)

    async def write(self, work: Callable[[Entry], T], *, fence: int | None = None) -> T:
        """One transaction. Raises what `work` raises, and FenceLost."""
        now = self._clock.now()

        def inside(unit: Unit) -> tuple[T, Entry]:
            entry = Entry(unit, now)
            return work(entry), entry

        result, entry = await self.store.write(inside, fence=fence)
        self._take(entry)
        if entry.stale:
            await self._read_again(entry.stale)
        return result

    def publish(self, kind: str, cluster: str) -> None:
        """What no row tells: `gpus`, `queue` of a cluster changed."""
        self._feed.publish(kind, cluster)

    async def follow(self) -> Turn:
        """Learn what other processes wrote."""
        events = await self.store.read(
            lambda unit: unit.events.since(self._last_event, MOST_EVENTS)
        )
        if not events:
            return Turn(again=FOLLOW_SECONDS)
        foreign = [event for event in events if event.id not in self._own]
        subjects = dict.fromkeys(event.subject for event in foreign)
        await self._read_again([subject for subject in subjects if "/" not in subject])
        # Only now: what could not be read is asked for again.
        self._last_event = events[-1].id
        self._own = {number for number in self._own if number > self._last_event}
        for subject in subjects:
            self._announce(subject)
        said = f"{len(foreign)} events of another process" if foreign else ""
        return Turn(said, 0 if len(events) >= MOST_EVENTS else FOLLOW_SECONDS)

    async def start_following(self) -> None:
        """From now on; what was before is in the rows."""
        last = await self.store.read(lambda unit: unit.events.last_id())
        self._last_event = max(self._last_event, last)

    def _take(self, entry: Entry) -> None:
        self._own.update(event.id for event in entry.events)
        touched: set[str] = set()
        for row in entry.saved:
            if (books := self._books.get(row.cluster)) is not None:
                books.put(row)
                touched.add(row.cluster)
        for row in entry.gone:
            if (books := self._books.get(row.cluster)) is not None:
                books.drop(row.id)
                touched.add(row.cluster)
        for subject in dict.fromkeys(
            [row.id for row in (*entry.saved, *entry.gone)]
            + [event.subject for event in entry.events]
        ):
            self._announce(subject)
        for cluster in touched:
            self._listeners[cluster]()

    def _announce(self, subject: str) -> None:
        if subject.startswith("cluster/"):
            self._feed.publish("cluster", subject.removeprefix("cluster/"))
            self.clusters_changed()
        elif "/" not in subject:
            self._feed.publish("workload", subject)

    async def fetch(self, cluster: str, ids: Iterable[str]) -> set[str]:
        """Index these rows too (ended ones); gives the ids that the store does not know."""
        wanted = list(ids)
        books = self._books[cluster]
        rows = await self.store.read(lambda unit: [_get(unit, row) for row in wanted])
        unknown: set[str] = set()
        for identity, row in zip(wanted, rows, strict=True):
            if row is None or row.cluster != cluster:
                unknown.add(identity)
            else:
                books.put(row)
        return unknown

    async def _read_again(self, ids: list[str]) -> None:
        if not ids or not self._books:
            return

        def load(unit: Unit) -> list[Workload | None]:
            return [_get(unit, row) for row in ids]

        touched: set[str] = set()
        for identity, row in zip(ids, await self.store.read(load), strict=True):
            for books in self._books.values():
                if row is None and books.drop(identity):
                    touched.add(books.cluster)
                elif row is not None and row.cluster == books.cluster:
                    books.put(row)
                    touched.add(books.cluster)
        for cluster in touched:
            self._listeners[cluster]()


def _get(unit: Unit, workload: str) -> Workload | None:
    try:
        return unit.workloads.get(workload)
    except NotFound:
        return None
