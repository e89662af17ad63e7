"""What every use case needs: finding a workload, asking who may, seeing a cluster as the plan sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from podwarden.control import snapshot
from podwarden.control.books import Books
from podwarden.control.clock import Clock
from podwarden.control.leader import Leader
from podwarden.control.ledger import Ledger
from podwarden.control.links import Links
from podwarden.control.never import Never
from podwarden.control.past import Past
from podwarden.control.reach import NfsServers
from podwarden.control.room import Room
from podwarden.control.sight import Sight
from podwarden.domain.access import Role, User, may_change
from podwarden.domain.inventory import Node
from podwarden.domain.placement import Snapshot
from podwarden.domain.reason import Reason
from podwarden.domain.workload import Spec, Workload
from podwarden.errors import Conflict, Forbidden, Invalid, NotFound
from podwarden.store import Unit

T = TypeVar("T")

AMBIGUOUS = "AMBIGUOUS_NAME"


@dataclass(slots=True)
class Recent:
    """Answers to one question for each cluster that are given again while they are fresh. locks: one asks, the
    others wait for its answer.
    """

    answers: dict[str, tuple[float, object, Any]] = field(default_factory=dict)
    locks: dict[str, asyncio.Lock] = field(default_factory=dict)

    async def get(
        self,
        key: str,
        asked: object,
        make: Callable[[], Awaitable[T]],
        *,
        now: Callable[[], float],
        fresh: float,
    ) -> T:
        """The answer to `asked` that is at most `fresh` seconds old, else a new one."""
        async with self.locks.setdefault(key, asyncio.Lock()):
            known = self.answers.get(key)
            if known is not None and now() - known[0] < fresh and known[1] == asked:
                return cast("T", known[2])
            made = await make()
            self.answers[key] = (now(), asked, made)
            return made


class UseCases:
    """Shared by all use cases about workloads; holds no state but answers that it remembers."""

    def __init__(
        self,
        ledger: Ledger,
        links: Links,
        leader: Leader,
        clock: Clock,
        servers: NfsServers | None = None,
    ) -> None:
        self._ledger = ledger
        self._servers = servers or NfsServers(clock)
        self._links = links
        self._leader = leader
        self._clock = clock
        self._never = Never()
        self._recent = Recent()

    def _room(self, cluster: str) -> Room | None:
        """None: this process does not act on that cluster (yet)."""
        room = self._leader.rooms.get(cluster)
        return room if room is not None and room.desk is not None else None

    def _clusters(self, cluster: str) -> list[str]:
        """The one named (NotFound), or all."""
        if cluster and cluster not in self._links.clusters:
            raise NotFound(f"There is no cluster named {cluster}.")
        return [cluster] if cluster else sorted(self._links.clusters)

    def _cluster_for(self, wanted: str) -> str:
        """Where a new workload goes. Invalid names the field `cluster`."""
        names = sorted(self._links.clusters)
        if wanted in names:
            return wanted
        if wanted or len(names) > 1:
            raise Invalid.of("cluster", wanted, f"one of {', '.join(names)}" if names else _NONE)
        if not names:
            raise Conflict(f"There is no cluster yet: {_NONE}.", code="NO_CLUSTER")
        return names[0]

    def trouble(self, cluster: str) -> str:
        """Why a cluster is not acted on though this process leads, "" when it is."""
        return self._leader.trouble(cluster)

    async def _sight(self, cluster: str) -> Sight:
        """From memory where this process leads, else from the store."""
        seen = self._links.get(cluster).observe()
        room = self._room(cluster)
        if room is not None and room.desk is not None:
            desk = room.desk
            return Sight(desk.books, desk.past, seen, desk.known)
        past = Past(self._ledger.store)
        await past.refresh()

        def read(unit: Unit) -> tuple[tuple[Workload, ...], tuple[Node, ...]]:
            return unit.workloads.active(cluster), unit.devices.known(cluster)

        rows, known = await self._ledger.store.read(read)
        books = Books(cluster)
        for row in rows:
            books.put(row)
        return Sight(books, past, seen, {node.name: node for node in known})

    def _snapshot(self, sight: Sight) -> Snapshot:
        now = self._clock.now().astimezone()
        return snapshot.build(sight.books, sight.seen, sight.known, sight.past, now)

    def _refusal(self, row: Workload, sight: Sight) -> Reason | None:
        """Why it can never run on anything ever seen; None: it may."""
        seen = sight.seen
        bare = Snapshot(
            cluster=row.cluster,
            taken_at=seen.taken_at,
            nodes=snapshot.merge_known(seen.nodes, sight.known),
            capabilities=seen.capabilities,
            complete=seen.complete,
            reachable=seen.reachable,
        )
        now = self._clock.now().astimezone()
        return self._never.reason(bare, snapshot.new_claimant(row, seen, sight.past, now))


def find(unit: Unit, ref: str, cluster: str) -> Workload:
    """By id, else by name. NotFound; Conflict AMBIGUOUS_NAME names the clusters."""
    try:
        row = unit.workloads.get(ref)
    except NotFound:
        pass
    else:
        if not cluster or row.cluster == cluster:
            return row
    try:
        return unit.workloads.by_name(ref, cluster or None)
    except NotFound:
        raise
    except Conflict as conflict:
        raise Conflict(conflict.message, code=AMBIGUOUS) from conflict


def allow(actor: User, row: Workload) -> None:
    """Forbidden, in a sentence."""
    if not may_change(actor, row.owner):
        raise Forbidden(f"{row.name} belongs to {row.owner}: only they and admins may change it.")


def allow_look(actor: User) -> None:
    """Everybody who may come in may look at everything."""
    if actor.disabled:
        raise Forbidden(f"The user {actor.name} is disabled.")


def allow_host(actor: User, spec: Spec) -> None:
    """What reaches out of its container is the admins' to give. Forbidden."""
    if actor.role is Role.ADMIN:
        return
    if spec.devices:
        raise Forbidden("Only admins may give a workload devices of its host (`devices`).")
    if spec.host_network:
        raise Forbidden("Only admins may give a workload its node's network (`host_network`).")


def allow_new(actor: User) -> None:
    if actor.role is Role.VIEWER:
        raise Forbidden("Viewers may look at everything and change nothing.")


_NONE = "add one with `podwarden cluster adopt`"
