"""Workloads that were read before, so that a planning pass over 10,000 of them does not decode 10,000 specs.

A row of a given `seq` and `version` never changes, and `seq` is never given twice: what is recalled is what is
stored. Only reads fill it (they see committed rows); a write that is undone leaves nothing here.
"""

from __future__ import annotations

from podwarden.domain.workload import Workload

MOST = 20_000  # workloads, a few KiB each


class Recall:
    """Used by several threads; each step is one dictionary operation."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: dict[int, Workload] = {}

    def get(self, seq: int, version: int) -> Workload | None:
        workload = self._kept.get(seq)
        return workload if workload is not None and workload.version == version else None

    def keep(self, seq: int, workload: Workload) -> None:
        if len(self._kept) >= self._most and seq not in self._kept:
            self._kept = {}
        self._kept[seq] = workload
