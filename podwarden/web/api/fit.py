"""What this hardware can run."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter

from podwarden.catalog import Catalogue
from podwarden.domain.workload import Spec
from podwarden.errors import Refused
from podwarden.web.api import shapes_deploy, views_deploy
from podwarden.web.api.context import ERRORS, Actor, Ctx, InCluster, known_devices

router = APIRouter(responses=ERRORS, tags=["templates"])


@router.get("/fit", summary="What of the catalogue this hardware can run, now and if it were empty")
async def fit(actor: Actor, ctx: Ctx, cluster: InCluster = "") -> list[shapes_deploy.FitShape]:
    catalogue = ctx.controller.catalogue
    wishes = await asyncio.to_thread(samples, catalogue)
    found = await ctx.controller.workloads.fit(actor, wishes, cluster)
    known = await known_devices(ctx, actor)
    return [
        views_deploy.fit(catalogue.templates[one.name], wishes[one.name], one, known)
        for one in found
    ]


def samples(catalogue: Catalogue) -> dict[str, Spec]:
    """What each template makes, by its name; one that makes nothing with samples is left out."""
    found: dict[str, Spec] = {}
    for name, template in catalogue.templates.items():
        try:
            found[name] = template.sample()
        except Refused:
            continue
    return found
