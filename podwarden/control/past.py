"""What past runs teach: how long each template takes, and which requests are common; and where storages lie. Read seldom."""

from __future__ import annotations

from datetime import timedelta

from podwarden.control.needs import storages_of
from podwarden.domain.workload import Workload
from podwarden.store import Store, Unit

MOST = 50_000  # templates, or images with names, that are remembered
MIX_AFTER = 20  # finished jobs after which the mix of requests is read again


class Past:
    """A small cache over the store's history; `learned` is called after each finished job."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._longest: dict[str, timedelta | None] = {}
        self._learned = 0
        self.mix: tuple[tuple[int, int, int], ...] = ()
        self.places: dict[str, str] = {}  # storage that lies on one node -> that node

    async def refresh(self) -> None:
        self._learned = 0
        self.mix = await self._store.read(lambda unit: unit.history.mix())

    async def know(self, workloads: list[Workload]) -> None:
        """Make `expected` and `places` answer for these; one read for all that are new."""
        if any(storages_of(workload.spec) for workload in workloads):
            found = await self._store.read(lambda unit: unit.storages.list())
            self.places = {storage.name: storage.node for storage in found if storage.node}
        if self._learned >= MIX_AFTER:
            await self.refresh()
        if len(self._longest) > MOST:
            self._longest = {}
        new = {template_of(w) for w in workloads if not w.spec.endless} - self._longest.keys()
        if not new:
            return

        def read(unit: Unit) -> dict[str, timedelta | None]:
            return {template: unit.history.longest(template) for template in new}

        self._longest.update(await self._store.read(read))

    def expected(self, workload: Workload) -> timedelta | None:
        """The longest it took before; None for services and first runs."""
        return None if workload.spec.endless else self._longest.get(template_of(workload))

    def learned(self, workload: Workload, seconds: float) -> None:
        self._learned += 1
        known = self._longest.get(template_of(workload))
        took = timedelta(seconds=seconds)
        self._longest[template_of(workload)] = max(known, took) if known is not None else took


def template_of(workload: Workload) -> str:
    """What runs are compared by: the template, else the image and the name."""
    return workload.spec.template or f"{workload.spec.image} {workload.name}"
