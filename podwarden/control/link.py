"""What the loops need of one cluster. `kube.link.Link` is it; tests bring a recording double with faults."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

from podwarden.domain.observation import Instance, LastWords, Observation
from podwarden.domain.placement import Hold


class Link(Protocol):
    """Every writing call raises FenceLost (another PodWarden leads), Refused (the cluster will not have it),
    Conflict, or Unavailable (it does not answer now).
    """

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    def observe(self) -> Observation:
        """From the watch cache; never blocks."""
        ...

    async def wait_change(self, after: int, timeout: float) -> int:  # noqa: ASYNC109
        """The revision once it is above `after`, or the same one after `timeout` seconds."""
        ...

    async def fence(self) -> int:
        """The fence the cluster carries, 0 = none."""
        ...

    async def raise_fence(self, fence: int) -> None: ...

    async def apply(self, rendered: Any, fence: int) -> None: ...

    async def remove(self, workload: str, *, keep_volumes: bool, fence: int) -> None: ...

    async def scale(self, workload: str, replicas: int, fence: int) -> None: ...

    async def open_gates(
        self, workload: str, slots: Sequence[tuple[str, str]], fence: int
    ) -> None: ...

    async def set_holds(self, holds: Sequence[Hold], fence: int) -> None: ...

    def logs(
        self, workload: str, *, instance: str | None, follow: bool, tail: int | None
    ) -> AsyncIterator[str]: ...

    async def last_words(self, instance: Instance, *, previous: bool, lines: int) -> LastWords:
        """What one copy printed last, and what the cluster said of it. Bounded; Unavailable."""
        ...

    async def adoptable(self) -> Sequence[Any]: ...

    @property
    def damaged(self) -> tuple[str, ...]:
        """Sentences about what the last `adoptable` found and could not read."""
        ...
