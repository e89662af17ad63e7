"""The deploy form of a template, and of a workload file: previewed as one types, by the planner itself."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from starlette.responses import RedirectResponse

from podwarden.catalog import Overrides, Template, read_file
from podwarden.control.answers import Gpu, Submitted
from podwarden.control.made import Offer
from podwarden.domain.access import Role, User
from podwarden.domain.workload import Spec
from podwarden.errors import Conflict, Forbidden, Invalid, PodWardenError, Refused
from podwarden.web.api.context import Actor, Context, Ctx, by_uuid
from podwarden.web.api.shapes import MAX_FILE
from podwarden.web.pages import bars
from podwarden.web.pages.fields import Field, faults_of, fields_of, overrides_of, parameters_of
from podwarden.web.pages.frame import form_of, frame
from podwarden.web.pages.page import PageRoute, page
from podwarden.web.pages.verdict import MOST_GPUS, Choice, Verdict, choices, verdict_of

router = APIRouter(route_class=PageRoute)
EMPTY_FILE = "name: hello\nkind: service\nimage: \nresources: {cpu: 1, memory: 1Gi}\n"


@dataclass(slots=True)
class Preview:
    """What is said beside the form: a verdict, or what is to fix."""

    verdict: Verdict | None = None
    choices: list[Choice] = field(default_factory=list)
    bar: bars.Bar | None = None
    bar_said: str = ""
    faults: dict[str, str] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    spec: Spec | None = None

    @property
    def wrong(self) -> int:
        return len(self.faults) + len(self.others)

    @property
    def left_out(self) -> int:
        return max(len(self.choices) - MOST_GPUS, 0)


@router.get("/deploy/{name}")
async def show(
    name: Annotated[str, Path(max_length=253)], request: Request, actor: Actor, ctx: Ctx
) -> Response:
    """Fields may be filled by the address: `?vram=8GB&p.context=4096`."""
    template = ctx.controller.catalogue.get(name)
    form = {key: value[:1000] for key, value in request.query_params.items()}
    preview = await _preview(ctx, actor, template, form)
    return await _page(ctx, actor, template, form, preview)


@router.post("/deploy/{name}")
async def deploy(
    name: Annotated[str, Path(max_length=253)], request: Request, actor: Actor, ctx: Ctx
) -> Response:
    """`step=preview` changes nothing; `step=deploy` submits."""
    template = ctx.controller.catalogue.get(name)
    form = await form_of(request)
    if form.get("step") == "deploy":
        done = await _submit(ctx, actor, form, lambda: _resolve(template, form))
        if isinstance(done, Response):
            return done
        return await _page(ctx, actor, template, form, done, status=422)
    preview = await _preview(ctx, actor, template, form)
    return await _page(ctx, actor, template, form, preview)


@router.get("/deploy-file")
async def show_file(actor: Actor, ctx: Ctx) -> Response:
    return await _file_page(ctx, actor, EMPTY_FILE, Preview(), "")


@router.post("/deploy-file")
async def deploy_file(request: Request, actor: Actor, ctx: Ctx) -> Response:
    form = await form_of(request)
    text = form.get("file", "")[:MAX_FILE]
    if form.get("step") == "deploy":
        done = await _submit(ctx, actor, form, lambda: _read(text))
        if isinstance(done, Response):
            return done
        return await _file_page(ctx, actor, text, done, form.get("once", ""), status=422)
    preview = await _ask(ctx, actor, lambda: _read(text), ())
    return await _file_page(ctx, actor, text, preview, form.get("once", ""))


def _resolve(template: Template, form: Mapping[str, str]) -> Offer:
    given, overrides = parameters_of(template, form), overrides_of(form)
    return Offer(template.resolve(given, overrides), template.generated(given, overrides))


def _read(text: str) -> Offer:
    return Offer(read_file(text, "file"))


async def _submit(
    ctx: Context, actor: User, form: Mapping[str, str], make: Callable[[], Offer]
) -> Response | Preview:
    """Where to go on, or what to fix. The same form sent twice makes one workload.

    Secrets that were made for it stand on the answer, this once; then there is no redirect.
    """
    try:
        offer = await asyncio.to_thread(make)
        once = form.get("once", "")[:100]
        body = hashlib.sha256(repr(sorted(form.items())).encode()).hexdigest()
        done = await ctx.controller.workloads.submit(
            actor,
            offer.spec,
            idempotency=(once, body) if once else None,
            generated=offer.generated,
        )
    except Refused as error:
        return _refused(error, tuple(form))
    if done.workload is None:
        return Preview(verdict=verdict_of(done, offer.spec, {}))
    if done.made:
        values = await frame(ctx, actor, "/catalogue", row=done.workload, made=done.made)
        return page("made.html", values)
    return RedirectResponse(f"/workloads/{done.workload.id}", status_code=303)


async def _preview(
    ctx: Context, actor: User, template: Template, form: Mapping[str, str]
) -> Preview:
    given = {"name": template.name, **form}
    known = [f.name for f in fields_of(template, given, None, clusters=("a", "b"), faults={})]
    return await _ask(ctx, actor, lambda: _resolve(template, given), tuple(known))


async def _ask(
    ctx: Context, actor: User, make: Callable[[], Offer], known: tuple[str, ...]
) -> Preview:
    """The planner's word on what was typed."""
    try:
        offer = await asyncio.to_thread(make)
        spec = offer.spec
        answer = await ctx.controller.workloads.submit(
            actor, spec, dry_run=True, generated=offer.generated
        )
    except Refused as error:
        return _refused(error, known)
    gpus = await ctx.controller.workloads.gpus(actor)
    devices = by_uuid(gpus)
    preview = Preview(verdict=verdict_of(answer, spec, devices), spec=spec)
    if spec.gpu is not None:
        preview.choices = choices(answer, gpus, devices)
        preview.bar, preview.bar_said = _bar(answer, spec, gpus)
    return preview


