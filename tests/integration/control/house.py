"""A whole control plane on a real database and a cluster in memory."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime

from podwarden.domain.access import Role, User
from podwarden.domain.request import Request, Sharing
from podwarden.domain.workload import JobSpec, Kind, Spec

ADMIN = User("admin", Role.ADMIN, datetime(2030, 1, 1, tzinfo=UTC))
ANN = User("ann", Role.MEMBER, datetime(2030, 1, 1, tzinfo=UTC))
BOB = User("bob", Role.MEMBER, datetime(2030, 1, 1, tzinfo=UTC))
EVE = User("eve", Role.VIEWER, datetime(2030, 1, 1, tzinfo=UTC))
DEADLINE = 10.0  # seconds in which everything that is waited for must happen


def service(name="web", vram_gb=8, **changes):
    shared = changes.pop("shared", False)
    sharing = Sharing.SHARED if shared else Sharing.DEDICATED
    gpu = Request(vram_mib=vram_gb * 1024, sharing=sharing) if vram_gb else None
    return Spec(name=name, kind=Kind.SERVICE, image="example/web:1", gpu=gpu, **changes)


def job(name="render", vram_gb=8, **changes):
    own = {k: changes.pop(k) for k in list(changes) if k in JobSpec.__dataclass_fields__}
    gpu = Request(vram_mib=vram_gb * 1024) if vram_gb else None
    return Spec(name=name, kind=Kind.JOB, image="example/job:1", gpu=gpu, job=JobSpec(**own), **changes)  # fmt: skip


class House:
    """One PodWarden and what tests ask of it."""

    def __init__(self, app, cluster):
        self.app = app
        self.cluster = cluster
        self.workloads = app.controller.workloads
        self.clusters = app.controller.clusters
        self.access = app.controller.access

    async def row(self, ref):
        return await self.workloads.show(ADMIN, ref)

    async def reaches(self, ref, *states):
        """The row once it is in one of the states."""

        async def look():
            row = await self.row(ref)
            return row if row.state in states else None

        return await eventually(look, f"{ref} in {states}")

    async def texts(self, ref):
        return [event.text for event in await self.workloads.events(ADMIN, ref)]

    async def kinds(self, ref):
        return [event.kind.value for event in await self.workloads.events(ADMIN, ref)]

    async def acts(self):
        """Once its loops run."""
        await eventually(
            lambda: (
                self.app.leader.rooms.get("home") is not None
                and self.app.leader.rooms["home"].admission is not None
            ),
            "the loops of home",
        )


async def eventually(condition, what):
    """The first true answer. Polls without holding the loop up."""
    ends = time.monotonic() + DEADLINE
    while True:
        answer = condition()
        if asyncio.iscoroutine(answer):
            answer = await answer
        if answer:
            return answer
        assert time.monotonic() < ends, f"not within {DEADLINE} s: {what}"
        await asyncio.sleep(0.01)
