"""Clusters, their nodes and GPUs, and what the control plane says of itself."""

from __future__ import annotations

from fastapi import APIRouter, Response

from podwarden.scheduling.codec import snapshot_to_json
from podwarden.web.api import shapes, views
from podwarden.web.api.context import ERRORS, Actor, Ctx, InCluster

router = APIRouter(responses=ERRORS)


@router.get("/clusters", tags=["clusters"], summary="All clusters")
async def clusters(actor: Actor, ctx: Ctx) -> list[shapes.ClusterShape]:
    return [views.cluster(c) for c in await ctx.controller.clusters.list(actor)]


@router.post(
    "/clusters",
    status_code=201,
    tags=["clusters"],
    summary="Adopt a cluster by its kubeconfig (admins)",
)
async def adopt(body: shapes.ClusterOrder, actor: Actor, ctx: Ctx) -> shapes.AdoptedShape:
    adoption = await ctx.controller.clusters.adopt(
        actor, body.name, body.kubeconfig.get_secret_value(), simulated=body.simulated
    )
    view = await ctx.controller.clusters.show(actor, adoption.cluster.name)
    return shapes.AdoptedShape(
        **views.cluster(view).model_dump(), taken_over=list(adoption.taken_over)
    )


@router.get("/clusters/{name}", tags=["clusters"], summary="One cluster")
async def cluster(name: shapes.Word, actor: Actor, ctx: Ctx) -> shapes.ClusterShape:
    return views.cluster(await ctx.controller.clusters.show(actor, name))


@router.get(
    "/clusters/{name}/kubeconfig",
    tags=["clusters"],
    summary="Its kubeconfig (admins)",
    response_class=Response,
    responses={200: {"content": {"application/yaml": {}}}},
)
async def kubeconfig(name: shapes.Word, actor: Actor, ctx: Ctx) -> Response:
    text = await ctx.controller.clusters.kubeconfig(actor, name)
    return Response(text, media_type="application/yaml")


@router.delete(
    "/clusters/{name}",
    status_code=204,
    tags=["clusters"],
    summary="Forget a cluster; what runs there goes on running (admins)",
)
async def remove(name: shapes.Word, actor: Actor, ctx: Ctx) -> None:
    await ctx.controller.clusters.remove(actor, name)


@router.get("/nodes", tags=["clusters"], summary="All nodes")
async def nodes(actor: Actor, ctx: Ctx, cluster: InCluster = "") -> list[shapes.NodeShape]:
    found = await ctx.controller.clusters.nodes(actor, cluster)
    return [views.node(name, node) for name, node in found]


@router.get("/gpus", tags=["clusters"], summary="All GPUs: free VRAM, and who holds the rest")
async def gpus(actor: Actor, ctx: Ctx, cluster: InCluster = "") -> list[shapes.GpuShape]:
    return [views.gpu(g) for g in await ctx.controller.workloads.gpus(actor, cluster)]


@router.get(
    "/snapshot",
    tags=["clusters"],
    summary="Everything the planner sees now, for an offline replay",
    response_class=Response,
    responses={200: {"content": {"application/json": {}}}},
)
async def snapshot(actor: Actor, ctx: Ctx, cluster: InCluster = "") -> Response:
    seen = await ctx.controller.workloads.snapshot(actor, cluster)
    return Response(snapshot_to_json(seen), media_type="application/json")


@router.get("/status", tags=["status"], summary="What PodWarden itself is doing")
async def status(ctx: Ctx) -> shapes.StatusShape:
    now = await ctx.controller.status()
    return shapes.StatusShape(
        version=ctx.version,
        leading=now.leading,
        leader=now.leader,
        clusters=[views.cluster(c) for c in now.clusters],
        sentences=list(now.sentences),
    )
