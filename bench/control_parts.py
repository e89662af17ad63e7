"""The runs: latency at a steady pace, filling a cluster, depth of the queue, rest. Each is one run on one plant."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

from bench.control_audit import BENCH, OURS, Audit
from bench.control_ground import GPUS, Ground, Plant, between, memory_mb, until
from bench.control_wire import (
    Desk,
    Kubernetes,
    at_pace,
    create_all,
    side_by_side,
)
from bench.control_work import job_file, names, order, rendered, row, service_file
from podwarden.domain.event import Event, EventKind
from podwarden.domain.workload import Revision
from podwarden.store import Store, Unit

PACE = 0.2  # seconds between two deploys
Figures = dict[str, Any]


@dataclass(frozen=True)
class Scale:
    """rest, depth_seconds: how long is measured. settle: seconds between the last start and rest. fill_nodes: with
    4 GPUs each, as many GPUs as jobs, or more. warm_up: jobs that come and go before.
    """

    nodes: int = 100
    deploys: int = 200
    jobs: int = 1_000
    fill_nodes: int = 250
    warm_up: int = 20
    rest: float = 60
    settle: float = 10
    depths: tuple[int, ...] = (100, 10_000)
    depth_seconds: float = 60
    depth_nodes: int = 50


QUICK = Scale(deploys=40, jobs=60, fill_nodes=100, warm_up=5, rest=10, settle=3, depths=())


@dataclass(frozen=True)
class Run:
    figures: Figures
    noise: float


@contextmanager
def plain(ground: Ground, scale: Scale, nodes: int) -> Iterator[tuple[Plant, Kubernetes]]:
    """An engine and a client that has warmed it up."""
    with ground.plant(nodes) as plant:
        client = Kubernetes(plant.engine.kubeconfig)
        files = {name: job_file(name) for name in names("warm", scale.warm_up)}
        client.warm_up(rendered(files, plant.observe()))
        yield plant, client


@contextmanager
def wardened(ground: Ground, scale: Scale, nodes: int) -> Iterator[tuple[Plant, Desk]]:
    """An engine whose cluster PodWarden has adopted, warmed up in the same way."""
    with ground.plant(nodes) as plant:
        plant.warden.start()
        desk = Desk(plant)
        desk.adopt(plant, nodes)
        desk.warm_up([order(job_file(name)) for name in names("warm", scale.warm_up)])
        yield plant, desk


# --- latency and rest ------------------------------------------------------------------------------


def floor(ground: Ground, scale: Scale) -> Run:
    """Claim template and Deployment by a plain client, until the pod is bound."""
    with plain(ground, scale, scale.nodes) as (plant, client):
        return _floor(plant, client, scale)


def deploys(ground: Ground, scale: Scale) -> tuple[Run, Run]:
    """The same services through PodWarden's API; then, with them running, nothing for a while."""
    with wardened(ground, scale, scale.nodes) as (plant, desk):
        return _deploys(plant, desk, scale)


def quick_plain(ground: Ground, scale: Scale) -> tuple[Run, Run]:
    """Floor and fill on one engine."""
    with plain(ground, scale, scale.nodes) as (plant, client):
        return _floor(plant, client, scale), _fill_plain(plant, client, scale, steered=True)


def quick_podwarden(ground: Ground, scale: Scale) -> tuple[Run, Run, Run]:
    """Deploys, rest and fill on one engine."""
    with wardened(ground, scale, scale.nodes) as (plant, desk):
        return *_deploys(plant, desk, scale), _fill_submitted(plant, desk, scale)


def _floor(plant: Plant, client: Kubernetes, scale: Scale) -> Run:
    files = {name: service_file(name) for name in names("svc", scale.deploys)}
    bodies = rendered(files, plant.observe())

    def call(number: int) -> tuple[float, float]:
        sent = time.time()
        create_all(client, bodies[number])
        return sent, time.time()

    return _paced(plant, list(files), call)


def _deploys(plant: Plant, desk: Desk, scale: Scale) -> tuple[Run, Run]:
    files = {name: service_file(name) for name in names("svc", scale.deploys)}
    bodies = [order(file) for file in files.values()]

    def call(number: int) -> tuple[float, float]:
        sent = time.time()
        desk.deploy(bodies[number])
        return sent, time.time()

    latency = _paced(plant, list(files), call)
    until(lambda: not desk.get("workloads?limit=1&state=starting")["items"], "all run", 60, 0.3)
    time.sleep(scale.settle)
    return latency, _rest(plant, scale.rest)


