"""Your account: tokens, password; for admins the users."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from starlette.responses import RedirectResponse

from podwarden.domain.access import Role, User
from podwarden.errors import Invalid, PodWardenError, Refused
from podwarden.web.api.context import Actor, Context, Ctx, OwnToken
from podwarden.web.pages.frame import form_of, frame
from podwarden.web.pages.page import PageRoute, page
from podwarden.web.problems import status_of

router = APIRouter(route_class=PageRoute)
MOST_DAYS = 3650


@router.get("/account")
async def account(actor: Actor, token: OwnToken, ctx: Ctx, done: str = "") -> Response:
    return await _page(ctx, actor, token.id, done=done)


@router.post("/account/tokens")
async def create_token(request: Request, actor: Actor, token: OwnToken, ctx: Ctx) -> Response:
    """The secret stands on the answer, this once; so there is no redirect."""
    form = await form_of(request)
    try:
        ttl = _days(form.get("days", ""))
        _, secret = await ctx.controller.access.create_token(
            actor, form.get("label", "")[:253], ttl
        )
    except Refused as error:
        return await _page(ctx, actor, token.id, fault=("token", error), form=form)
    return await _page(ctx, actor, token.id, secret=secret)


@router.post("/account/tokens/{id_}/revoke")
async def revoke(id_: Annotated[str, Path(max_length=253)], actor: Actor, ctx: Ctx) -> Response:
    await ctx.controller.access.revoke_token(actor, id_)
    return RedirectResponse("/account?done=revoked", status_code=303)


@router.post("/account/password")
async def password(request: Request, actor: Actor, token: OwnToken, ctx: Ctx) -> Response:
    form = await form_of(request)
    try:
        _same(form)
        await ctx.controller.access.set_password(actor, actor.name, form.get("password", ""))
    except Refused as error:
        return await _page(ctx, actor, token.id, fault=("password", error))
    return RedirectResponse("/account?done=password", status_code=303)


@router.post("/account/users")
async def add_user(request: Request, actor: Actor, token: OwnToken, ctx: Ctx) -> Response:
    form = await form_of(request)
    try:
        _same(form)
        role = _role(form.get("role", ""))
        await ctx.controller.access.add_user(
            actor, form.get("name", "").strip(), role, form.get("password", "")
        )
    except Refused as error:
        return await _page(ctx, actor, token.id, fault=("user", error), form=form)
    return RedirectResponse("/account?done=user", status_code=303)


@router.get("/account/users/{name}/remove")
async def ask_remove(
    name: Annotated[str, Path(max_length=253)], actor: Actor, ctx: Ctx
) -> Response:
    owned = await ctx.controller.workloads.list(actor, owner=name, limit=50)
    values = await frame(ctx, actor, "/account")
    says = ["The account and its tokens end at once."]
    if owned:
        says.append(
            f"{len(owned)} workloads are {name}'s and go on as they are; admins can change them."
        )
    more = {
        "title": f"Remove user {name}",
        "says": says,
        "button": f"Remove {name}",
        "cancel": "/account",
    }
    return page("confirm.html", values | more)


@router.post("/account/users/{name}/remove")
async def remove_user(
    name: Annotated[str, Path(max_length=253)], actor: Actor, ctx: Ctx
) -> Response:
    await ctx.controller.access.remove_user(actor, name)
    return RedirectResponse("/account?done=removed", status_code=303)


def _same(form: dict[str, str]) -> None:
    if form.get("password", "") != form.get("again", ""):
        raise Invalid.of("password", "", "the same in both fields")


def _role(word: str) -> Role:
    try:
        return Role(word)
    except ValueError as error:
        raise Invalid.of("role", word, "admin, member or viewer") from error


def _days(text: str) -> timedelta | None:
    """None for an empty field: it does not expire."""
    text = text.strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST_DAYS):
        raise Invalid.of("days", text, f"a whole number from 1 to {MOST_DAYS:,}, or nothing")
    return timedelta(days=int(text))


async def _page(
    ctx: Context,
    actor: User,
    own: str,
    *,
    done: str = "",
    secret: str = "",
    fault: tuple[str, PodWardenError] | None = None,
    form: dict[str, str] | None = None,
) -> Response:
    access = ctx.controller.access
    tokens = await access.tokens(actor)
    values = await frame(ctx, actor, "/account")
    said = {
        "revoked": "The token is revoked.",
        "password": "Your password is changed.",
        "user": "The user is added.",
        "removed": "The user is removed.",
    }
    more: dict[str, Any] = {
        "tokens": [t for t in tokens if not t.session],
        "sessions": [t for t in tokens if t.session],
        "own": own,
        "users": await access.users(actor) if actor.role is Role.ADMIN else (),
        "done": said.get(done, ""),
        "secret": secret,
        "fault": (fault[0], fault[1].message) if fault else ("", ""),
        "form": {"label": "", "days": "", "name": "", "role": "member", **(form or {})},
        "roles": [
            ("member", "member: deploys, changes what is theirs"),
            ("viewer", "viewer: looks"),
            ("admin", "admin: everything"),
        ],
    }
    return page("account.html", values | more, status=status_of(fault[1]) if fault else 200)
