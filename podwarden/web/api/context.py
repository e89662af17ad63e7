"""What a route is given: who asks, and the control plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Query, Request

from podwarden.control.answers import Gpu
from podwarden.domain.access import Token, User
from podwarden.domain.inventory import Device
from podwarden.web.api.shapes import ProblemDetails, Word
from podwarden.web.face import Controller
from podwarden.web.login import Logins
from podwarden.web.settings import WebSettings
from podwarden.web.streams import Streams


@dataclass(frozen=True, slots=True)
class Context:
    controller: Controller
    settings: WebSettings
    logins: Logins
    streams: Streams
    version: str


def _context(request: Request) -> Context:
    return cast("Context", request.app.state.context)


def _actor(request: Request) -> User:
    return cast("User", request.state.user)


def _token(request: Request) -> Token:
    return cast("Token", request.state.token)


Ctx = Annotated[Context, Depends(_context)]
Actor = Annotated[User, Depends(_actor)]
OwnToken = Annotated[Token, Depends(_token)]
InCluster = Annotated[Word, Query(description="which cluster, where there are several")]

ERRORS: dict[int | str, dict[str, object]] = {
    "4XX": {
        "model": ProblemDetails,
        "description": "Refused, with code and fix",
    },
    503: {"model": ProblemDetails, "description": "Something PodWarden needs does not answer"},
}


def by_uuid(gpus: tuple[Gpu, ...]) -> dict[str, Device]:
    return {gpu.device.uuid: gpu.device for gpu in gpus}


async def known_devices(ctx: Context, actor: User) -> dict[str, Device]:
    """From the nodes alone: who holds what is not asked, which would cost as much as a plan."""
    nodes = await ctx.controller.clusters.nodes(actor)
    return {device.uuid: device for _, node in nodes for device in node.devices}
