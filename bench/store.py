"""How fast the store is: `python -m bench.store` (QUICK=1: fewer rows). SQLite and PostgreSQL, both with fsync.

Each write is one transaction, as one deploy or one step of a loop makes it. `active`: 10,000 queued workloads read
in one go, the first time (cold: every spec is decoded) and then as each planning pass does (warm). The last line is
one JSON object: {database: {figure: value}}.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles

from rich.console import Console
from rich.table import Table

from podwarden.domain.event import Event, EventKind
from podwarden.domain.reason import Code, Note, Reason
from podwarden.domain.request import Request
from podwarden.domain.workload import Desire, Kind, Revision, Spec, State, Workload
from podwarden.store import Store, Unit
from tests.integration.postgres import Postgres

QUICK = os.environ.get("QUICK") == "1"
SINGLE = 200 if QUICK else 1_000
QUEUED = 2_000 if QUICK else 10_000
NOW = datetime.now(UTC)
Figures = dict[str, float]


def a_workload(number: int) -> Workload:
    spec = Spec(
        name=f"vllm-{number}",
        kind=Kind.SERVICE,
        image="vllm/vllm-openai:v0.9",
        gpu=Request(vram_mib=16384),
        args=("--model", "Qwen/Qwen3-8B", "--max-model-len", "16384"),
        env=tuple((f"NAME_{n}", "value") for n in range(8)),
    )
    notes = tuple(Note(f"n{n}", f"gpu-{n}", Code.DEVICES_IN_USE, "held by vllm") for n in range(8))
    return Workload(
        id=f"w{number}",
        name=spec.name,
        owner="bo",
        cluster="home",
        spec=spec,
        revision=1,
        state=State.QUEUED,
        desire=Desire.RUN,
        created_at=NOW,
        changed_at=NOW,
        queued_at=NOW,
        reason=Reason(Code.DEVICES_IN_USE, "needs 1 GPU with 16 GB; 0 of 8 free.", notes=notes),
    )


def add(unit: Unit, workload: Workload) -> None:
    unit.workloads.add(workload, Revision(workload.id, 1, workload.spec, NOW, "bo"))
    unit.events.append(Event(NOW, workload.id, EventKind.SUBMITTED, "submitted", "bo"))


async def each(figures: Figures, name: str, step: Callable[[int], Awaitable[object]]) -> None:
    """One after the other: milliseconds each (median, 99th percentile) and how many a second."""
    spans = []
    for number in range(SINGLE):
        begun = time.perf_counter()
        await step(number)
        spans.append((time.perf_counter() - begun) * 1000)
    figures[f"{name} ms"] = round(median(spans), 2)
    figures[f"{name} p99 ms"] = round(quantiles(spans, n=100)[98], 2)
    figures[f"{name} per s"] = round(len(spans) / sum(spans) * 1000)


async def once(figures: Figures, name: str, step: Awaitable[object]) -> None:
    begun = time.perf_counter()
    await step
    figures[f"{name} ms"] = round((time.perf_counter() - begun) * 1000, 1)


async def measure(url: str, key_file: Path) -> Figures:
    store = Store.open(url, key_file)
    figures: Figures = {}
    kept = [a_workload(number) for number in range(SINGLE)]

    async def save(number: int) -> None:
        kept[number] = await store.write(lambda unit: unit.workloads.save(kept[number]))

    async def save_with_event(number: int) -> None:
        event = Event(NOW, f"w{number}", EventKind.STATE, "starting")

        def work(unit: Unit) -> Workload:
            unit.events.append(event)
            return unit.workloads.save(replace(kept[number], state=State.STARTING))

        kept[number] = await store.write(work)

    await each(figures, "add", lambda n: store.write(lambda unit: add(unit, kept[n])))
    await each(figures, "save", save)
    await each(figures, "save+event", save_with_event)
    await each(figures, "get", lambda n: store.read(lambda unit: unit.workloads.get(f"w{n}")))
    more = [a_workload(number) for number in range(SINGLE, QUEUED)]
    await once(figures, f"add {len(more)}", store.write(lambda unit: [add(unit, w) for w in more]))
    await store.close()

    store = Store.open(url, key_file)
    await once(figures, f"active {QUEUED} cold", store.read(lambda unit: unit.workloads.active()))
    await once(figures, f"active {QUEUED} warm", store.read(lambda unit: unit.workloads.active()))
    await each(figures, "save in the long queue", save)
    await once(
        figures, f"active after {SINGLE} changes", store.read(lambda unit: unit.workloads.active())
    )
    await store.close()
    return figures


@contextmanager
def databases() -> Iterator[dict[str, str]]:
    server = Postgres(durable=True)
    try:
        server.start()
        with tempfile.TemporaryDirectory(prefix="pw-bench-") as folder:
            yield {
                "sqlite": f"sqlite:///{folder}/podwarden.db",
                "postgresql": server.new_database(),
            }
    finally:
        server.remove()


def main() -> None:
    with databases() as urls, tempfile.TemporaryDirectory() as keys:
        results = {
            name: asyncio.run(measure(url, Path(keys) / name / "secrets.key"))
            for name, url in urls.items()
        }
    table = Table("figure", *results)
    for figure in next(iter(results.values())):
        table.add_row(figure, *(f"{figures[figure]:,}" for figures in results.values()))
    Console().print(table)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
