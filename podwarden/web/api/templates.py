"""The catalogue, and what would happen to workload files."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter

from podwarden.catalog import Overrides, Template, read_file
from podwarden.domain.document import to_document
from podwarden.errors import Invalid
from podwarden.web.api import shapes, views
from podwarden.web.api.context import ERRORS, Actor, Ctx, known_devices

router = APIRouter(responses=ERRORS)


@router.get("/templates", tags=["templates"], summary="The catalogue")
async def templates(ctx: Ctx) -> list[shapes.TemplateShape]:
    return [_template(t) for _, t in sorted(ctx.controller.catalogue.templates.items())]


@router.get("/templates/{name}", tags=["templates"], summary="One template with its parameters")
async def template(name: shapes.Word, ctx: Ctx) -> shapes.TemplateShape:
    return _template(ctx.controller.catalogue.get(name))


@router.post(
    "/plan",
    tags=["workloads"],
    summary="What would happen if these files were deployed now; nothing is stored",
)
async def plan(body: shapes.PlanOrder, actor: Actor, ctx: Ctx) -> list[shapes.Preview]:
    known = await known_devices(ctx, actor)
    previews = []
    for file in body.files:
        spec = await asyncio.to_thread(read_file, file.text, file.source)
        submitted = await ctx.controller.workloads.submit(actor, spec, dry_run=True)
        previews.append(views.preview(spec, submitted, known))
    return previews


def _template(noun: Template) -> shapes.TemplateShape:
    return shapes.TemplateShape(
        name=noun.name,
        title=noun.title,
        purpose=noun.purpose,
        homepage=noun.homepage,
        notes=noun.notes,
        parameters=[
            shapes.ParameterShape(
                name=p.name,
                kind=p.kind,
                title=p.title,
                help=p.help,
                default=p.default,
                required=p.required,
                choices=list(p.choices),
            )
            for p in noun.parameters
        ],
        document=dict(noun.document),
        spec=_by_default(noun),
    )


def _by_default(noun: Template) -> dict[str, Any] | None:
    """The workload it makes when nothing is set; None where something must be."""
    if any(p.required for p in noun.parameters):
        return None
    try:
        return to_document(noun.resolve({}, Overrides()))
    except Invalid:
        return None
