"""Nodes and GPUs: VRAM split by workload on one scale; many nodes as a dense grid."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Response
from starlette.responses import RedirectResponse

from podwarden.control.answers import Gpu, Queued
from podwarden.domain.inventory import DeviceHealth, Holding, Node
from podwarden.domain.units import show_gb, show_gib
from podwarden.web.api.context import Actor, Context, Ctx
from podwarden.web.api.views import free_mib
from podwarden.web.pages import bars
from podwarden.web.pages.frame import frame
from podwarden.web.pages.page import PageRoute, shown
from podwarden.web.pages.sentences import cores, count, size

router = APIRouter(route_class=PageRoute)
DENSE_FROM = 24  # nodes with GPUs from which the page is a grid
A_PAGE = 240  # nodes of the grid at once


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    value: str
    unit: str
    sub: str
    href: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    name: str
    said: str
    href: str
    ends: datetime | None
    guess: bool


@dataclass(frozen=True, slots=True)
class GpuRow:
    index: int
    model: str
    said: str
    bar: bars.Bar
    held: tuple[Held, ...]
    reserved_for: str
    outside: str
    fault: str
    free: str
    health: tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class NodeRow:
    name: str
    state: tuple[str, str, str]
    why: str
    tone: str
    simulated: bool
    said: str
    cpu: tuple[int, int]
    memory: tuple[int, int]
    gpus: tuple[GpuRow, ...]
    free_said: str


@dataclass(frozen=True, slots=True)
class Paging:
    said: str
    before: str
    next: str


@router.get("/")
async def gpus(
    actor: Actor, ctx: Ctx, only: str = "", search: str = "", first: int = 0
) -> Response:
    """`?search=` is the filter, `?first=` the place in the grid."""
    values = await _values(ctx, actor, search.strip()[:100], max(first, 0))
    if not values["clusters"] and only != "live":
        return RedirectResponse("/start", status_code=303)
    return shown("gpus.html", values, only)


async def _values(ctx: Context, actor: Actor, search: str, first: int) -> dict[str, Any]:
    found = await ctx.controller.workloads.gpus(actor)
    nodes = await ctx.controller.clusters.nodes(actor)
    queue = await ctx.controller.workloads.queue(actor)
    by_node: dict[tuple[str, str], list[Gpu]] = {}
    for gpu in found:
        by_node.setdefault((gpu.cluster, gpu.device.node), []).append(gpu)
    scale = bars.scale_of(found)
    chosen = [
        (node, by_node.get((cluster, node.name), []))
        for cluster, node in nodes
        if _matches(search, node, by_node.get((cluster, node.name), []))
    ]
    chosen.sort(key=lambda each: not each[1])  # nodes without GPU last, else as they come
    dense = sum(bool(gpus) for _, gpus in chosen) > DENSE_FROM
    page = chosen[first : first + A_PAGE] if dense else chosen
    pretended = all(node.simulated for _, node in nodes)
    return await frame(
        ctx,
        actor,
        "/",
        figures=_figures(found, [node for _, node in nodes], queue),
        search=search,
        dense=dense,
        nodes=[_node(node, gpus, scale, all_simulated=pretended) for node, gpus in page],
        nodes_said=f"{count(len(chosen), 'node')}, {count(sum(len(g) for _, g in chosen), 'GPU')}",
        paging=_paging(first, len(chosen), search),
        ticks=bars.ticks(scale),
    )


def _matches(search: str, node: Node, gpus: list[Gpu]) -> bool:
    if not search:
        return True
    word = search.lower()
    texts = [node.name, node.address, *(g.device.model for g in gpus)]
    texts += [h.holder.name for g in gpus for h in g.holdings]
    return any(word in text.lower() for text in texts)


def _paging(first: int, total: int, search: str) -> Paging:
    last = min(first + A_PAGE, total)
    extra = {"search": search} if search else {}
    before = "/?" + urlencode({"first": max(first - A_PAGE, 0), **extra}) if first else ""
    after = "/?" + urlencode({"first": last, **extra}) if last < total else ""
    said = "" if total <= A_PAGE else f"{first + 1} to {last} of {total:,}"
    return Paging(said, before, after)


def _figures(gpus: tuple[Gpu, ...], nodes: list[Node], queue: tuple[Queued, ...]) -> list[Figure]:
    well = [g for g in gpus if bars.usable(g)]
    open_ = [g for g in well if not g.reserved_for]
    free = max(open_, key=lambda g: free_mib(g.device, g.holdings), default=None)
    largest = free_mib(free.device, free.holdings) if free else 0
    whole = sum(not g.holdings and not g.reserved_for for g in well)
    all_mib = sum(g.device.memory_mib for g in well)
    promised = sum(
        min(sum(bars.charged(h, g) for h in g.holdings), g.device.memory_mib) for g in well
    )
    holders = {h.holder.workload for g in gpus for h in g.holdings if h.holder.workload}
    ready = sum(node.usable for node in nodes)
    lost = [g for g in gpus if not bars.usable(g)]
    figure, _, unit = show_gib(largest).partition(" ")
    at = f"{free.device.node} GPU {free.device.index}" if free and largest else "no GPU has room"
    return [
        Figure("Free now, largest piece", figure, unit, f"{at}; {count(whole, 'whole GPU')} free"),
        Figure("Promised", f"{promised / 1024:,.1f}", f"of {all_mib / 1024:,.1f} GiB", f"to {count(len(holders), 'workload')}"),
        Figure("Usable GPUs", f"{len(well):,}", f"of {len(gpus):,}", _lost(lost)),
        Figure("Nodes ready", f"{ready:,}", f"of {len(nodes):,}", _not_ready(nodes)),
        Figure("Waiting", f"{len(queue):,}", "workload" if len(queue) == 1 else "workloads", _next(queue, len(holders)), "/queue" if queue else ""),
    ]  # fmt: skip


def _lost(lost: list[Gpu]) -> str:
    if not lost:
        return "all are well"
    named = ", ".join(f"{g.device.node} GPU {g.device.index}" for g in lost[:2])
    return f"not: {named}" + (f" and {len(lost) - 2} more" if len(lost) > 2 else "")


def _not_ready(nodes: list[Node]) -> str:
    out = [node.name for node in nodes if not node.usable]
    if not out:
        return "all answer"
    return f"not: {', '.join(out[:2])}" + (f" and {len(out) - 2} more" if len(out) > 2 else "")


def _next(queue: tuple[Queued, ...], running: int) -> str:
    return f"{running} running; next: {queue[0].workload.name}" if queue else f"{running} running"


def _node(node: Node, gpus: list[Gpu], scale: int, *, all_simulated: bool) -> NodeRow:
    """all_simulated: the head of the page says it for every node."""
    rows = tuple(_gpu(gpu, scale) for gpu in gpus)
    bad = sum(not bars.usable(g) for g in gpus)
    why = f"{count(bad, 'GPU')} lost or away" if bad else ""
    state, tone = _node_state(node)
    why = state[2] if tone else why
    free = sum(not g.holdings and bars.usable(g) and not g.reserved_for for g in gpus)
    return NodeRow(
        name=node.name,
        state=state,
        why=why,
        tone=tone or ("bad" if bad else ""),
        simulated=node.simulated and not all_simulated,
        said=_node_said(node, gpus),
        cpu=(node.used_cpu_milli, node.cpu_milli),
        memory=(node.used_memory_mib, node.memory_mib),
        gpus=rows,
        free_said=f"{free} free" if gpus else "no GPU",
    )


def _node_state(node: Node) -> tuple[tuple[str, str, str], str]:
    """(tone, icon, word), and the tone of its tile."""
    if not node.ready:
        return ("bad", "lost", "does not answer"), "bad"
    if node.agent_away:
        return ("warn", "warn", "node agent away"), "warn"
    if node.cordoned:
        return ("warn", "never", "takes nothing new"), "warn"
    if node.taints:
        return ("warn", "never", "kept for other work"), "warn"
    return ("ok", "succeeded", "ready"), ""


def _node_said(node: Node, gpus: list[Gpu]) -> str:
    drivers = sorted({g.device.driver_version for g in gpus if g.device.driver_version})
    parts = [
        "K3s server" if node.server else "",
        node.address,
        cores(node.cpu_milli),
        size(node.memory_mib),
        f"driver {', '.join(drivers)}" if drivers else "",
        "" if gpus else "no GPU",
    ]
    return " · ".join(part for part in parts if part)


def _gpu(gpu: Gpu, scale: int) -> GpuRow:
    device = gpu.device
    well = bars.usable(gpu)
    shares = [h for h in gpu.holdings if not h.dedicated]
    how = f", shared by {len(shares)}" if shares else (", whole" if gpu.holdings else "")
    return GpuRow(
        index=device.index,
        model=device.model,
        said=f"{show_gb(round(device.vram_mib / 1024) * 1024)}{how}",
        bar=bars.bar(gpu, scale),
        held=tuple(_held(h, gpu) for h in gpu.holdings),
        reserved_for=gpu.reserved_for,
        outside=f"{show_gib(device.outside_mib)} outside PodWarden" if device.outside_mib else "",
        fault="" if well else _fault(gpu),
        free=show_gib(free_mib(device, gpu.holdings)) if well else "—",
        health=_health(gpu),
    )


def _held(holding: Holding, gpu: Gpu) -> Held:
    holder = holding.holder
    mib = bars.charged(holding, gpu)
    said = f"{show_gib(mib)}, dedicated" if holding.dedicated else show_gib(mib)
    said += ", ending" if holder.terminating else ""
    said += "" if holder.workload else ", not PodWarden's"
    href = f"/workloads/{holder.workload}" if holder.workload else ""
    return Held(holder.name, said, href, holder.ends_by, holder.expected_end)


def _health(gpu: Gpu) -> tuple[str, str, str]:
    if gpu.device.health is DeviceHealth.LOST:
        return "bad", "lost", "lost"
    if gpu.device.health is DeviceHealth.UNKNOWN:
        return "warn", "warn", "not known"
    if not gpu.device.present:
        return "warn", "lost", "away"
    return "ok", "succeeded", "healthy"


def _fault(gpu: Gpu) -> str:
    if gpu.device.health is DeviceHealth.LOST:
        return "It no longer answers its driver. A restart of the node usually brings it back."
    if gpu.device.health is DeviceHealth.UNKNOWN:
        return "Its driver does not answer, or driver and library differ."
    return "Nobody reports it: its node or its node agent is away."
