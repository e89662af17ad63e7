"""Log in and out with a cookie that no script can read and no other site can send."""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from podwarden.errors import Unauthenticated, Unavailable
from podwarden.web.api.context import Ctx, OwnToken
from podwarden.web.pages.page import page
from podwarden.web.problems import TooMany

router = APIRouter()


@router.get("/login")
async def show(next: str = "/") -> Response:  # noqa: A002 - the name in the address
    return page("login.html", {"next": onward(next), "name": "", "fault": ""})


@router.post("/login")
async def login(request: Request, ctx: Ctx) -> Response:
    form = await _form(request)
    name, target = form.get("name", ""), onward(form.get("next", "/"))
    address = request.client.host if request.client else ""
    try:
        _, secret = await ctx.logins.login(name, form.get("password", ""), address)
    except (Unauthenticated, TooMany, Unavailable) as error:
        status = (
            429 if isinstance(error, TooMany) else 503 if isinstance(error, Unavailable) else 401
        )
        values = {"next": target, "name": name[:100], "fault": error.message}
        return page("login.html", values, status=status)
    answer = RedirectResponse(target, status_code=303)
    answer.set_cookie(
        ctx.settings.cookie,
        secret,
        httponly=True,
        samesite="strict",
        secure=ctx.settings.secure,
        path="/",
    )
    return answer


@router.post("/logout")
async def logout(token: OwnToken, ctx: Ctx) -> Response:
    await ctx.controller.access.logout(token)
    answer = RedirectResponse("/login", status_code=303)
    answer.delete_cookie(
        ctx.settings.cookie, path="/", secure=ctx.settings.secure, httponly=True, samesite="strict"
    )
    return answer


def onward(target: str) -> str:
    """Where to go after the login: a path of our own, never another site."""
    local = target.startswith("/") and not target.startswith(("//", "/\\"))
    return target if local and target.isprintable() and len(target) < 500 else "/"


async def _form(request: Request) -> dict[str, str]:
    text = (await request.body()).decode("utf-8", "replace")
    return {key: values[-1] for key, values in parse_qs(text, max_num_fields=10).items()}
