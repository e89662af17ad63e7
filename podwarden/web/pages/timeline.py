"""What runs until when, as lanes of percent: one lane a GPU, from a little before now to a few hours ahead."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from podwarden.control.answers import Gpu
from podwarden.web.pages import bars

MOST_LANES = 16
PAST = 0.2  # the share of the span that is behind now
NEAR = 4.0  # percent around now that no mark stands in
STEPS = (5, 10, 15, 30, 60, 120, 240, 480)  # minutes between marks
SPANS = tuple(timedelta(minutes=m) for m in (30, 60, 120, 240, 480, 960, 1920))
LANE, TOP = 30, 26  # pixels


@dataclass(frozen=True, slots=True)
class Piece:
    """kind: svc (no end), job (ends), hold, gone. x, width in percent of the lane."""

    kind: str
    x: float
    width: float
    text: str


@dataclass(frozen=True, slots=True)
class Lane:
    node: str
    index: int
    model: str
    y: int
    pieces: tuple[Piece, ...]
    label: str
    label_x: float
    tone: str


@dataclass(frozen=True, slots=True)
class Timeline:
    lanes: tuple[Lane, ...]
    marks: tuple[tuple[float, datetime], ...]
    now: datetime
    left_out: int

    @property
    def height(self) -> int:
        return TOP + LANE * len(self.lanes) - 6

    @property
    def past(self) -> float:
        return PAST * 100


def timeline(gpus: Sequence[Gpu], starts: Mapping[str, datetime], now: datetime) -> Timeline:
    """starts: workload name -> its reserved start."""
    ends = [h.holder.ends_by for g in gpus for h in g.holdings if h.holder.ends_by]
    held = [at for name, at in starts.items() if name in {g.reserved_for for g in gpus}]
    far = max([*ends, *held, now + timedelta(minutes=20)]) - now
    span = next((s for s in SPANS if s * (1 - PAST) >= far), SPANS[-1])
    begin = now - span * PAST
    view = _View(begin, span, now)
    shown = sorted(gpus, key=_interest)[:MOST_LANES]
    shown.sort(key=lambda g: (g.cluster, g.device.node, g.device.index))
    lanes = tuple(view.lane(g, starts, TOP + LANE * n) for n, g in enumerate(shown))
    return Timeline(lanes, _marks(view), now, len(gpus) - len(shown))


def _interest(gpu: Gpu) -> tuple[bool, bool]:
    """Reserved ones first, then those with an end in sight."""
    return not gpu.reserved_for, not any(h.holder.ends_by for h in gpu.holdings)


def _marks(view: _View) -> tuple[tuple[float, datetime], ...]:
    """Round times, at most seven of them, none under the word that says now."""
    step = next((s for s in STEPS if view.span / timedelta(minutes=s) <= 6), STEPS[-1]) * 60
    first = math.ceil(view.begin.timestamp() / step) * step
    last = (view.begin + view.span).timestamp()
    times = (datetime.fromtimestamp(at, UTC) for at in range(first, math.floor(last) + 1, step))
    marks = ((view.x(at), at) for at in times)
    return tuple((x, at) for x, at in marks if abs(x - PAST * 100) > NEAR)


@dataclass(frozen=True, slots=True)
class _View:
    begin: datetime
    span: timedelta
    now: datetime

    def x(self, at: datetime) -> float:
        return min(max((at - self.begin) / self.span * 100, 0.0), 100.0)

    def lane(self, gpu: Gpu, starts: Mapping[str, datetime], y: int) -> Lane:
        if not bars.usable(gpu):
            piece = Piece("gone", 0, 100, "not available")
            return self._lane(gpu, y, (piece,), "lost or away", "tb")
        pieces = [
            Piece(
                "svc" if h.holder.ends_by is None else "job",
                self.x(h.holder.since) if h.holder.since else 0.0,
                self._until(h.holder.ends_by) - (self.x(h.holder.since) if h.holder.since else 0.0),
                h.holder.name,
            )
            for h in sorted(gpu.holdings, key=lambda h: h.holder.ends_by is not None)
        ]
        named = ", ".join(dict.fromkeys(h.holder.name for h in gpu.holdings))
        if named and all(h.holder.ends_by is None for h in gpu.holdings):
            named += ": no end known"
        tone = "tl"
        if gpu.reserved_for:
            at = starts.get(gpu.reserved_for, self.now)
            pieces.append(
                Piece("hold", self.x(at), 100 - self.x(at), f"reserved for {gpu.reserved_for}")
            )
            named += (", then " if named else "reserved for ") + gpu.reserved_for
            tone = "tl" if gpu.holdings else "tw"
        return self._lane(gpu, y, tuple(pieces), named or "free", tone if named else "")

    def _until(self, at: datetime | None) -> float:
        return 100.0 if at is None else self.x(at)

    def _lane(self, gpu: Gpu, y: int, pieces: tuple[Piece, ...], label: str, tone: str) -> Lane:
        device = gpu.device
        return Lane(device.node, device.index, device.model, y, pieces, label, PAST * 100, tone)
