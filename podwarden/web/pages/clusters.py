"""Clusters: what each can and cannot do; adopt one, forget one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from starlette.responses import RedirectResponse

from podwarden.domain.access import User
from podwarden.errors import PodWardenError, Refused, Unavailable
from podwarden.web.api.context import Actor, Context, Ctx
from podwarden.web.pages.frame import form_of, frame
from podwarden.web.pages.page import PageRoute, page, part
from podwarden.web.problems import status_of

router = APIRouter(route_class=PageRoute)
Name = Annotated[str, Path(max_length=253)]


@router.get("/clusters")
async def clusters(actor: Actor, ctx: Ctx, only: str = "") -> Response:
    return await _page(ctx, actor, only=only)


@router.post("/clusters")
async def adopt(request: Request, actor: Actor, ctx: Ctx) -> Response:
    form = await form_of(request)
    try:
        done = await ctx.controller.clusters.adopt(
            actor, form.get("name", "").strip(), form.get("kubeconfig", "")
        )
    except (Refused, Unavailable) as error:
        return await _page(ctx, actor, fault=error, name=form.get("name", ""))
    taken = f"?taken={len(done.taken_over)}" if done.taken_over else ""
    return RedirectResponse(f"/clusters{taken}", status_code=303)


@router.get("/clusters/{name}/remove")
async def ask_remove(name: Name, actor: Actor, ctx: Ctx) -> Response:
    view = await ctx.controller.clusters.show(actor, name)
    values = await frame(ctx, actor, "/clusters")
    more = {
        "title": f"Forget cluster {view.cluster.name}",
        "says": [
            "PodWarden forgets this cluster and the workloads in it. What runs there goes on running.",
            "Adopting it again takes them over.",
        ],
        "button": f"Forget {view.cluster.name}",
        "cancel": "/clusters",
    }
    return page("confirm.html", values | more)


@router.post("/clusters/{name}/remove")
async def remove(name: Name, actor: Actor, ctx: Ctx) -> Response:
    await ctx.controller.clusters.remove(actor, name)
    return RedirectResponse("/clusters", status_code=303)


async def _page(
    ctx: Context,
    actor: User,
    *,
    fault: PodWardenError | None = None,
    name: str = "",
    only: str = "",
) -> Response:
    status = await ctx.controller.status()
    more: dict[str, Any] = {
        "views": status.clusters,
        "sentences": status.sentences,
        "leading": status.leading,
        "leader": status.leader,
        "fault": fault.message if fault else "",
        "name": name,
        "version": ctx.version,
    }
    values = await frame(ctx, actor, "/clusters") | more
    if only == "live":
        return part("clusters.html", "live", values)
    return page("clusters.html", values, status=status_of(fault) if fault else 200)
