"""How a page is made: templates with escaping everywhere, filters for times and sizes, errors as pages."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from podwarden.domain.units import show_duration, show_gb, show_gib
from podwarden.errors import PodWardenError
from podwarden.web import problems

HTML = Path(__file__).parent.parent / "html"

_environment = Environment(
    loader=FileSystemLoader(HTML),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def _clock(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%H:%M:%S")


def _moment(at: datetime) -> str:
    """`Tue 1 Dec 2026 14:06:24 UTC`: what stands there without JavaScript and on hover."""
    there = at.astimezone(UTC)
    return f"{there:%a} {there.day} {there:%b %Y %H:%M:%S} UTC"


def age(at: datetime, now: datetime | None = None) -> str:
    """`42 s`, `2 h 5 min`."""
    seconds = ((now or datetime.now(UTC)) - at).total_seconds()
    return show_duration(seconds) if seconds >= 10 else f"{max(seconds, 0):.0f} s"


def _percent(share: float) -> str:
    """A width for SVG: at most two decimals, no exponent."""
    return f"{share:.2f}".rstrip("0").rstrip(".") + "%"


_environment.filters.update(
    gib=show_gib, gb=show_gb, clock=_clock, moment=_moment, age=age, percent=_percent
)


def page(template: str, values: Mapping[str, Any], *, status: int = 200) -> HTMLResponse:
    return HTMLResponse(_environment.get_template(template).render(values), status_code=status)


def part(template: str, block: str, values: Mapping[str, Any]) -> HTMLResponse:
    """One named block of the page, for the live update."""
    chosen = _environment.get_template(template)
    context = chosen.new_context(dict(values))
    return HTMLResponse("".join(chosen.blocks[block](context)))


def shown(template: str, values: Mapping[str, Any], only: str) -> HTMLResponse:
    """The page, or its live part alone for `?only=live`."""
    return part(template, "live", values) if only == "live" else page(template, values)


def error_page(status: int, code: str, detail: str) -> HTMLResponse:
    return page("error.html", {"status": status, "code": code, "detail": detail}, status=status)


def wants_page(request: Request) -> bool:
    """Is it a person's browser that asks, outside the API?"""
    accept = request.headers.get("accept", "")
    return not request.url.path.startswith("/api/") and "text/html" in accept


class PageRoute(APIRoute):
    """Answers faults with a page, not with JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                return await handle(request)
            except PodWardenError as error:
                return error_page(problems.status_of(error), error.code, error.message)
            except RequestValidationError:
                detail = "This address holds a value that PodWarden does not know."
                return error_page(422, "INVALID", detail)

        return handled
