"""Builds the web application: guards outside, the API and the pages inside."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import Match, Mount
from starlette.staticfiles import StaticFiles

from podwarden.errors import PodWardenError, Problem, shorten
from podwarden.web import guard, problems
from podwarden.web.api import (
    access,
    clusters,
    compose,
    feed,
    fit,
    secrets,
    storage,
    templates,
    workloads,
)
from podwarden.web.api.context import Context
from podwarden.web.face import Controller
from podwarden.web.login import Logins
from podwarden.web.pages import routes
from podwarden.web.pages.page import error_page, wants_page
from podwarden.web.settings import WebSettings
from podwarden.web.streams import Streams
from podwarden.web.throttle import Throttle

STATIC = Path(__file__).parent / "static"
SECRET_FIELDS = frozenset({"password", "kubeconfig", "token", "value"})


def create_app(controller: Controller, settings: WebSettings | None = None) -> FastAPI:
    """The ASGI application. `app.state.context.streams.close()` ends the open streams before a stop."""
    settings = settings or WebSettings()
    app = FastAPI(
        title="PodWarden",
        version=version("podwarden"),
        summary="Run GPU work on a handful of machines, with a queue that explains itself.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # its scripts come from another server
        redoc_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(guard.HeadersOut),
            Middleware(guard.Hosts, names=settings.hosts),
            Middleware(guard.Gate, access=controller.access, settings=settings),
            Middleware(guard.Bodies, most=settings.most_body, seconds=settings.body_s),
        ],
    )
    throttle = Throttle(settings.clock, tries=settings.login_tries, pause=settings.login_pause_s)
    app.state.context = Context(
        controller=controller,
        settings=settings,
        logins=Logins(controller.access, throttle),
        streams=Streams(settings.most_streams, settings.most_streams_each),
        version=app.version,
    )
    api = APIRouter(prefix="/api/v1")
    parts = (access, clusters, storage, secrets, templates, fit, workloads, compose, feed)
    for part in parts:
        api.include_router(part.router)
    app.include_router(api)
    app.add_api_route(
        "/healthz", _healthz, tags=["status"], summary="Is the process alive; no login"
    )
    for router in routes.ROUTERS:
        app.include_router(router, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=STATIC))
    _answer_errors(app)
    return app


async def _healthz() -> JSONResponse:
    return JSONResponse({"status": "ok"})


def _answer_errors(app: FastAPI) -> None:
    app.add_exception_handler(PodWardenError, _own)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


async def _own(_: Request, error: Exception) -> Response:
    assert isinstance(error, PodWardenError)
    return problems.of(error)


async def _invalid(_: Request, error: Exception) -> Response:
    """Every faulty field, without ever repeating a secret."""
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if any(each["type"] == "json_invalid" for each in found):
        return problems.problem(400, "MALFORMED_JSON", "The body is not JSON.")
    faults = [_fault(each) for each in found[:50]]
    detail = "; ".join(str(fault) for fault in faults)
    return problems.problem(422, "INVALID", detail, problems=faults)


def _fault(error: dict[str, Any]) -> Problem:
    path = _path(error["loc"][1:]) or "body"
    secret = any(part in SECRET_FIELDS for part in error["loc"])
    given = error.get("input")
    shown = "" if secret or not isinstance(given, (str, int, float)) else shorten(given)
    fixes = {"missing": "this field is needed", "extra_forbidden": "there is no such field"}
    fix = fixes.get(error["type"], error["msg"].removeprefix("Value error, "))
    if error["type"] in ("literal_error", "enum"):
        fix = f"one of {error['ctx']['expected']}".replace("'", "").replace(" or ", ", ")
    return Problem(path, shown, fix[:1].lower() + fix[1:])


def _path(parts: Sequence[object]) -> str:
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + shorten(part)
    return text


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        if wants_page(request):
            return error_page(404, "NO_SUCH_PAGE", "There is nothing at this address.")
        return problems.problem(404, "NO_SUCH_PAGE", "There is nothing at this address.")
    if error.status_code == 405:
        allowed = {"Allow": ", ".join(sorted(_methods(request)))}
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=allowed)
        return problems.problem(
            405,
            "METHOD_NOT_ALLOWED",
            f"{shorten(request.method)} is not possible here.",
            headers=allowed,
        )
    if error.status_code == 400:
        return problems.problem(400, "MALFORMED_JSON", "The body is not JSON.")
    return problems.problem(error.status_code, "REFUSED", str(error.detail), headers=error.headers)


def _methods(request: Request) -> set[str]:
    """Every method that some route takes at this address."""
    found = {
        method
        for method in ("GET", "POST", "PUT", "DELETE")
        for route in request.app.router.routes
        if route.matches({**request.scope, "method": method})[0] is Match.FULL
        and not isinstance(route, Mount)
    }
    return found | {"OPTIONS"} | ({"HEAD"} if "GET" in found else set())


async def _unexpected(_: Request, __: Exception) -> Response:
    """The server logs what happened; the client learns only that it did."""
    answer = problems.problem(
        500,
        "INTERNAL",
        "PodWarden made a mistake; its log says more. Look at what was done before asking again.",
    )
    for name, value in guard.SECURITY_HEADERS.items():
        answer.headers.setdefault(name, value)
    return answer
