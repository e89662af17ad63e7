"""Storages: named places for data that workloads refer to. Admins add and remove them; everybody may look."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from podwarden.control import needs
from podwarden.control.answers import StorageView
from podwarden.control.clock import Clock
from podwarden.control.ground import allow_look
from podwarden.control.ledger import Entry, Ledger
from podwarden.control.queries import Queries
from podwarden.control.reach import NfsServers
from podwarden.domain.access import Role, User
from podwarden.domain.event import EventKind
from podwarden.domain.storage import HOST_FIX, NFS_FIX, Storage, parse_host, parse_nfs
from podwarden.errors import Conflict, Forbidden, Invalid, NotFound, Problem
from podwarden.store import Unit
from podwarden.store.book import check_name

T = TypeVar("T")


class Storages:
    def __init__(self, ledger: Ledger, queries: Queries, clock: Clock, servers: NfsServers) -> None:
        self._ledger = ledger
        self._queries = queries
        self._clock = clock
        self._servers = servers

    async def add(
        self,
        actor: User,
        name: str,
        *,
        nfs: str = "",
        host: str = "",
        cluster: str = "",
        check: bool = True,
    ) -> StorageView:
        """nfs: `nas:/media`; host: `gpu1:/srv/renders`, in `cluster` where several have such a node.

        check: an NFS server must answer, now and before each workload that needs it. Invalid; Conflict NAME_TAKEN.
        """
        _admins(actor, "add")
        storage = await self._described(actor, name, nfs, host, cluster, check=check)
        await self._ledger.store.read(lambda unit: _name_is_free(unit, name))
        if storage.nfs and check:
            trouble = await self._servers.trouble(storage.server)
            if trouble:
                raise Invalid.of(
                    "nfs",
                    nfs,
                    f"an NFS server that answers; {trouble}. With --no-check it is added without looking",
                )

        def work(entry: Entry) -> None:
            entry.unit.storages.add(storage)
            text = f"Storage {name} was added: {storage.place}."
            entry.tell(f"storage/{name}", EventKind.STORAGE, text, actor=actor.name, name=name)

        await self._ledger.write(work)
        return StorageView(storage)

    async def list(self, actor: User) -> tuple[StorageView, ...]:
        """By name, each with the workloads that refer to it."""
        allow_look(actor)

        def read(unit: Unit) -> tuple[StorageView, ...]:
            found = unit.storages.list()
            users = needs.users(unit, needs.storages_of) if found else {}
            return tuple(
                StorageView(each, tuple(row.name for row in users.get(each.name, ())))
                for each in found
            )

        return await self._ledger.store.read(read)

    async def remove(self, actor: User, name: str) -> None:
        """What lies there is not touched. Conflict STORAGE_IN_USE names the workloads; NotFound."""
        _admins(actor, "remove")

        def work(entry: Entry) -> None:
            storage = entry.unit.storages.get(name)
            users = [row.name for row in needs.users(entry.unit, needs.storages_of).get(name, ())]
            if users:
                raise Conflict(
                    f"The storage {name} is used by {needs.listed(users)}: delete them or give them another one first.",
                    code="STORAGE_IN_USE",
                )
            entry.unit.storages.remove(name)
            text = f"Storage {name} ({storage.place}) was removed. What lies there was not touched."
            entry.tell(f"storage/{name}", EventKind.STORAGE, text, actor=actor.name, name=name)

        await self._ledger.write(work)

    async def _described(
        self, actor: User, name: str, nfs: str, host: str, cluster: str, *, check: bool
    ) -> Storage:
        found: list[Problem] = []
        _gather(found, lambda: check_name("name", name))
        if bool(nfs) == bool(host):
            what = "one of them, not both" if nfs else f"nfs: {NFS_FIX}; or host: {HOST_FIX}"
            found.append(Problem("nfs" if nfs else "place", nfs, what))
        place = _gather(found, lambda: _place(nfs, host)) or ("", "")
        if nfs and cluster:
            found.append(
                Problem("cluster", cluster, "goes with host only: every cluster may use NFS")
            )
        if found:
            raise Invalid(found)
        at, path = place
        now = self._clock.now()
        if nfs:
            return Storage(name, path, now, actor.name, server=at, checked=check)
        return Storage(
            name, path, now, actor.name, cluster=await self._cluster_of(actor, host, at, cluster), node=at
        )  # fmt: skip

    async def _cluster_of(self, actor: User, host: str, node: str, cluster: str) -> str:
        """The one that has this node. Invalid names `host` or `cluster`."""
        try:
            seen = await self._queries.nodes(actor, cluster)
        except NotFound as error:
            raise Invalid.of("cluster", cluster, "the name of a cluster") from error
        having = sorted(name for name, each in seen if each.name == node)
        if not having:
            known = needs.listed(sorted(each.name for _, each in seen)) or "no node"
            raise Invalid.of("host", host, f"a folder of a node that is known; there is {known}")
        if len(having) > 1:
            raise Invalid.of(
                "cluster", "", f"which of {needs.listed(having)}, since each has a node {node}"
            )
        return having[0]


def _place(nfs: str, host: str) -> tuple[str, str]:
    if nfs:
        return parse_nfs(nfs)
    return parse_host(host) if host else ("", "")


def _gather(found: list[Problem], step: Callable[[], T]) -> T | None:
    """What a step gives, or its problems beside the others."""
    try:
        return step()
    except Invalid as invalid:
        found.extend(invalid.problems)
        return None


def _name_is_free(unit: Unit, name: str) -> None:
    """Said before anything is waited for; the store asks again."""
    try:
        unit.storages.get(name)
    except NotFound:
        return
    raise Conflict(
        f"There is a storage named {name} already: choose another name.", code="NAME_TAKEN"
    )


def _admins(actor: User, do: str) -> None:
    if actor.role is not Role.ADMIN:
        raise Forbidden(f"Only admins may {do} a storage.")
