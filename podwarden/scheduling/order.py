"""The order of the queue: displaced services, then priority, then age, then id."""

from __future__ import annotations

from collections.abc import Iterable

from podwarden.domain.placement import Claimant


def in_order(claimants: Iterable[Claimant]) -> list[Claimant]:
    """Claimants as they are served. A displaced one was admitted long ago: it outranks the queue."""
    return sorted(claimants, key=_rank)


def _rank(claimant: Claimant) -> tuple[bool, int, float, str]:
    # Seconds instead of the datetime itself: ten thousand comparisons are a third of the price.
    return (
        not claimant.displaced,
        -claimant.priority,
        claimant.queued_at.timestamp(),
        claimant.workload,
    )
