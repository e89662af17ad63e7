"""The one place that builds everything: store, links, leader, use cases."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from podwarden import catalog
from podwarden.control.access import Access
from podwarden.control.clock import Clock, SystemClock
from podwarden.control.clusters import Clusters, Probe
from podwarden.control.controller import Controller
from podwarden.control.feed import Feed
from podwarden.control.holder import own_name
from podwarden.control.leader import Leader
from podwarden.control.ledger import Ledger
from podwarden.control.link import Link
from podwarden.control.links import Connect, Links
from podwarden.control.loop import Loop
from podwarden.control.reach import NfsServers
from podwarden.control.render import render_row
from podwarden.control.rollout import Renderer
from podwarden.control.room import Room
from podwarden.control.secrets import Login, Secrets
from podwarden.control.storage import Storages
from podwarden.control.tidying import Tidying
from podwarden.control.workloads import Workloads
from podwarden.errors import Conflict
from podwarden.kube import connect as kubeconfig
from podwarden.kube.link import Link as KubeLink
from podwarden.kube.link import probe as look_at
from podwarden.kube.registry import check_login
from podwarden.settings import Settings
from podwarden.store import Store

log = logging.getLogger("podwarden")

FIRST_USER = "admin"


@dataclass
class App:
    """start() returns once the loops are on their way; stop() gives the lease back and closes everything.

    first_password: of the user `admin`, when this start made it and nobody chose one; shown once.
    """

    settings: Settings
    controller: Controller
    store: Store
    ledger: Ledger
    links: Links
    leader: Leader
    loops: tuple[Loop, ...]
    first_password: str = ""
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def start(self) -> None:
        """Invalid: the password chosen for the first user is too short."""
        self.first_password = await _first_user(
            self.controller.access, self.settings.admin_password
        )
        await self.ledger.start_following()
        await self.links.turn()
        self._tasks = [
            asyncio.create_task(self.leader.run(), name="leader"),
            *(asyncio.create_task(loop.run(), name=loop.name) for loop in self.loops),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        self.controller.feed.close()
        await self.links.close()
        await self.store.close()


def build(
    settings: Settings,
    *,
    clock: Clock | None = None,
    connect: Connect | None = None,
    probe: Probe | None = None,
    render: Renderer = render_row,
    servers: NfsServers | None = None,
    registry_login: Login = check_login,
    holder: str = "",
) -> App:
    """Opens the store (SetupFailed, in a sentence) and ties everything together; nothing runs yet.

    connect, probe, render: how a cluster is reached and spoken to (tests bring their own). servers, registry_login: how
    NFS servers and registries are looked for. holder: this process among those that may lead.
    """
    clock = clock or SystemClock()
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    url = settings.database_url or f"sqlite:///{settings.data / 'podwarden.db'}"
    catalogue = catalog.load(settings.templates)
    for broken in catalogue.broken:
        log.warning("a template is skipped: %s", broken)
    store = Store.open(url, settings.data / "secrets.key")
    feed = Feed()
    ledger = Ledger(store, feed, clock)
    links = Links(store, connect or _connect)

    def make_room(cluster: str, fence: Callable[[], int]) -> Room:
        link = links.get(cluster)
        return Room(cluster, link, ledger, clock, fence=fence, render=render)

    leader = Leader(
        store, links, clock, make_room, holder=holder or own_name(), seconds=settings.lease_seconds
    )
    follow = Loop("events of other processes", ledger.follow, clock)
    connections = Loop("connections", links.turn, clock)
    tidying = Loop("tidying", Tidying(store, leader, clock).turn, clock)
    ledger.clusters_changed = connections.hint
    servers = servers or NfsServers(clock)
    workloads = Workloads(ledger, links, leader, clock, servers)
    controller = Controller(
        workloads,
        Clusters(ledger, links, workloads, clock, probe=probe or _probe),
        Access(ledger),
        Storages(ledger, workloads, clock, servers),
        Secrets(ledger, registry_login),
        feed,
        catalogue,
        leader,
        store,
    )
    return App(settings, controller, store, ledger, links, leader, (follow, connections, tidying))


def _connect(name: str, text: str) -> Link:
    return KubeLink(name, kubeconfig.read_kubeconfig(text))


async def _probe(text: str) -> tuple[str, str]:
    access = await asyncio.to_thread(kubeconfig.read_kubeconfig, text)
    facts = await look_at(access)
    return access.server, facts.version


async def _first_user(access: Access, chosen: str) -> str:
    """The generated password, "" when there are users already or one was chosen."""
    made_up = "" if chosen else secrets.token_urlsafe(12)
    try:
        await access.first_user(FIRST_USER, chosen or made_up)
    except Conflict:
        return ""
    return made_up
