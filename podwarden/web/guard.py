"""What every request passes before any route: headers, host name, size and type of the body, who it is.

Nothing is answered without login or token except `OPEN`. Plain ASGI, so that streams pass through unbuffered.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from typing import Protocol
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from podwarden.domain.access import Token, User
from podwarden.errors import PodWardenError, Unauthenticated
from podwarden.web import problems
from podwarden.web.settings import WebSettings

OPEN = frozenset({"/healthz", "/login", "/api/v1/session"})  # the last: only POST, see `_open`
OPEN_BELOW = "/static/"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

NOBODY = "Log in first, or send a token as Authorization: Bearer pw_…."
UNKNOWN = "This token is not known, has expired or was revoked. Log in again."

SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Authenticator(Protocol):
    async def authenticate(self, secret: str) -> tuple[Token, User] | None:
        """Whose secret this is; None when nobody's, expired or revoked."""
        ...


class HeadersOut:
    """Security headers on every answer; nothing that needs a login is cached; HEAD is GET without a body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        head = scope["method"] == "HEAD"
        cached = scope["path"].startswith(OPEN_BELOW)

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-cache" if cached else "no-store")
            elif head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        inner = {**scope, "method": "GET", "podwarden.head": True} if head else scope
        await self._app(inner, receive, send_on)


class Hosts:
    """A page of another site may point its own name at this address (DNS rebinding): only names that
    are meant for PodWarden are answered, and the address the connection came in on.
    """

    def __init__(self, app: ASGIApp, *, names: frozenset[str]) -> None:
        self._app = app
        self._names = names | {"127.0.0.1", "localhost", "::1"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._known(scope):
            answer = problems.problem(
                421,
                "HOST_NOT_ALLOWED",
                "This name is not one PodWarden answers to. Use the address it prints at start, or add the name to PODWARDEN_HOSTS.",
            )
            await answer(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _known(self, scope: Scope) -> bool:
        given = Headers(scope=scope).getlist("host")
        if len(given) != 1:
            return False
        try:
            name = urlsplit(f"//{given[0]}").hostname
        except ValueError:
            return False
        if not name:
            return False
        server = scope.get("server")
        return name in self._names or bool(server and name == server[0] and _is_address(name))


def _is_address(name: str) -> bool:
    return ":" in name or name.replace(".", "").isdigit()


class TooLarge(Exception):
    """The body grew over the limit while it was read."""


class TooSlow(Exception):
    """The body did not come to its end in time."""


class Bodies:
    """Refuses a body that takes its time, which would keep a connection for good without a login. Refuses a body over the limit by its stated length, without reading it, or at the byte that
    crosses the limit; and anything but JSON for the API.
    """

    def __init__(self, app: ASGIApp, *, most: int, seconds: float) -> None:
        self._app = app
        self._most = most
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._limited(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        length = headers.get("content-length", "0")
        chunked = "transfer-encoding" in headers
        if not length.isascii() or not length.isdigit():
            return problems.problem(400, "MALFORMED_REQUEST", "Content-Length is not a number.")
        if len(length) > 18 or int(length) > self._most:
            return self._too_large()
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if (
            scope["path"].startswith("/api/")
            and (chunked or int(length) > 0)
            and kind != "application/json"
        ):
            return problems.problem(
                415, "NOT_JSON", "Send the body as JSON, with Content-Type: application/json."
            )
        return None

    def _too_large(self) -> Response:
        return problems.problem(
            413,
            "BODY_TOO_LARGE",
            f"The body is larger than {self._most // 1024} KiB, which is all PodWarden reads.",
            headers={"Connection": "close"},
        )

    async def _limited(self, scope: Scope, receive: Receive, send: Send) -> None:
        seen = 0
        started = whole = late = False
        ends = asyncio.get_running_loop().time() + self._seconds

        async def receive_counted() -> Message:
            nonlocal seen, whole, late
            try:
                async with asyncio.timeout_at(None if whole else ends):
                    message = await receive()
            except TimeoutError:
                late = True
                raise TooSlow from None
            seen += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if seen > self._most:
                raise TooLarge
            return message

        async def send_noted(message: Message) -> None:
            """Whatever the inside makes of a body that broke off is not what is answered."""
            nonlocal started
            if (seen <= self._most and not late) or started:
                started = True
                await send(message)

        with suppress(TooLarge, TooSlow):
            await self._app(scope, receive_counted, send_noted)
        if late and not started:
            await self._too_slow()(scope, receive, send)
        elif seen > self._most and not started:
            await self._too_large()(scope, receive, send)

    def _too_slow(self) -> Response:
        return problems.problem(
            408,
            "BODY_TOO_SLOW",
            f"The body was not complete after {self._seconds:.0f} s.",
            headers={"Connection": "close"},
        )


class Gate:
    """Who is it: a bearer token, or the cookie of a page login. A write by cookie must come from our own
    pages. Puts `user` and `token` into the request's state.
    """

    def __init__(self, app: ASGIApp, *, access: Authenticator, settings: WebSettings) -> None:
        self._app = app
        self._access = access
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        refusal = await self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if _open(scope):
            return (
                None if scope["method"] in SAFE or same_origin(headers) is not False else _crossed()
            )
        secret, by_cookie = _secret(headers, self._settings.cookie)
        if by_cookie and scope["method"] not in SAFE and same_origin(headers) is not True:
            return _crossed()
        try:
            known = await self._access.authenticate(secret) if secret else None
        except PodWardenError as error:
            return problems.of(error)
        if known is None or (by_cookie and not known[0].session):
            return _to_login(scope) or problems.of(Unauthenticated(UNKNOWN if secret else NOBODY))
        scope.setdefault("state", {}).update(token=known[0], user=known[1], secret=secret)
        return None


def _open(scope: Scope) -> bool:
    path = scope["path"]
    if path == "/api/v1/session":
        return bool(scope["method"] == "POST")
    return path in OPEN or path.startswith(OPEN_BELOW)


def _secret(headers: Headers, cookie: str) -> tuple[str, bool]:
    """The secret given, and whether a browser sent it by itself. A header wins over a cookie."""
    given = headers.get("authorization")
    if given is not None:
        scheme, _, value = given.partition(" ")
        return (value.strip() if scheme.lower() == "bearer" else "", False)
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(cookie)
    except CookieError:
        return "", False
    return (morsel.value, True) if morsel and morsel.value else ("", False)


def same_origin(headers: Headers) -> bool | None:
    """Did one of our own pages send this? None: the client did not say, so it is no browser."""
    site = headers.get("sec-fetch-site")
    origin = headers.get("origin")
    if site is not None:
        return site == "same-origin"
    if origin is not None:
        return urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    return None


def _crossed() -> Response:
    return problems.problem(
        403,
        "OTHER_ORIGIN",
        "This change was asked for by a page of another site, or by none: it is not done.",
    )


def _to_login(scope: Scope) -> Response | None:
    """Pages and their forms lead to the login instead of answering 401; the API never does."""
    path = scope["path"]
    if path.startswith("/api/") or scope["method"] not in ("GET", "POST"):
        return None
    onward = "" if path == "/" else f"?next={quote(path, safe='')}"
    return RedirectResponse(f"/login{onward}", status_code=303)
