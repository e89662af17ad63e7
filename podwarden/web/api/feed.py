"""Changes as server-sent events: what changed, never the thing itself, so that a listener reads afresh.

Each event has an id; a listener that comes back with `Last-Event-ID` gets what it missed, or `reset`
(read everything again) when that is too long ago.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from podwarden.control.feed import Notice
from podwarden.web.api.context import ERRORS, Actor, Context, Ctx
from podwarden.web.face import Subscription
from podwarden.web.streams import Stream

router = APIRouter(responses=ERRORS)


@router.get(
    "/feed",
    tags=["status"],
    summary="Changes as they happen (server-sent events)",
    response_class=Response,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def feed(
    request: Request,
    actor: Actor,
    ctx: Ctx,
    last_event_id: Annotated[str, Header(max_length=40)] = "",
    after: Annotated[str, Query(max_length=40, description="as Last-Event-ID")] = "",
) -> Response:
    if request.scope.get("podwarden.head"):
        return Response(media_type="text/event-stream")
    release = ctx.streams.take(actor.name)
    return Stream(
        _events(ctx, request.state.secret, _known(last_event_id or after)),
        media_type="text/event-stream",
        release=release,
    )


def _known(text: str) -> int | None:
    """None: a first visit. What is no number is older than everything: it leads to `reset`."""
    if not text:
        return None
    return int(text) if text.isascii() and text.isdigit() else -1


async def _events(ctx: Context, secret: str, after: int | None) -> AsyncIterator[str]:
    beat, clock = ctx.settings.heartbeat_s, ctx.settings.clock
    checked = clock()
    async with ctx.controller.feed.subscribe(after) as subscription:
        yield "retry: 1000\n\n"
        async for notice in ctx.streams.paced(_notices(subscription, beat), beat * 2):
            if notice is None and subscription.closed:
                return
            if clock() - checked >= beat:  # a revoked token ends its streams too
                if await ctx.controller.access.authenticate(secret) is None:
                    return
                checked = clock()
            if notice is None:
                yield ": still here\n\n"
            else:
                data = json.dumps({"kind": notice.kind, "subject": notice.subject})
                yield f"id: {notice.id}\nevent: change\ndata: {data}\n\n"


async def _notices(subscription: Subscription, every: float) -> AsyncIterator[Notice | None]:
    while True:
        yield await subscription.next(every)
