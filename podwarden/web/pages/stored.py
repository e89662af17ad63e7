"""Storages and named secrets: what workloads may refer to, and which do."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from starlette.responses import RedirectResponse

from podwarden.domain.access import User
from podwarden.errors import Invalid, PodWardenError, Refused, Unavailable
from podwarden.web.api.context import Actor, Context, Ctx
from podwarden.web.pages.frame import form_of, frame
from podwarden.web.pages.page import PageRoute, page
from podwarden.web.problems import status_of

router = APIRouter(route_class=PageRoute)
Name = Annotated[str, Path(max_length=253)]
FORM = ("name", "kind", "place", "secret", "registry", "user")


@router.get("/storage")
async def stored(actor: Actor, ctx: Ctx) -> Response:
    return await _page(ctx, actor)


@router.post("/storage")
async def add(request: Request, actor: Actor, ctx: Ctx) -> Response:
    form = await form_of(request)
    kind = "host" if form.get("kind") == "host" else "nfs"
    place = {kind: form.get("place", "").strip()}
    try:
        await ctx.controller.storage.add(
            actor, form.get("name", "").strip(), check=form.get("check") != "no", **place
        )
    except (Refused, Unavailable) as error:
        return await _page(ctx, actor, fault=("storage", error), form=form)
    return RedirectResponse("/storage", status_code=303)


@router.post("/secrets")
async def set_secret(request: Request, actor: Actor, ctx: Ctx) -> Response:
    """The value is never on a page again, not even after a fault."""
    form = await form_of(request)
    try:
        await ctx.controller.secrets.set(
            actor,
            form.get("secret", "").strip(),
            form.get("value", ""),
            registry=form.get("registry", "").strip(),
            user=form.get("user", "").strip(),
        )
    except (Refused, Unavailable) as error:
        return await _page(ctx, actor, fault=("secret", error), form=form)
    return RedirectResponse("/storage", status_code=303)


@router.get("/storage/{name}/remove")
async def ask_remove(name: Name, actor: Actor, ctx: Ctx) -> Response:
    says = ["What lies there is not touched; workloads can no longer be given this name."]
    return await _ask(ctx, actor, f"Remove storage {name}", says, f"Remove {name}")


@router.post("/storage/{name}/remove")
async def remove(name: Name, actor: Actor, ctx: Ctx) -> Response:
    await ctx.controller.storage.remove(actor, name)
    return RedirectResponse("/storage", status_code=303)


@router.get("/secrets/{name}/delete")
async def ask_delete(name: Name, actor: Actor, ctx: Ctx) -> Response:
    says = ["Its value is gone for good. Workloads that have it keep it until their next start."]
    return await _ask(ctx, actor, f"Delete secret {name}", says, f"Delete {name}")


@router.post("/secrets/{name}/delete")
async def delete(name: Name, actor: Actor, ctx: Ctx) -> Response:
    await ctx.controller.secrets.delete(actor, name)
    return RedirectResponse("/storage", status_code=303)


async def _ask(ctx: Context, actor: User, title: str, says: list[str], button: str) -> Response:
    values = await frame(ctx, actor, "/storage")
    more = {"title": title, "says": says, "button": button, "cancel": "/storage"}
    return page("confirm.html", values | more)


async def _page(
    ctx: Context,
    actor: User,
    *,
    fault: tuple[str, PodWardenError] | None = None,
    form: dict[str, str] | None = None,
) -> Response:
    values = await frame(ctx, actor, "/storage")
    typed = {name: (form or {}).get(name, "") for name in FORM}
    more: dict[str, Any] = {
        "storages": await ctx.controller.storage.list(actor),
        "secrets": await ctx.controller.secrets.list(actor),
        "fault": (fault[0], _said(fault[1])) if fault else ("", ""),
        "form": typed,
    }
    return page("storage.html", values | more, status=status_of(fault[1]) if fault else 200)


def _said(error: PodWardenError) -> str:
    if isinstance(error, Invalid):
        return "; ".join(f"{p.field}: {p.fix}" for p in error.problems)
    return error.message