def _paced(plant: Plant, wanted: list[str], call: Callable[[int], tuple[float, float]]) -> Run:
    audit = Audit(plant.audit)
    first = plant.reading()
    calls = [lambda number=number: call(number) for number in range(len(wanted))]
    times = at_pace(calls, PACE)
    audit.wait_bound(wanted, 60)
    use = between(first, plant.reading())
    sent = [1000 * (audit.bound[n] - t[0]) for n, t in zip(wanted, times, strict=True)]
    answered = [1000 * (audit.bound[n] - t[1]) for n, t in zip(wanted, times, strict=True)]
    accepted = [1000 * (t[1] - t[0]) for t in times]
    figures = {
        "accepted_to_bound_ms": spread(answered),
        "sent_to_bound_ms": spread(sent),
        "sent_to_accepted_ms": spread(accepted),
        "cpu_ms_each": use.ms_each(len(wanted)),
        "writes_each": _each(audit, BENCH if "podwarden" not in use.parts else OURS, len(wanted)),
    }
    return Run(figures, use.noise)


def _rest(plant: Plant, seconds: float) -> Run:
    first = plant.reading()
    time.sleep(seconds)
    use = between(first, plant.reading())
    return Run(
        {
            "cpu_percent_of_a_core": round(100 * use.parts["podwarden"] / use.seconds, 2),
            "memory_mb": memory_mb(plant.warden.pid),
            "engine_percent_of_a_core": round(
                100 * sum(v for k, v in use.parts.items() if k not in {"podwarden", "client"})
                / use.seconds, 1,
            ),
        },
        use.noise,
    )  # fmt: skip


def spread(values: list[float]) -> Figures:
    cuts = quantiles(values, n=100, method="inclusive")
    return {"p50": round(median(values)), "p90": round(cuts[89]), "p99": round(cuts[98])}


# --- fill ------------------------------------------------------------------------------------------


def fill_plain(ground: Ground, scale: Scale, *, steered: bool = True) -> Run:
    """The Jobs and claim templates that PodWarden would make, created by a plain client at once."""
    with plain(ground, scale, scale.fill_nodes) as (plant, client):
        return _fill_plain(plant, client, scale, steered=steered)


def fill_submitted(ground: Ground, scale: Scale) -> Run:
    """The same jobs, submitted to PodWarden at once: from the first request to the last binding."""
    with wardened(ground, scale, scale.fill_nodes) as (plant, desk):
        return _fill_submitted(plant, desk, scale)


def _fill_plain(plant: Plant, client: Kubernetes, scale: Scale, *, steered: bool) -> Run:
    files = {name: job_file(name) for name in names("job", scale.jobs)}
    bodies = rendered(files, plant.observe(), steered=steered)

    def load() -> None:
        side_by_side([lambda parts=parts: create_all(client, parts) for parts in bodies])

    return _filled(plant, list(files), load)


def _fill_submitted(plant: Plant, desk: Desk, scale: Scale) -> Run:
    return _filled(plant, names("job", scale.jobs), lambda: _submit(desk, scale.jobs))


def fill_released(ground: Ground, scale: Scale) -> Run:
    """The queue holds all of them while every node is cordoned; from the first uncordon to the last binding."""
    with wardened(ground, scale, scale.fill_nodes) as (plant, desk):
        client = Kubernetes(plant.engine.kubeconfig)
        hosts = [f"n-{number}" for number in range(1, scale.fill_nodes + 1)]
        side_by_side([lambda host=host: client.cordon(host, on=True) for host in hosts])
        time.sleep(1)
        _submit(desk, scale.jobs)
        time.sleep(5)  # every reason is written

        def release() -> None:
            side_by_side([lambda host=host: client.cordon(host, on=False) for host in hosts])

        return _filled(plant, names("job", scale.jobs), release)


def _submit(desk: Desk, jobs: int) -> None:
    bodies = [order(job_file(name)) for name in names("job", jobs)]
    side_by_side([lambda body=body: desk.deploy(body) for body in bodies])


