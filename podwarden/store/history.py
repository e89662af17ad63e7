"""What ran before: how long work of a template takes, and what people ask for."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from sqlalchemy import delete, select

from podwarden.domain.request import Request
from podwarden.domain.workload import Kind
from podwarden.store import tables
from podwarden.store.book import Book

KEPT = 10_000  # records
LOOKED_AT = 50  # runs of one template: hardware and models change, old runs say little
MIX_OF = 1_000  # requests
_table = tables.history


class History(Book):
    def record(
        self, template: str, kind: Kind, seconds: float | None, request: Request | None
    ) -> None:
        """No template: "". seconds: how long it ran, None where that says nothing (stopped by a person)."""
        number = self._insert(
            _table,
            at=self._now(),
            template=template,
            kind=kind.value,
            seconds=seconds,
            count=0 if request is None else request.count,
            vram_mib=0 if request is None else request.vram_mib or 0,
        )
        assert number is not None
        self._run(delete(_table).where(_table.c.id <= int(number) - KEPT))

    def longest(self, template: str) -> timedelta | None:
        """The longest of its last 50 jobs; None: it never ran to an end."""
        if not template:
            return None
        rows = self._run(
            select(_table.c.seconds)
            .where(
                _table.c.template == template,
                _table.c.kind == Kind.JOB.value,
                _table.c.seconds.is_not(None),
            )
            .order_by(_table.c.id.desc())
            .limit(LOOKED_AT)
        )
        spans = [row.seconds for row in rows]
        return timedelta(seconds=max(spans)) if spans else None

    def mix(self) -> tuple[tuple[int, int, int], ...]:
        """(count, vram_mib, weight) of the last 1,000 requests for GPUs, in order; vram_mib 0: any GPU."""
        rows = self._run(
            select(_table.c.count, _table.c.vram_mib)
            .where(_table.c.count > 0)
            .order_by(_table.c.id.desc())
            .limit(MIX_OF)
        )
        weights = Counter((row[0], row[1]) for row in rows)
        return tuple((count, vram, weight) for (count, vram), weight in sorted(weights.items()))
