"""Session, tokens, users."""

from __future__ import annotations

from datetime import timedelta

from fastapi import APIRouter, Request

from podwarden.domain.access import Role
from podwarden.web.api import shapes, views
from podwarden.web.api.context import ERRORS, Actor, Ctx, OwnToken

router = APIRouter(responses=ERRORS)


@router.post(
    "/session", status_code=201, tags=["access"], summary="Log in; the only call without a token"
)
async def login(body: shapes.Credentials, request: Request, ctx: Ctx) -> shapes.Session:
    address = request.client.host if request.client else ""
    token, secret = await ctx.logins.login(body.name, body.password.get_secret_value(), address)
    known = await ctx.controller.access.authenticate(secret)
    return shapes.Session(
        user=token.user,
        role=known[1].role if known else "",
        token=secret,
        expires_at=token.expires_at,
    )


@router.get("/session", tags=["access"], summary="Who this token belongs to")
async def me(actor: Actor, token: OwnToken) -> shapes.Me:
    return shapes.Me(user=actor.name, role=actor.role, token=views.token(token))


@router.delete(
    "/session", status_code=204, tags=["access"], summary="Log out: revoke the token in use"
)
async def logout(token: OwnToken, ctx: Ctx) -> None:
    await ctx.controller.access.logout(token)


@router.get(
    "/tokens", tags=["access"], summary="Your tokens, for admins all; without their secrets"
)
async def tokens(actor: Actor, ctx: Ctx) -> list[shapes.TokenShape]:
    return [views.token(t) for t in await ctx.controller.access.tokens(actor)]


@router.post(
    "/tokens", status_code=201, tags=["access"], summary="Create a token; its secret is shown once"
)
async def create_token(body: shapes.TokenOrder, actor: Actor, ctx: Ctx) -> shapes.NewToken:
    ttl = timedelta(days=body.days) if body.days is not None else None
    token, secret = await ctx.controller.access.create_token(actor, body.label, ttl)
    return shapes.NewToken(**views.token(token).model_dump(), token=secret)


@router.delete(
    "/tokens/{token}", status_code=204, tags=["access"], summary="Revoke a token at once"
)
async def revoke_token(token: shapes.Word, actor: Actor, ctx: Ctx) -> None:
    await ctx.controller.access.revoke_token(actor, token)


@router.get("/users", tags=["access"], summary="All users")
async def users(actor: Actor, ctx: Ctx) -> list[shapes.UserShape]:
    return [views.user(u) for u in await ctx.controller.access.users(actor)]


@router.post("/users", status_code=201, tags=["access"], summary="Add a user (admins)")
async def add_user(body: shapes.UserOrder, actor: Actor, ctx: Ctx) -> shapes.UserShape:
    return views.user(
        await ctx.controller.access.add_user(
            actor, body.name, Role(body.role), body.password.get_secret_value()
        )
    )


@router.delete("/users/{name}", status_code=204, tags=["access"], summary="Remove a user (admins)")
async def remove_user(name: shapes.Word, actor: Actor, ctx: Ctx) -> None:
    await ctx.controller.access.remove_user(actor, name)


@router.put(
    "/users/{name}/password",
    status_code=204,
    tags=["access"],
    summary="Set a password: your own, or as admin anyone's",
)
async def set_password(
    name: shapes.Word, body: shapes.PasswordOrder, actor: Actor, ctx: Ctx
) -> None:
    await ctx.controller.access.set_password(actor, name, body.password.get_secret_value())
