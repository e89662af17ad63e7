"""Docker Compose files: what they become, all services of one or none."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Header, Response

from podwarden.catalog import wanted_env_files
from podwarden.control.made import Offer
from podwarden.web.api import shapes_deploy, views_deploy
from podwarden.web.api.context import ERRORS, Actor, Ctx, known_devices
from podwarden.web.api.sources import compose_of
from podwarden.web.api.workloads import body_hash
from podwarden.web.problems import RefusedByPlan

router = APIRouter(responses=ERRORS, tags=["workloads"])


@router.post(
    "/compose", status_code=201, summary="Deploy every service of a Compose file, or preview"
)
async def deploy_compose(
    *,
    body: shapes_deploy.ComposeOrder,
    response: Response,
    actor: Actor,
    ctx: Ctx,
    idempotency_key: Annotated[
        str | None,
        Header(min_length=1, max_length=200, description="the same key makes them once"),
    ] = None,
) -> shapes_deploy.ComposeDeployed:
    plan = await compose_of(body)
    once = (idempotency_key, body_hash(body)) if idempotency_key and not body.dry_run else None
    answers = await ctx.controller.workloads.submit_all(
        actor, [Offer(spec) for spec in plan.specs], dry_run=body.dry_run, idempotency=once
    )
    for spec, answer in zip(plan.specs, answers, strict=True):
        if answer.refusal is not None:
            said = f"{spec.name}: {answer.refusal.text} Nothing of {body.source} was deployed."
            raise RefusedByPlan(replace(answer.refusal, text=said))
    if body.dry_run:
        response.status_code = 200
    return views_deploy.compose(plan, answers, await known_devices(ctx, actor))


@router.post(
    "/compose/env-files", summary="Which files of variables a Compose file names, as written"
)
async def env_files(body: shapes_deploy.ComposeText, actor: Actor) -> list[str]:  # noqa: ARG001 - needs a login
    return list(await asyncio.to_thread(wanted_env_files, body.text, body.source))
