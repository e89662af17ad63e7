"""The last words of copies that are in trouble: read beside the loops, once for each end, and kept for the judgement."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence

from podwarden.control.charges import LIVE
from podwarden.control.link import Link
from podwarden.control.symptoms import NOTHING
from podwarden.domain.observation import Instance, LastWords
from podwarden.domain.workload import State, Workload
from podwarden.errors import PodWardenError

LINES = 20  # kept beside a reason
READ_WITHIN = 4.0  # seconds; after that the judgement goes on without
AT_ONCE = 4

Key = tuple[str, int, str, str]


def speaker(
    row: Workload, instances: Sequence[Instance], lost_nodes: Collection[str]
) -> Instance | None:
    """The copy whose words would explain the state; None where nothing is in trouble."""
    troubled = [i for i in instances if i.node not in lost_nodes and _in_trouble(i, row)]
    return max(troubled, key=_lately, default=None)


def _in_trouble(instance: Instance, row: Workload) -> bool:
    if instance.phase == "failed":
        return row.spec.job is not None
    if instance.terminating or instance.ready or instance.phase not in LIVE or not instance.node:
        return False
    served = row.state in (State.RUNNING, State.UNHEALTHY)
    return bool(instance.restarts) or (instance.phase == "running" and row.spec.endless and served)


def _lately(instance: Instance) -> tuple[bool, str, int, str]:
    at = instance.ended_at or instance.created_at
    return instance.phase in LIVE, at.isoformat() if at else "", instance.restarts, instance.name


class LastWordsBook:
    """hint: called when words have come. What cannot be read in time counts as silence."""

    def __init__(self, link: Link, hint: Callable[[], None]) -> None:
        self._link = link
        self._hint = hint
        self._known: dict[str, tuple[Key, LastWords]] = {}
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._limit = asyncio.Semaphore(AT_ONCE)

    def of(self, workload: str, instance: Instance) -> LastWords | None:
        """None: not read yet; it is being read now."""
        known = self._known.get(workload)
        if known is not None and known[0] == _key(instance):
            return known[1]
        if workload not in self._reading:
            task = asyncio.create_task(self._read(workload, instance), name=f"words of {workload}")
            self._reading[workload] = task
        return None

    def forget(self, workload: str) -> None:
        self._known.pop(workload, None)

    async def stop(self) -> None:
        tasks = list(self._reading.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, workload: str, instance: Instance) -> None:
        said = NOTHING
        try:
            async with self._limit, asyncio.timeout(READ_WITHIN):
                # Of a program that runs again, what explains its end is in the run before.
                previous = bool(instance.restarts) and instance.phase in LIVE
                said = await self._link.last_words(instance, previous=previous, lines=LINES)
        except (TimeoutError, PodWardenError):
            pass
        finally:
            self._reading.pop(workload, None)
        self._known[workload] = (_key(instance), said)
        self._hint()


def _key(instance: Instance) -> Key:
    """As long as this stays, it says nothing new."""
    return instance.uid, instance.restarts, instance.phase, instance.reason
