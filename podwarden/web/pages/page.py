"""How a page is made: templates with escaping everywhere, words for times and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from podwarden.domain.units import show_gib

HTML = Path(__file__).parent.parent / "html"

_environment = Environment(
    loader=FileSystemLoader(HTML),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.filters["gib"] = show_gib


def _clock(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%H:%M:%S")


_environment.filters["clock"] = _clock


def page(template: str, values: Mapping[str, Any], *, status: int = 200) -> HTMLResponse:
    return HTMLResponse(_environment.get_template(template).render(values), status_code=status)


def part(template: str, block: str, values: Mapping[str, Any]) -> HTMLResponse:
    """One named block of the page, for the live update."""
    chosen = _environment.get_template(template)
    context = chosen.new_context(dict(values))
    return HTMLResponse("".join(chosen.blocks[block](context)))
