"""Storages: named places for data."""

from __future__ import annotations

from fastapi import APIRouter

from podwarden.web.api import shapes, shapes_stored, views_stored
from podwarden.web.api.context import ERRORS, Actor, Ctx

router = APIRouter(responses=ERRORS, tags=["storage"])


@router.get("/storage", summary="All storages, and which workloads use them")
async def storages(actor: Actor, ctx: Ctx) -> list[shapes_stored.StorageShape]:
    return [views_stored.storage(s) for s in await ctx.controller.storage.list(actor)]


@router.post(
    "/storage", status_code=201, summary="Add an NFS export, or a folder of one node (admins)"
)
async def add(
    body: shapes_stored.StorageOrder, actor: Actor, ctx: Ctx
) -> shapes_stored.StorageShape:
    return views_stored.storage(
        await ctx.controller.storage.add(
            actor,
            body.name,
            nfs=body.nfs,
            host=body.host,
            cluster=body.cluster,
            check=body.check,
        )
    )


@router.delete(
    "/storage/{name}",
    status_code=204,
    summary="Forget a storage that nothing uses; what lies there is not touched (admins)",
)
async def remove(name: shapes.Word, actor: Actor, ctx: Ctx) -> None:
    await ctx.controller.storage.remove(actor, name)
