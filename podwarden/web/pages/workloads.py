"""All workloads in one table; the filter is the address."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response

from podwarden.domain.reason import Reason
from podwarden.domain.workload import ENDED, State, Workload
from podwarden.web.api.context import Actor, Context, Ctx, by_uuid
from podwarden.web.pages import sentences
from podwarden.web.pages.frame import frame
from podwarden.web.pages.page import PageRoute, shown

router = APIRouter(route_class=PageRoute)
A_PAGE = 100
LOOK = frozenset({State.UNHEALTHY, State.FAILED})
SHOWS: dict[str, tuple[str, frozenset[State]]] = {
    "": ("Not ended", frozenset(State) - ENDED),
    "running": ("Running", frozenset(State) - ENDED - {State.QUEUED}),
    "waiting": ("Waiting", frozenset({State.QUEUED})),
    "look": ("Need a look", LOOK),
    "ended": ("Ended", ENDED),
    "all": ("All", frozenset()),
}


@dataclass(frozen=True, slots=True)
class Row:
    id: str
    name: str
    state: State
    said: str
    asks: str
    where: str
    urls: tuple[str, ...]
    owner: str
    reason: Reason | None
    tone: str
    progress: str
    changed: datetime


@router.get("/workloads")
async def workloads(
    *,
    actor: Actor,
    ctx: Ctx,
    only: str = "",
    show: str = "",
    owner: Annotated[str, Query(max_length=253)] = "",
    search: Annotated[str, Query(max_length=253)] = "",
    after: Annotated[str, Query(max_length=253)] = "",
) -> Response:
    show = show if show in SHOWS else ""
    wanted = {"show": show, "owner": owner, "search": search.strip(), "after": after}
    return shown("workloads.html", await _values(ctx, actor, wanted), only)


async def _values(ctx: Context, actor: Actor, wanted: dict[str, str]) -> dict[str, Any]:
    calls = ctx.controller.workloads
    found = await calls.list(
        actor,
        states=SHOWS[wanted["show"]][1],
        owner=wanted["owner"],
        search=wanted["search"],
        limit=A_PAGE + 1,
        after=wanted["after"],
    )
    known = by_uuid(await calls.gpus(actor))
    rows = []
    for row in found[:A_PAGE]:
        why = sentences.reason_of(row, calls.verdict(row.id))
        rows.append(_row(row, why, sentences.where(row, known), calls.urls(row)))
    more = link(wanted | {"after": found[A_PAGE - 1].id}) if len(found) > A_PAGE else ""
    return await frame(
        ctx,
        actor,
        "/workloads",
        rows=rows,
        more=more,
        first=link(wanted | {"after": ""}) if wanted["after"] else "",
        wanted=wanted,
        shows=[
            (link(wanted | {"show": key, "after": ""}), word, key)
            for key, (word, _) in SHOWS.items()
        ],
        everyone=link(wanted | {"owner": "", "after": ""}),
        own=link(wanted | {"owner": actor.name, "after": ""}),
        icons=sentences.ICONS,
    )


def link(wanted: dict[str, str]) -> str:
    fields = {key: value for key, value in wanted.items() if value}
    return "/workloads" + ("?" + urlencode(fields) if fields else "")


def _row(row: Workload, why: Reason | None, where: str, urls: tuple[str, ...]) -> Row:
    return Row(
        id=row.id,
        name=row.name,
        state=row.state,
        said=sentences.kind_of(row.spec),
        asks=sentences.asks(row.spec),
        where=where,
        urls=urls,
        owner=row.owner,
        reason=why,
        tone=tone(row.state),
        progress=sentences.progress(row),
        changed=row.changed_at,
    )


def tone(state: State) -> str:
    """The colour of a reason code beside this state."""
    return {State.QUEUED: "wait", State.FAILED: "bad", State.UNHEALTHY: "warn"}.get(state, "")