def _refused(error: PodWardenError, known: tuple[str, ...]) -> Preview:
    if isinstance(error, Invalid):
        by_field, others = faults_of(error.problems, known)
        return Preview(faults=by_field, others=others)
    if isinstance(error, Conflict) and error.code == "NAME_TAKEN" and "name" in known:
        return Preview(faults={"name": error.message})
    return Preview(others=[error.message])


def _bar(answer: Submitted, spec: Spec, gpus: tuple[Gpu, ...]) -> tuple[bars.Bar | None, str]:
    """The first GPU as it would be then."""
    if answer.placement is None or spec.gpu is None:
        return None, ""
    chosen = next((d for slot in answer.placement.slots for d in slot.devices), "")
    gpu = next((g for g in gpus if g.device.uuid == chosen), None)
    if gpu is None:
        return None, ""
    before = sum(bars.charged(h, gpu) for h in gpu.holdings)
    mib = spec.gpu.vram_mib or 0 if spec.gpu.shared else gpu.device.memory_mib
    after = min(before + mib, gpu.device.memory_mib)
    said = f"{before / 1024:.1f} → {after / 1024:.1f} of {gpu.device.memory_mib / 1024:.1f} GiB promised"
    return bars.bar(gpu, gpu.device.vram_mib, new=(spec.name, mib)), said


def _plain(template: Template) -> Spec | None:
    given = {p.name: p.sample() for p in template.parameters if p.required}
    try:
        return template.resolve(given, Overrides())
    except Refused:
        return None


async def _page(
    ctx: Context,
    actor: User,
    template: Template,
    form: Mapping[str, str],
    preview: Preview,
    *,
    status: int = 200,
) -> Response:
    values = await frame(ctx, actor, "/catalogue")
    names = [c.cluster.name for c in values["clusters"]]
    fields: list[Field] = fields_of(
        template,
        form,
        _plain(template),
        clusters=names,
        faults=preview.faults,
        offers=await _offers(ctx, actor),
    )
    if actor.role is Role.VIEWER:
        raise Forbidden("A viewer may look, not deploy.")
    more = {
        "template": template,
        "fields": fields,
        "labels": {f.name: f.label for f in fields},
        "preview": preview,
        "name": form.get("name") or template.name,
        "once": form.get("once") or secrets.token_hex(12),
        "command": _command(template, form),
    }
    return page("deploy.html", values | more, status=status)


async def _offers(ctx: Context, actor: User) -> dict[str, tuple[str, ...]]:
    """What there is to pick from, by the kind of a parameter."""
    storages = tuple(view.storage.name for view in await ctx.controller.storage.list(actor))
    secrets_ = tuple(view.name for view in await ctx.controller.secrets.list(actor))
    return {"storage": storages, "file": tuple(f"{name}:" for name in storages), "secret": secrets_}


def _command(template: Template, form: Mapping[str, str]) -> str:
    """The same on the command line, for what differs from the template."""
    words = [f"podwarden deploy {template.name}"]
    if form.get("name", template.name) != template.name:
        words.append(f"--name {form['name']}")
    words += [f"--{name} {form[name]}" for name in ("gpus", "vram") if form.get(name)]
    if form.get("sharing") == "shared":
        words.append("--shared")
    for p in template.parameters:
        value = form.get(f"p.{p.name}", p.default)
        if value != p.default and p.kind != "secret":
            words.append(f"--set {p.name}={value}")
    return " ".join(words)[:400]


async def _file_page(
    ctx: Context, actor: User, text: str, preview: Preview, once: str, *, status: int = 200
) -> Response:
    if actor.role is Role.VIEWER:
        raise Forbidden("A viewer may look, not deploy.")
    values = await frame(ctx, actor, "/catalogue")
    more = {
        "text": text,
        "preview": preview,
        "labels": {},
        "name": preview.spec.name if preview.spec else "",
        "once": once or secrets.token_hex(12),
        "command": "podwarden deploy FILE",
    }
    return page("deploy_file.html", values | more, status=status)
