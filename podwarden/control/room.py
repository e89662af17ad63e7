"""One cluster that this process leads: its index, its loops, what wakes them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from podwarden.control.admission import Admission
from podwarden.control.clock import Clock
from podwarden.control.desk import Desk
from podwarden.control.health import Health
from podwarden.control.ledger import Ledger
from podwarden.control.link import Link
from podwarden.control.loop import Loop
from podwarden.control.past import Past
from podwarden.control.pending import PendingUpdates
from podwarden.control.rollout import Renderer, Rollout
from podwarden.errors import FenceLost, PodWardenError, Refused, Unavailable

log = logging.getLogger("podwarden.control")

HINTED = 3  # loops that a change wakes; the others look by themselves
LOOK = 5.0  # seconds between looks at the fence while the cluster is quiet
LET_GO = 2.0  # seconds at the end for giving holds back
STANDING = 30.0  # seconds between looks at what the cluster has once
RAISE_AGAIN = 1.0  # seconds between tries to raise the fence of a cluster that does not answer, or not as it should
# A turn looks at everything, so under load fewer and larger ones cost less: a loop works at most a quarter of the time.
PACE = 0.25


class Room:
    """run() until it is cancelled; FenceLost when another PodWarden acts on this cluster."""

    def __init__(
        self,
        cluster: str,
        link: Link,
        ledger: Ledger,
        clock: Clock,
        *,
        fence: Callable[[], int],
        render: Renderer,
        standing: float = STANDING,
    ) -> None:
        self._standing = standing
        self.cluster = cluster
        self.link = link
        self.trouble = "is starting"
        self._ledger = ledger
        self._clock = clock
        self._fence = fence
        self._render = render
        self._never = asyncio.Event()
        self.desk: Desk | None = None
        self.admission: Admission | None = None
        self.loops: tuple[Loop, ...] = ()

    async def run(self) -> None:
        await self._raise_fence()
        books = await self._ledger.open_books(self.cluster, self.hint)
        try:
            past = Past(self._ledger.store)
            await past.refresh()
            known = await self._ledger.store.read(lambda unit: unit.devices.known(self.cluster))
            desk = Desk(
                self.cluster, self.link, self._ledger, books, past, self._clock, self._fence,
                {node.name: node for node in known},
            )  # fmt: skip
            await self._run_loops(desk)
        finally:
            self.desk = self.admission = None
            self._ledger.close_books(self.cluster)

    def hint(self) -> None:
        for loop in self.loops[:HINTED]:
            loop.hint()

    async def _run_loops(self, desk: Desk) -> None:
        rollout = Rollout(desk, self._render)
        admission = Admission(desk, rollout)
        health = Health(desk)
        pending = PendingUpdates(desk)
        self.loops = tuple(
            Loop(f"{name} of {self.cluster}", turn, self._clock, pace=PACE)
            for name, turn in (
                ("admission", admission.turn),
                ("rollout", rollout.turn),
                ("health", health.turn),
                ("pending updates", pending.turn),
            )
        )
        rollout.hint = self.loops[1].hint
        health.hint = self.loops[2].hint
        self.desk, self.admission = desk, admission
        self.trouble = ""
        try:
            async with asyncio.TaskGroup() as group:
                for loop in self.loops:
                    group.create_task(loop.run(), name=loop.name)
                group.create_task(self._watch(), name=f"watch of {self.cluster}")
                group.create_task(self._stand(), name=f"standing of {self.cluster}")
        finally:
            await rollout.stop()
            await health.stop()
            await self._let_go(desk)

    async def _let_go(self, desk: Desk) -> None:
        """A hold that stayed would keep a free GPU from what fails over while no PodWarden acts."""
        if not self.link.observe().holds:
            return
        try:
            async with asyncio.timeout(LET_GO):
                await self.link.set_holds((), desk.fence())
        except (PodWardenError, TimeoutError):
            return  # another one acts, or the cluster does not answer: the next leader puts it right

    async def _raise_fence(self) -> None:
        """Before anything else: from now on the cluster refuses what an older leader still sends."""
        while True:
            try:
                await self.link.raise_fence(self._fence())
            except (Unavailable, Refused) as trouble:
                self.trouble = trouble.message
                await self._clock.wait(self._never, RAISE_AGAIN)
            else:
                return

    async def _stand(self) -> None:
        """Its space, its fence and its classes may be deleted by hand as workloads may: they are made again."""
        while True:
            await self._clock.wait(self._never, self._standing)
            try:
                await self.link.raise_fence(self._fence())
            except FenceLost:
                raise
            except PodWardenError as error:
                log.warning("what %s has once: %s", self.cluster, error)

    async def _watch(self) -> None:
        revision = -1
        while True:
            self._fence()
            new = await self.link.wait_change(revision, LOOK)
            if new != revision:
                revision = new
                self.hint()
