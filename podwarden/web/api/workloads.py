"""Deploy, look at, change and remove workloads."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request, Response

from podwarden.control.answers import Updated
from podwarden.domain.access import User
from podwarden.domain.inventory import Device
from podwarden.domain.workload import Priority, State, Workload
from podwarden.web.api import shapes, views, views_deploy
from podwarden.web.api.context import ERRORS, Actor, Context, Ctx, InCluster, known_devices
from podwarden.web.api.shapes_deploy import Changed, Deployed
from podwarden.web.api.sources import offer_of
from podwarden.web.problems import RefusedByPlan
from podwarden.web.streams import Stream

router = APIRouter(responses=ERRORS, tags=["workloads"])
Ref = Annotated[shapes.Word, Path(description="name or id")]


@router.post("/workloads", status_code=201, summary="Deploy a template or a file, or preview it")
async def deploy(
    *,
    body: shapes.Deploy,
    response: Response,
    actor: Actor,
    ctx: Ctx,
    idempotency_key: Annotated[
        str | None,
        Header(min_length=1, max_length=200, description="the same key makes one workload"),
    ] = None,
) -> Deployed:
    offer = await offer_of(body, ctx.controller.catalogue)
    once = (idempotency_key, body_hash(body)) if idempotency_key and not body.dry_run else None
    submitted = await ctx.controller.workloads.submit(
        actor, offer.spec, dry_run=body.dry_run, idempotency=once, generated=offer.generated
    )
    if submitted.refusal is not None:
        raise RefusedByPlan(submitted.refusal)
    known = await known_devices(ctx, actor)
    if submitted.workload is None:
        response.status_code = 200
    return views_deploy.deployed(offer.spec, submitted, known)


@router.get("/workloads", summary="Workloads, oldest first, in pages")
async def workloads(
    *,
    actor: Actor,
    ctx: Ctx,
    state: Annotated[list[State], Query(description="any of these")] = [],  # noqa: B006 - FastAPI copies it
    owner: Annotated[shapes.Word, Query()] = "",
    cluster: InCluster = "",
    search: Annotated[shapes.Word, Query(description="part of the name")] = "",
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    after: Annotated[shapes.Word, Query(description="`next` of the page before")] = "",
) -> shapes.WorkloadPage:
    found = await ctx.controller.workloads.list(
        actor,
        states=frozenset(state),
        owner=owner,
        cluster=cluster,
        search=search,
        limit=limit + 1,
        after=after,
    )
    page = found[:limit]
    known = await known_devices(ctx, actor)
    return shapes.WorkloadPage(
        items=[_shape(ctx, w, known) for w in page],
        next=page[-1].id if len(found) > limit else None,
    )


@router.get("/queue", summary="What waits, in order, and why")
async def queue(actor: Actor, ctx: Ctx, cluster: InCluster = "") -> list[shapes.WorkloadShape]:
    known = await known_devices(ctx, actor)
    return [
        views.workload(q.workload, q.verdict, known)
        for q in await ctx.controller.workloads.queue(actor, cluster)
    ]


@router.get("/workloads/{ref}", summary="One workload")
async def workload(
    ref: Ref, actor: Actor, ctx: Ctx, cluster: InCluster = ""
) -> shapes.WorkloadShape:
    return await _answer(ctx, actor, await ctx.controller.workloads.show(actor, ref, cluster))


@router.get("/workloads/{ref}/events", summary="What happened to it, oldest first")
async def events(
    *,
    ref: Ref,
    actor: Actor,
    ctx: Ctx,
    cluster: InCluster = "",
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 200,
) -> shapes.EventPage:
    found = await ctx.controller.workloads.events(actor, ref, cluster, after=after, limit=limit + 1)
    page = found[:limit]
    return shapes.EventPage(
        items=[views.event(e) for e in page], next=page[-1].id if len(found) > limit else None
    )


@router.get("/workloads/{ref}/revisions", summary="Its revisions, oldest first")
async def revisions(
    ref: Ref, actor: Actor, ctx: Ctx, cluster: InCluster = ""
) -> list[shapes.RevisionShape]:
    found = await ctx.controller.workloads.revisions(actor, ref, cluster)
    return [views.revision(r) for r in found]


@router.get(
    "/workloads/{ref}/logs",
    summary="Its output as text, streamed",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}},
)
async def logs(
    *,
    ref: Ref,
    request: Request,
    actor: Actor,
    ctx: Ctx,
    cluster: InCluster = "",
    instance: Annotated[shapes.Word, Query(description="one copy or one frame")] = "",
    follow: bool = False,
    tail: Annotated[int | None, Query(ge=0, le=100_000, description="only the last lines")] = None,
) -> Response:
    if request.scope.get("podwarden.head"):
        return Response(media_type="text/plain")
    release = ctx.streams.take(actor.name)
    with ExitStack() as stack:
        stack.callback(release)
        lines = await ctx.controller.workloads.logs(
            actor, ref, cluster, instance=instance or None, follow=follow, tail=tail
        )
        stack.pop_all()  # from here on the answer gives its place back
    return Stream(_lines(ctx, request, lines), media_type="text/plain", release=release)


@router.post("/workloads/{ref}/stop", summary="Stop it; its GPUs are free once it has ended")
async def stop(ref: Ref, actor: Actor, ctx: Ctx, cluster: InCluster = "") -> shapes.WorkloadShape:
    return await _answer(ctx, actor, await ctx.controller.workloads.stop(actor, ref, cluster))


@router.post("/workloads/{ref}/start", summary="Put a stopped or ended one in the queue again")
async def start(ref: Ref, actor: Actor, ctx: Ctx, cluster: InCluster = "") -> shapes.WorkloadShape:
    return await _answer(ctx, actor, await ctx.controller.workloads.start(actor, ref, cluster))


@router.put("/workloads/{ref}", summary="Give it a new revision")
async def update(
    ref: Ref, body: shapes.UpdateOrder, actor: Actor, ctx: Ctx, cluster: InCluster = ""
) -> Changed:
    current = await ctx.controller.workloads.show(actor, ref, cluster)
    offer = await offer_of(
        body if body.name else body.model_copy(update={"name": current.name}),
        ctx.controller.catalogue,
    )
    done = await ctx.controller.workloads.update(
        actor,
        ref,
        offer.spec,
        cluster,
        recreate=body.recreate,
        dry_run=body.dry_run,
        generated=offer.generated,
    )
    return await _changed(ctx, actor, done)


@router.post("/workloads/{ref}/rollback", summary="Go back to an earlier revision")
async def rollback(
    ref: Ref, body: shapes.RollbackOrder, actor: Actor, ctx: Ctx, cluster: InCluster = ""
) -> Changed:
    done = await ctx.controller.workloads.rollback(
        actor, ref, cluster, revision=body.revision, recreate=body.recreate
    )
    return await _changed(ctx, actor, done)


@router.put("/workloads/{ref}/priority", summary="Change its place in the queue")
async def priority(
    ref: Ref, body: shapes.PriorityOrder, actor: Actor, ctx: Ctx, cluster: InCluster = ""
) -> shapes.WorkloadShape:
    changed = await ctx.controller.workloads.set_priority(
        actor, ref, cluster, priority=Priority[body.priority.upper()]
    )
    return await _answer(ctx, actor, changed)


@router.delete(
    "/workloads/{ref}",
    status_code=202,
    summary="Stop and remove it; its volumes stay unless told otherwise",
)
async def delete(
    ref: Ref,
    actor: Actor,
    ctx: Ctx,
    cluster: InCluster = "",
    keep_volumes: bool = True,
) -> shapes.WorkloadShape:
    gone = await ctx.controller.workloads.delete(actor, ref, cluster, keep_volumes=keep_volumes)
    return await _answer(ctx, actor, gone)


async def _answer(ctx: Context, actor: User, noun: Workload) -> shapes.WorkloadShape:
    return _shape(ctx, noun, await known_devices(ctx, actor))


def _shape(ctx: Context, noun: Workload, known: dict[str, Device]) -> shapes.WorkloadShape:
    calls = ctx.controller.workloads
    return views.workload(noun, calls.verdict(noun.id), known, calls.urls(noun))


async def _changed(ctx: Context, actor: User, done: Updated) -> Changed:
    return Changed(
        workload=await _answer(ctx, actor, done.workload),
        how=done.how,
        text=done.text,
        made_secrets=views_deploy.made_secrets(done.made),
    )


def body_hash(body: shapes.Given) -> str:
    return hashlib.sha256(body.model_dump_json().encode()).hexdigest()


async def _lines(ctx: Context, request: Request, lines: AsyncIterator[str]) -> AsyncIterator[str]:
    """An idle log sends nothing, so that a client that went away is looked for now and then."""
    async for line in ctx.streams.paced(lines, ctx.settings.heartbeat_s):
        if line is not None:
            yield line + "\n"
        elif await request.is_disconnected():
            return
