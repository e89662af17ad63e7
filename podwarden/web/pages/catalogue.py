"""The catalogue: what there is to deploy, and what of it fits now, by the planner's word."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from podwarden.catalog import Overrides, Template
from podwarden.control.made import Offer
from podwarden.domain.access import Role, User
from podwarden.domain.workload import Spec
from podwarden.errors import PodWardenError
from podwarden.web.api.context import Actor, Context, Ctx, by_uuid
from podwarden.web.pages import sentences
from podwarden.web.pages.frame import frame
from podwarden.web.pages.page import PageRoute, shown
from podwarden.web.pages.verdict import Verdict, verdict_of

router = APIRouter(route_class=PageRoute)
PROBE = "fits-here"  # the name a template has while the planner judges it; its own may be taken


@dataclass(frozen=True, slots=True)
class Entry:
    """verdict None: it was not judged, `said` says why."""

    name: str
    title: str
    mark: str
    purpose: str
    asks: str
    group: str
    verdict: Verdict | None
    said: str


@router.get("/catalogue")
async def catalogue(
    actor: Actor,
    ctx: Ctx,
    only: str = "",
    fit: str = "",
    search: Annotated[str, Query(max_length=253)] = "",
) -> Response:
    """`?fit=now` shows what would start at once."""
    return shown("catalogue.html", await _values(ctx, actor, search.strip(), fit), only)


async def _values(ctx: Context, actor: User, search: str, fit: str) -> dict[str, Any]:
    known = by_uuid(await ctx.controller.workloads.gpus(actor))
    templates = [t for t in ctx.controller.catalogue.templates.values() if _matches(search, t)]
    entries = [await _entry(ctx, actor, t, known) for t in templates]
    fitting = [e for e in entries if e.verdict and e.verdict.kind == "yes"]
    shown_entries = fitting if fit == "now" else entries
    groups: dict[str, list[Entry]] = {}
    for entry in shown_entries:
        groups.setdefault(entry.group, []).append(entry)
    return await frame(
        ctx,
        actor,
        "/catalogue",
        groups=groups,
        total=len(entries),
        fitting=len(fitting),
        search=search,
        fit=fit,
        broken=ctx.controller.catalogue.broken,
    )


def _matches(search: str, template: Template) -> bool:
    word = search.lower()
    return any(word in text.lower() for text in (template.name, template.title, template.purpose))


async def _entry(ctx: Context, actor: User, template: Template, known: Any) -> Entry:
    offer = await asyncio.to_thread(sample, template)
    spec = offer.spec if offer else None
    verdict, said = None, ""
    if offer is None:
        said = "needs settings first"
    elif actor.role is Role.VIEWER:
        said = "viewers do not deploy"
    else:
        verdict, said = await _judged(ctx, actor, offer, known)
    letters = [word[0] for word in template.title.split() if word[0].isalnum()]
    return Entry(
        name=template.name,
        title=template.title,
        mark="".join(letters[:2]) if len(letters) > 1 else template.title[:2],
        purpose=template.purpose,
        asks=sentences.asks(spec) if spec else "",
        group=_group(spec),
        verdict=verdict,
        said=said,
    )


async def _judged(
    ctx: Context, actor: User, offer: Offer, known: Any
) -> tuple[Verdict | None, str]:
    try:
        answer = await ctx.controller.workloads.submit(
            actor, offer.spec, dry_run=True, generated=offer.generated
        )
    except PodWardenError as error:
        return None, error.message if len(error.message) < 90 else "needs settings first"
    return verdict_of(answer, offer.spec, known), ""


def sample(template: Template) -> Offer | None:
    """The workload it makes with its defaults, and examples where something must be given."""
    given = {p.name: p.sample() for p in template.parameters if p.required}
    try:
        options = Overrides(name=PROBE)
        return Offer(template.resolve(given, options), template.generated(given, options))
    except PodWardenError:
        return None


def _group(spec: Spec | None) -> str:
    if spec is None:
        return "Others"
    if spec.gpu is None:
        return "Without a GPU"
    return "Services with a GPU" if spec.endless else "Jobs with a GPU"
