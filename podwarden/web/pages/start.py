"""From nothing to the first running workload."""

from __future__ import annotations

from fastapi import APIRouter, Response

from podwarden.domain.workload import State
from podwarden.web.api.context import Actor, Ctx
from podwarden.web.pages.frame import frame
from podwarden.web.pages.page import PageRoute, shown

router = APIRouter(route_class=PageRoute)


@router.get("/start")
async def start(actor: Actor, ctx: Ctx, only: str = "") -> Response:
    calls = ctx.controller.workloads
    values = await frame(ctx, actor, "/start")
    have = bool(values["clusters"])
    rows = await calls.list(actor, limit=20) if have else ()
    running = next((w for w in rows if w.state is State.RUNNING), None)
    newest = rows[-1] if rows else None
    urls = calls.urls(running) if running else ()
    more = {"have": have, "newest": newest, "running": running, "urls": urls}
    return shown("start.html", values | more, only)
