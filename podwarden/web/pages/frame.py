"""What stands around every page: who is logged in, how many wait, what is simulated, what is in trouble."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from fastapi import Request

from podwarden.domain.access import Role, User
from podwarden.errors import Invalid
from podwarden.web.api.context import Context

MOST_FIELDS = 200


async def frame(ctx: Context, actor: User, here: str, **values: Any) -> dict[str, Any]:
    """here: which entry of the navigation is this page's."""
    status, queue = await asyncio.gather(
        ctx.controller.status(), ctx.controller.workloads.queue(actor)
    )
    return {
        "user": actor,
        "admin": actor.role is Role.ADMIN,
        "viewer": actor.role is Role.VIEWER,
        "here": here,
        "queued": len(queue),
        "clusters": status.clusters,
        "simulated": [c.cluster.name for c in status.clusters if c.cluster.simulated],
        "troubles": [c for c in status.clusters if c.trouble or not c.reachable],
        "at": datetime.now(UTC),
        **values,
    }


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form as typed; of several of one name the last. Invalid: too many fields."""
    text = (await request.body()).decode("utf-8", "replace")
    try:
        fields = parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise Invalid.of("form", "", f"at most {MOST_FIELDS} fields") from error
    return {key: values[-1].replace("\x00", "") for key, values in fields.items()}


_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
MOST_OF_A_LINE = 2000  # characters of one log line that are shown


def plain(line: str) -> str:
    """A line of a log as it may stand on a page: no colour codes, no marks that turn the text around."""
    cut = line[: MOST_OF_A_LINE * 2]
    clean = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", _ESCAPES.sub("", cut))
    return clean if len(clean) <= MOST_OF_A_LINE else clean[: MOST_OF_A_LINE - 1] + "…"
