"""A new revision or an old one again: the difference and the price stand there before the button."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from starlette.responses import RedirectResponse

from podwarden.catalog import Overrides, read_file
from podwarden.domain.access import User
from podwarden.domain.workload import Spec, Workload
from podwarden.errors import Conflict, Invalid, NotFound, Problem, Refused
from podwarden.web.api.context import Actor, Context, Ctx
from podwarden.web.api.shapes import MAX_FILE
from podwarden.web.pages import sentences
from podwarden.web.pages.diff import difference, written
from podwarden.web.pages.frame import form_of, frame
from podwarden.web.pages.page import PageRoute, page

router = APIRouter(route_class=PageRoute)
Ref = Annotated[str, Path(max_length=253)]
NEEDS_DOWNTIME = "UPDATE_NEEDS_DOWNTIME"


@dataclass(frozen=True, slots=True)
class Price:
    """What an update costs. how: as the control plane says; "" where it is refused."""

    how: str
    text: str
    recreate: bool = False

    @property
    def button(self) -> str:
        """The price by name: surge never has an outage, recreate always has one."""
        if self.how == "recreate":
            return "Update, short outage"
        return "Update, no outage" if self.how == "surge" else "Update"


@router.get("/workloads/{ref}/update")
async def edit(ref: Ref, actor: Actor, ctx: Ctx) -> Response:
    row = await ctx.controller.workloads.show(actor, ref)
    return await _page(ctx, actor, row, text=written(row.spec))


@router.post("/workloads/{ref}/update")
async def update(ref: Ref, request: Request, actor: Actor, ctx: Ctx) -> Response:
    """`step=preview` changes nothing; `step=apply` does it, as it was previewed."""
    form = await form_of(request)
    calls = ctx.controller.workloads
    row = await calls.show(actor, ref)
    text = form.get("file", "")[:MAX_FILE]
    try:
        spec = await asyncio.to_thread(_read, text, row)
    except Invalid as error:
        return await _page(ctx, actor, row, text=text, problems=error.problems, status=422)
    if form.get("step") == "apply":
        try:
            await calls.update(actor, row.id, spec, recreate=form.get("recreate") == "yes")
            return RedirectResponse(f"/workloads/{row.id}", status_code=303)
        except Invalid as error:
            return await _page(ctx, actor, row, text=text, problems=error.problems, status=422)
        except Conflict as error:
            return await _page(ctx, actor, row, text=text, fault=error.message, status=409)
    price = await _price(ctx, actor, row, spec)
    return await _page(ctx, actor, row, text=text, spec=spec, price=price)


@router.get("/workloads/{ref}/rollback/{number}")
async def ask_back(
    ref: Ref, number: Annotated[int, Path(ge=1, le=1 << 31)], actor: Actor, ctx: Ctx
) -> Response:
    row = await ctx.controller.workloads.show(actor, ref)
    return await _back_page(ctx, actor, row, number)


@router.post("/workloads/{ref}/rollback/{number}")
async def back(
    ref: Ref,
    number: Annotated[int, Path(ge=1, le=1 << 31)],
    request: Request,
    actor: Actor,
    ctx: Ctx,
) -> Response:
    form = await form_of(request)
    row = await ctx.controller.workloads.show(actor, ref)
    try:
        await ctx.controller.workloads.rollback(
            actor, row.id, revision=number, recreate=form.get("recreate") == "yes"
        )
    except Conflict as error:
        return await _back_page(ctx, actor, row, number, fault=error.message)
    return RedirectResponse(f"/workloads/{row.id}", status_code=303)


def _read(text: str, row: Workload) -> Spec:
    return read_file(text, "file", overrides=Overrides(name=row.name))


async def _price(ctx: Context, actor: User, row: Workload, spec: Spec) -> Price:
    calls = ctx.controller.workloads
    try:
        done = await calls.update(actor, row.id, spec, dry_run=True)
    except Conflict as error:
        if error.code != NEEDS_DOWNTIME:
            return Price("", error.message)
    except Refused as error:
        return Price("", error.message)
    else:
        return Price(done.how, done.text)
    try:
        done = await calls.update(actor, row.id, spec, recreate=True, dry_run=True)
    except Refused as error:
        return Price("", error.message)
    return Price(done.how, done.text, recreate=True)


async def _page(
    ctx: Context,
    actor: User,
    row: Workload,
    *,
    text: str,
    spec: Spec | None = None,
    price: Price | None = None,
    problems: list[Problem] | None = None,
    fault: str = "",
    status: int = 200,
) -> Response:
    values = await frame(ctx, actor, "/workloads")
    more: dict[str, Any] = {
        "row": row,
        "text": text,
        "lines": difference(row.spec, spec) if spec else (),
        "compared": spec is not None,
        "price": price,
        "problems": problems or [],
        "fault": fault,
        "back": 0,
        "icons": sentences.ICONS,
    }
    return page("update.html", values | more, status=status)


async def _back_page(
    ctx: Context, actor: User, row: Workload, number: int, *, fault: str = ""
) -> Response:
    revisions = await ctx.controller.workloads.revisions(actor, row.id)
    found = next((r for r in revisions if r.number == number), None)
    if found is None or number == row.revision:
        raise NotFound(f"{row.name} has no earlier revision {number}.")
    spec = replace(found.spec, priority=row.spec.priority)
    price = await _price(ctx, actor, row, spec)
    values = await frame(ctx, actor, "/workloads")
    more: dict[str, Any] = {
        "row": row,
        "text": "",
        "lines": difference(row.spec, spec),
        "compared": True,
        "price": price,
        "problems": [],
        "fault": fault,
        "back": number,
        "icons": sentences.ICONS,
    }
    return page("update.html", values | more, status=409 if fault else 200)
