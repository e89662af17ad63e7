"""The queue: place, reason, way out, start, and the verdict on each GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fastapi import APIRouter, Response

from podwarden.control.answers import Gpu, Queued
from podwarden.domain.inventory import Device
from podwarden.domain.reason import Reason
from podwarden.web.api.context import Actor, Context, Ctx, by_uuid
from podwarden.web.pages import sentences
from podwarden.web.pages.frame import frame
from podwarden.web.pages.page import PageRoute, shown
from podwarden.web.pages.timeline import timeline

router = APIRouter(route_class=PageRoute)
MOST = 200  # rows at once; the head says how many there are
MOST_NOTES = 40


@dataclass(frozen=True, slots=True)
class Note:
    """One line of the verdict by GPU: where, and why not."""

    where: str
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    id: str
    position: int
    name: str
    said: str
    asks: str
    priority: str
    since: datetime
    reason: Reason | None
    notes: tuple[Note, ...]
    notes_left: int
    ahead: str
    starts_at: datetime | None
    starts_on: str
    mine: bool


@router.get("/queue")
async def queue(actor: Actor, ctx: Ctx, only: str = "", show: str = "all") -> Response:
    """`?show=mine` leaves out what others wait for; places stay as they are."""
    return shown("queue.html", await _values(ctx, actor, show), only)


async def _values(ctx: Context, actor: Actor, show: str) -> dict[str, Any]:
    line = await ctx.controller.workloads.queue(actor)
    gpus = await ctx.controller.workloads.gpus(actor)
    known = by_uuid(gpus)
    kept: dict[str, list[Gpu]] = {}
    for gpu in gpus:
        if gpu.reserved_for:
            kept.setdefault(gpu.reserved_for, []).append(gpu)
    mine = [q for q in line if q.workload.owner == actor.name]
    wanted = mine if show == "mine" else line
    starts = {
        q.workload.name: q.verdict.starts_at for q in line if q.verdict and q.verdict.starts_at
    }
    values = await frame(ctx, actor, "/queue")
    return values | {
        "show": show,
        "total": len(line),
        "mine": len(mine),
        "rows": [row_of(q, place, known, kept) for place, q in _placed(line, wanted)],
        "left_out": max(len(wanted) - MOST, 0),
        "first": line[0] if line else None,
        "time": timeline(gpus, starts, values["at"]) if gpus and line else None,
    }


def _placed(line: tuple[Queued, ...], wanted: Any) -> list[tuple[int, Queued]]:
    chosen = {q.workload.id for q in wanted}
    return [(n, q) for n, q in enumerate(line, 1) if q.workload.id in chosen][:MOST]


def row_of(
    queued: Queued, place: int, known: Mapping[str, Device], kept: Mapping[str, list[Gpu]]
) -> Row:
    row, verdict = queued.workload, queued.verdict
    why = verdict.reason if verdict and verdict.reason else row.reason
    held = kept.get(row.name, [])
    on = ", ".join(f"{g.device.node} GPU {g.device.index}" for g in held[:3])
    return Row(
        id=row.id,
        position=verdict.position if verdict and verdict.position else place,
        name=row.name,
        said=f"{sentences.kind_of(row.spec)}, {row.owner}",
        asks=sentences.asks(row.spec),
        priority=row.spec.priority.word,
        since=row.queued_at or row.created_at,
        reason=why,
        notes=notes_of(why, known),
        notes_left=max(len(why.notes) - MOST_NOTES, 0) if why else 0,
        ahead=_ahead(why),
        starts_at=verdict.starts_at if verdict else None,
        starts_on=f"{on}, reserved" if on else "",
        mine=False,
    )


def notes_of(why: Reason | None, known: Mapping[str, Device]) -> tuple[Note, ...]:
    """The verdict on each GPU, with its name instead of its uuid."""
    if why is None:
        return ()
    found = []
    for note in why.notes[:MOST_NOTES]:
        where = sentences.gpu_name(note.device, known) if note.device in known else note.node
        found.append(Note(where, note.text))
    return tuple(found)


def _ahead(why: Reason | None) -> str:
    if why is None or not why.ahead:
        return ""
    names = list(why.ahead)
    shown_names = ", ".join(names[-3:])
    return f"behind {shown_names}" + (f" and {len(names) - 3} more" if len(names) > 3 else "")
