"""Named secrets: stored, listed, deleted; a value goes in and never comes out."""

from __future__ import annotations

from fastapi import APIRouter

from podwarden.web.api import shapes, shapes_stored, views_stored
from podwarden.web.api.context import ERRORS, Actor, Ctx

router = APIRouter(responses=ERRORS, tags=["secrets"])


@router.get("/secrets", summary="All secrets without their values, and which workloads use them")
async def secrets(actor: Actor, ctx: Ctx) -> list[shapes_stored.SecretShape]:
    return [views_stored.secret(s) for s in await ctx.controller.secrets.list(actor)]


@router.put(
    "/secrets/{name}", summary="Store a value, or the login of a registry once it was tried"
)
async def set_secret(
    name: shapes.Word, body: shapes_stored.SecretOrder, actor: Actor, ctx: Ctx
) -> shapes_stored.SecretShape:
    return views_stored.secret(
        await ctx.controller.secrets.set(
            actor, name, body.value.get_secret_value(), registry=body.registry, user=body.user
        )
    )


@router.delete("/secrets/{name}", status_code=204, summary="Delete a secret that nothing uses")
async def delete(name: shapes.Word, actor: Actor, ctx: Ctx) -> None:
    await ctx.controller.secrets.delete(actor, name)
