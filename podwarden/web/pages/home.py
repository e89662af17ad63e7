"""The page at `/`: GPUs, queue, workloads, live."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Response

from podwarden.domain.access import User
from podwarden.domain.workload import ENDED, State, Workload
from podwarden.web.api import views
from podwarden.web.api.context import Actor, Context, Ctx, by_uuid
from podwarden.web.pages.page import page, part

router = APIRouter()
MOST = 200  # rows of a table; the count above it says how many there are


@router.get("/")
async def home(actor: Actor, ctx: Ctx, only: str = "") -> Response:
    """`?only=live` gives the live part alone."""
    values = await _values(ctx, actor)
    if only == "live":
        return part("home.html", "live", values)
    return page("home.html", values)


async def _values(ctx: Context, actor: User) -> dict[str, Any]:
    calls = ctx.controller.workloads
    gpus = await calls.gpus(actor)
    known = by_uuid(gpus)
    queue = await calls.queue(actor)
    rows = await calls.list(actor, states=frozenset(State) - ENDED - {State.QUEUED}, limit=MOST + 1)
    ended = await calls.list(actor, states=ENDED, limit=MOST + 1)
    status = await ctx.controller.status()
    return {
        "user": actor,
        "clusters": [views.cluster(c) for c in status.clusters],
        "gpus": [views.gpu(g) for g in gpus],
        "queue": [views.workload(q.workload, q.verdict, known) for q in queue[:MOST]],
        "waiting": len(queue),
        "workloads": [
            views.workload(w, calls.verdict(w.id), known, calls.urls(w)) for w in rows[:MOST]
        ],
        "ended": [views.workload(w, None, known) for w in reversed(ended[:MOST])],
        "shown": _shown(rows),
        "shown_ended": _shown(ended),
        "simulated": any(c.cluster.simulated for c in status.clusters),
        "at": datetime.now(UTC),
    }


def _shown(rows: tuple[Workload, ...]) -> str:
    return f"the first {MOST}" if len(rows) > MOST else str(len(rows))