def _filled(plant: Plant, wanted: list[str], load: Callable[[], None]) -> Run:
    audit = Audit(plant.audit)
    first, begun = plant.reading(), time.time()
    load()
    loaded = time.time() - begun
    audit.wait_bound(wanted, 300)
    use = between(first, plant.reading())
    after = [audit.bound[name] - begun for name in wanted]
    jobs = len(wanted)
    ours = BENCH if "podwarden" not in use.parts else OURS
    figures = {
        "bound_per_s": round(jobs / max(after), 1),
        "bound_p50_s": round(median(after), 1),
        "load_s": round(loaded, 1),
        "cpu_ms_each": use.ms_each(jobs),
        "api_writes_each": round(sum(audit.writes().values()) / jobs, 1),
        "own_writes_each": _each(audit, ours, jobs),
    }
    return Run(figures, use.noise)


def _each(audit: Audit, agent: str, objects: int) -> Figures:
    counted = audit.writes(agent)
    each = {what: round(number / objects, 2) for what, number in counted.most_common()}
    return {"sum": round(sum(counted.values()) / objects, 2), **each}


# --- depth -----------------------------------------------------------------------------------------


def depth(ground: Ground, scale: Scale, queued: int) -> Run:
    """Jobs of one second, with the queue held at `queued`: as many are submitted as leave it."""
    gpus = scale.depth_nodes * GPUS
    with wardened(ground, scale, scale.depth_nodes) as (plant, _):
        plant.warden.stop()
        asyncio.run(_seed(plant, queued + gpus))
        plant.warden.start()
        feeder = Feeder(plant, Desk(plant), queued + gpus, queued)
        begun = time.monotonic()
        until(lambda: feeder.feed() >= gpus, "a first round is done", 300, 0.25)
        warm = time.monotonic() - begun
        audit, first, done = Audit(plant.audit), plant.reading(), feeder.feed()
        shallowest = queued
        end = time.monotonic() + scale.depth_seconds
        while time.monotonic() < end:
            shallowest = min(shallowest, feeder.count("queued"))
            feeder.feed()
            time.sleep(0.25)
        jobs = feeder.feed() - done
        use = between(first, plant.reading())
        audit.read()
        figures = {
            "completed_per_s": round(jobs / use.seconds, 1),
            "bound_per_s": round(len(audit.bound) / use.seconds, 1),
            "first_round_s": round(warm, 1),
            "least_queued": shallowest,
            "cpu_ms_each": use.ms_each(max(1, jobs)),
            "own_writes_each": _each(audit, OURS, max(1, jobs)),
            "podwarden_mb": memory_mb(plant.warden.pid),
        }
        return Run(figures, use.noise)


class Feeder:
    """Keeps the queue as deep as it was. How deep it is, and what is done, is read from PodWarden's own database: no
    request, no load.
    """

    def __init__(self, plant: Plant, desk: Desk, made: int, depth: int) -> None:
        self._desk = desk
        self._made = made
        self._depth = depth
        self._path = plant.warden.data / "podwarden.db"

    def feed(self) -> int:
        """How many are done by now."""
        missing = max(0, self._depth - self.count("queued"))
        if missing:
            bodies = [order(job_file(name, 1)) for name in names("job", missing, self._made)]
            side_by_side([lambda body=body: self._desk.deploy(body) for body in bodies], 4)
            self._made += missing
        return self.count("succeeded")

    def count(self, state: str) -> int:
        with sqlite3.connect(f"file:{self._path}?mode=ro", uri=True) as database:
            asked = "SELECT count(*) FROM workloads WHERE state = ? AND name LIKE 'job-%'"
            return int(database.execute(asked, (state,)).fetchone()[0])


async def _seed(plant: Plant, count: int) -> None:
    data = plant.warden.data
    store = Store.open(f"sqlite:///{data / 'podwarden.db'}", data / "secrets.key")

    def add(unit: Unit) -> None:
        for name in names("job", count):
            made = row(name, job_file(name, 1))
            unit.workloads.add(made, Revision(made.id, 1, made.spec, made.created_at, "admin"))
            unit.events.append(
                Event(made.created_at, made.id, EventKind.SUBMITTED, "submitted", "admin")
            )

    try:
        await store.write(add)
    finally:
        await store.close()
