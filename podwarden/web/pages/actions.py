"""Stop, start, delete, priority: each a page that says what it hits, then a button that names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from starlette.responses import RedirectResponse

from podwarden.domain.access import User
from podwarden.domain.inventory import Device
from podwarden.domain.workload import HOLDING, Priority, State, Workload
from podwarden.errors import Conflict, Invalid, Refused
from podwarden.web.api.context import Actor, Context, Ctx, by_uuid
from podwarden.web.pages import sentences
from podwarden.web.pages.frame import form_of, frame
from podwarden.web.pages.page import PageRoute, page
from podwarden.web.pages.verdict import verdict_of

router = APIRouter(route_class=PageRoute)
PROBE = "start-preview"  # a name for asking the planner about what is not in the queue


class Action(StrEnum):
    STOP = "stop"
    START = "start"
    DELETE = "delete"
    PRIORITY = "priority"


@dataclass(frozen=True, slots=True)
class Asked:
    """title: a question's head. says: what happens, sentence by sentence. button: the effect by name."""

    title: str
    says: tuple[str, ...]
    button: str
    danger: bool = False


Ref = Annotated[str, Path(max_length=253)]


@router.get("/workloads/{ref}/{action}")
async def ask(ref: Ref, action: Action, actor: Actor, ctx: Ctx) -> Response:
    row = await ctx.controller.workloads.show(actor, ref)
    return await _page(ctx, actor, row, action)


@router.post("/workloads/{ref}/{action}")
async def do(ref: Ref, action: Action, request: Request, actor: Actor, ctx: Ctx) -> Response:
    form = await form_of(request)
    calls = ctx.controller.workloads
    row = await calls.show(actor, ref)
    try:
        if action is Action.STOP:
            await calls.stop(actor, row.id)
        elif action is Action.START:
            await calls.start(actor, row.id)
        elif action is Action.DELETE:
            await calls.delete(actor, row.id, keep_volumes=form.get("volumes") != "remove")
            return RedirectResponse("/workloads", status_code=303)
        else:
            await calls.set_priority(actor, row.id, priority=_priority(form.get("priority", "")))
    except (Conflict, Invalid) as error:
        return await _page(ctx, actor, row, action, fault=error.message)
    return RedirectResponse(f"/workloads/{row.id}", status_code=303)


def _priority(word: str) -> Priority:
    try:
        return Priority[word.upper()]
    except KeyError as error:
        words = ", ".join(p.word for p in reversed(Priority))
        raise Invalid.of("priority", word, f"one of {words}") from error


async def _page(
    ctx: Context, actor: User, row: Workload, action: Action, *, fault: str = ""
) -> Response:
    known = by_uuid(await ctx.controller.workloads.gpus(actor))
    asked = await _asked(ctx, actor, row, action, known)
    values = await frame(ctx, actor, "/workloads")
    more: dict[str, Any] = {
        "row": row,
        "action": action.value,
        "asked": asked,
        "fault": fault,
        "icons": sentences.ICONS,
        "priorities": [p.word for p in reversed(Priority)],
    }
    return page("action.html", values | more, status=409 if fault else 200)


async def _asked(
    ctx: Context, actor: User, row: Workload, action: Action, known: Mapping[str, Device]
) -> Asked:
    at = sentences.where(row, known)
    frees = (
        f"It ends on {at}; what it holds there is free once it has ended."
        if at
        else "It leaves the queue."
    )
    if action is Action.STOP:
        kept = "Its volumes and revisions stay. A start later puts it at the end of its priority in the queue."
        return Asked(f"Stop {row.name}", (frees, _reached(ctx, row), kept), f"Stop {row.name}")
    if action is Action.START:
        return Asked(
            f"Start {row.name}", (await _start(ctx, actor, row, known),), f"Start {row.name}"
        )
    if action is Action.DELETE:
        first = (
            frees
            if row.state in HOLDING or row.state is State.QUEUED
            else "It has ended and holds nothing."
        )
        gone = "Its revisions and events are no longer shown. This cannot be undone."
        return Asked(
            f"Delete {row.name}",
            (first, _reached(ctx, row), gone),
            f"Delete {row.name}",
            danger=True,
        )
    says = "It moves in the queue at once. Nothing that runs is touched."
    if row.state is not State.QUEUED:
        says = "It counts from its next time in the queue. Nothing that runs is touched."
    return Asked(f"Priority of {row.name}", (says,), "Set priority")


def _reached(ctx: Context, row: Workload) -> str:
    urls = ctx.controller.workloads.urls(row)
    return f"{urls[0]} answers no longer." if urls else ""


async def _start(ctx: Context, actor: User, row: Workload, known: Mapping[str, Device]) -> str:
    """What the planner says of it now, under another name: its own is taken, by itself."""
    try:
        submitted = await ctx.controller.workloads.submit(
            actor, replace(row.spec, name=PROBE), dry_run=True
        )
    except Refused:
        return f"It joins the queue as of now. It asks for {sentences.asks(row.spec)}."
    said = verdict_of(submitted, row.spec, known)
    return f"{said.sentence} {said.detail}".strip()
