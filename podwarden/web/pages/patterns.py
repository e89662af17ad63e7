"""Every component in both themes, with words as they are used. What is not here is not used."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fastapi import APIRouter, Response

from podwarden.domain.reason import Code, Reason
from podwarden.web.api.context import Actor, Ctx
from podwarden.web.pages.bars import Bar, Cell
from podwarden.web.pages.diff import Line
from podwarden.web.pages.fields import Field
from podwarden.web.pages.frame import frame
from podwarden.web.pages.page import PageRoute, page
from podwarden.web.pages.sentences import ICONS
from podwarden.web.pages.verdict import Choice

router = APIRouter(route_class=PageRoute)

KEEP = Cell("keep", 48, 2, "", "Kept for the driver: 0.4 GiB")
BARS = (
    ("shared, some used outside", Bar(50, (
        Cell("p", 0, 16.7, "ollama", "ollama: 4.0 GiB"),
        Cell("p", 16.7, 8.3, "frigate", "frigate: 2.0 GiB", tight=True),
        Cell("out", 46, 2, "", "Outside PodWarden: 0.5 GiB"), KEEP), "n3 GPU 0: shared")),
    ("whole", Bar(100, (Cell("p", 0, 97, "vllm", "vllm: the whole GPU"), Cell("keep", 97, 3, "", "Kept for the driver")), "n3 GPU 1: whole")),
    ("reserved", Bar(66, (Cell("hold", 0, 64, "kept for comfyui", "Reserved for comfyui"),), "n4 GPU 0: reserved")),
    ("what a preview adds", Bar(50, (Cell("p", 0, 25, "ollama", "ollama: 6.0 GiB"), Cell("new", 25, 13, "whisper", "whisper would take 3.0 GiB"), KEEP), "n3 GPU 0: after")),
    ("lost", Bar(66, (), "n4 GPU 1: not available", gone=True)),
)  # fmt: skip
FIELDS = (
    Field("name", "Name", "whisper", hint="small letters, digits and hyphens"),
    Field("size", "Room for models", "50 gigs", error="A size such as 8Gi or 500Mi"),
    Field("mode", "Sharing", "shared", choices=(("shared", "a part of a GPU"), ("dedicated", "a whole GPU"))),
)  # fmt: skip
DIFF = (
    Line("ctx", "args:"),
    Line("del", "  - --max-model-len=8192"),
    Line("add", "  - --max-model-len=16384"),
)
CHOICES = (
    Choice("n3 GPU 0 (RTX 3060)", "3.1 GiB free: here", "yes", "succeeded"),
    Choice("n4 GPU 0 (RTX A4000)", "reserved for comfyui", "later", "reserved"),
    Choice("n3 GPU 1 (RTX 3090)", "held by vllm", "", "never"),
)
WHY = Reason(
    Code.WAITS_FOR_SERVICE,
    "Needs 24 GB. The only such GPU is n3 GPU 1, held by vllm, a service without an end.",
    "Stop vllm, or ask for 16 GB to start on n5.",
)


@router.get("/patterns")
async def patterns(actor: Actor, ctx: Ctx) -> Response:
    values = await frame(ctx, actor, "/patterns")
    more = {
        "icons": ICONS,
        "bars": BARS,
        "fields": FIELDS,
        "lines": DIFF,
        "choices": CHOICES,
        "why": WHY,
        "colours": ("held", "wait", "ok", "warn", "bad", "ink", "held2", "wait2", "ok2", "warn2", "bad2", "sunk"),
        "begun": datetime.now(UTC) - timedelta(hours=3, minutes=41),
    }  # fmt: skip
    return page("patterns.html", values | more)
