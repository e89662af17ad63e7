"""One workload: a sentence first, then why, log, events, revisions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from podwarden.domain.access import User, may_change
from podwarden.domain.event import Event, EventKind
from podwarden.domain.workload import ENDED, Desire, Kind, Revision, State, Workload
from podwarden.web.api.context import Actor, Context, Ctx, by_uuid
from podwarden.web.pages import sentences
from podwarden.web.pages.diff import difference
from podwarden.web.pages.frame import frame, plain
from podwarden.web.pages.page import PageRoute, page, shown
from podwarden.web.pages.queue import notes_of
from podwarden.web.pages.workloads import tone

router = APIRouter(route_class=PageRoute)
Ref = Annotated[str, Path(max_length=253)]
FEW_EVENTS = 12
MOST_EVENTS = 1000
LOG_LINES = 500
LOG_WITHIN = 3.0  # seconds that the page without JavaScript waits for the log

_EVENTS = {
    EventKind.SUBMITTED: ("", "plus"),
    EventKind.ADMITTED: ("go", "right"),
    EventKind.PLACED: ("go", "gpu"),
    EventKind.MISPLACED: ("warn", "move"),
    EventKind.RESTARTED: ("warn", "again"),
    EventKind.UPDATED: ("", "pencil"),
    EventKind.ROLLED_BACK: ("", "again"),
    EventKind.STOP_ASKED: ("", "stopped"),
    EventKind.DELETE_ASKED: ("", "x"),
    EventKind.NODE_LOST: ("bad", "lost"),
    EventKind.CHANGED_OUTSIDE: ("warn", "warn"),
    EventKind.REASON: ("wait", "info"),
}


@dataclass(frozen=True, slots=True)
class Happened:
    event: Event
    tone: str
    icon: str
    text: str


@dataclass(frozen=True, slots=True)
class Tasks:
    """An array in figures; widths in percent of all."""

    total: int
    done: int
    running: int
    failed: int
    last: int
    first: int

    @property
    def waiting(self) -> int:
        return max(self.total - self.done - self.running - self.failed, 0)

    def share(self, number: int) -> float:
        return number / self.total * 100 if self.total else 0.0


@dataclass(frozen=True, slots=True)
class Deed:
    """A button: what can be done with it now."""

    href: str
    word: str
    style: str = ""


@router.get("/workloads/{ref}")
async def workload(
    *,
    ref: Ref,
    actor: Actor,
    ctx: Ctx,
    cluster: Annotated[str, Query(max_length=253)] = "",
    only: str = "",
    events: str = "",
    revision: Annotated[int, Query(ge=0, le=1 << 31)] = 0,
) -> Response:
    """`?events=all` shows all events, `?revision=N` what revision N changed."""
    row = await ctx.controller.workloads.show(actor, ref, cluster)
    values = await _values(ctx, actor, row, events == "all", revision)
    return shown("workload.html", values, only)


@router.get("/workloads/{ref}/logs")
async def logs(
    *,
    ref: Ref,
    actor: Actor,
    ctx: Ctx,
    cluster: Annotated[str, Query(max_length=253)] = "",
    instance: Annotated[str, Query(max_length=253)] = "",
    search: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """The last lines, also without JavaScript; with it they follow."""
    calls = ctx.controller.workloads
    row = await calls.show(actor, ref, cluster)
    lines, late = await _log(ctx, actor, row, instance)
    found = [line for line in lines if search.lower() in line.lower()]
    values = await frame(ctx, actor, "/workloads")
    return page(
        "logs.html",
        values | {"row": row, "lines": found, "of": len(lines), "late": late, "search": search, "instance": instance, "icons": sentences.ICONS},
    )  # fmt: skip


async def _log(ctx: Context, actor: User, row: Workload, instance: str) -> tuple[list[str], bool]:
    """Lines, and whether the log was still coming when the time was over."""
    lines: list[str] = []
    source = await ctx.controller.workloads.logs(
        actor, row.id, "", instance=instance or None, follow=False, tail=LOG_LINES
    )
    try:
        async with asyncio.timeout(LOG_WITHIN):
            async for line in source:
                lines.append(plain(line))
                if len(lines) >= LOG_LINES:
                    break
    except TimeoutError:
        return lines, True
    return lines, False


async def _values(
    ctx: Context, actor: User, row: Workload, all_events: bool, revision: int
) -> dict[str, Any]:
    calls = ctx.controller.workloads
    known = by_uuid(await calls.gpus(actor))
    happened = await calls.events(actor, row.id, limit=MOST_EVENTS)
    revisions = sorted(await calls.revisions(actor, row.id), key=lambda r: -r.number)
    verdict = calls.verdict(row.id) if row.state is State.QUEUED else None
    why = sentences.reason_of(row, verdict)
    latest = happened[::-1] if all_events else happened[::-1][:FEW_EVENTS]
    chosen = next((r for r in revisions if r.number == (revision or row.revision)), None)
    values = await frame(ctx, actor, "/workloads")
    return values | {
        "row": row,
        "icons": sentences.ICONS,
        "tone": tone(row.state),
        "lead": sentences.lead(row, known, verdict),
        "why": why,
        "notes": notes_of(why, known),
        "ahead": list(why.ahead) if why else [],
        "starts_at": verdict.starts_at if verdict else None,
        "told": _told(row),
        "urls": calls.urls(row),
        "kind": sentences.kind_of(row.spec),
        "facts": sentences.facts(row),
        "tasks": _tasks(row),
        "happened": [_happened(e) for e in latest],
        "events_total": len(happened),
        "revisions": revisions,
        "chosen": chosen,
        "changed": _changed(revisions, chosen),
        "deeds": deeds(actor, row),
        "may_change": may_change(actor, row.owner),
        "waiting": verdict,
    }


def _told(row: Workload) -> str:
    if row.desire is Desire.DELETE:
        return "It is being deleted."
    if row.desire is Desire.STOP and row.state not in (State.STOPPED, State.STOPPING):
        return "It was told to stop."
    return ""


def _tasks(row: Workload) -> Tasks | None:
    job = row.spec.job
    if job is None or job.array is None:
        return None
    total = row.count("total") or job.tasks
    first, last = job.array
    return Tasks(total, row.count("done"), row.count("running"), row.count("failed"), last, first)


def _happened(event: Event) -> Happened:
    style, symbol = _EVENTS.get(event.kind, ("", "info"))
    for state, (word, name) in sentences.ICONS.items():
        if event.kind is EventKind.STATE and event.text.rstrip(".").endswith(state.value):
            style, symbol = word, name
    text = event.text.removeprefix(f"{event.code}: ") if event.code else event.text
    return Happened(event, style, symbol, text)


def _changed(revisions: Sequence[Revision], chosen: Revision | None) -> dict[str, Any] | None:
    """The difference of the chosen revision to the one before it."""
    if chosen is None:
        return None
    before = next((r for r in revisions if r.number < chosen.number), None)
    if before is None:
        return None
    lines = difference(before.spec, chosen.spec)
    return {"before": before.number, "after": chosen.number, "lines": lines}


def deeds(actor: User, row: Workload) -> list[Deed]:
    """The buttons that lead somewhere now; none for those who may not change it."""
    if not may_change(actor, row.owner) or row.desire is Desire.DELETE:
        return []
    base = f"/workloads/{row.id}"
    found = []
    if row.state in ENDED:
        found.append(Deed(f"{base}/start", "Start", "primary"))
    elif row.state is not State.STOPPING:
        found.append(Deed(f"{base}/stop", "Stop"))
    if row.state is State.QUEUED:
        found.append(Deed(f"{base}/priority", "Priority"))
    if row.spec.kind is Kind.SERVICE or row.state in (State.QUEUED, *ENDED):
        style = "" if row.state in ENDED else "primary"
        found.append(Deed(f"{base}/update", "Update", style))
    found.append(Deed(f"{base}/delete", "Delete", "quiet"))
    return found
