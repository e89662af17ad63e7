"""deploy, plan."""

from __future__ import annotations

import time
import uuid
from typing import Annotated, Any

import typer

from podwarden.cli import source, words
from podwarden.cli.client import Api
from podwarden.cli.failure import REFUSED
from podwarden.cli.printing import Format, Output, hint, print_json, say
from podwarden.cli.reading import text_of
from podwarden.cli.waiting import Wait, limit

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _group() -> None:
    pass


@app.command()
def deploy(
    *,
    what: Annotated[
        str, typer.Argument(metavar="TEMPLATE|FILE", help="- reads a file from standard input.")
    ],
    name: source.Name = "",
    cluster: source.Cluster = "",
    gpus: source.Gpus = "",
    vram: source.Vram = "",
    shared: source.Shared = None,
    model: source.Model = "",
    priority: source.PriorityWord = "",
    sets: source.Sets = [],  # noqa: B006 - never changed
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")] = False,
    wait: Annotated[
        str | None,
        typer.Option(
            "--wait",
            metavar="[=TIME]",
            help="Wait until it runs, or a job has ended; --wait=10m for no longer than that.",
        ),
    ] = None,
    output: Output = Format.TEXT,
) -> None:
    """Deploy a template or a workload file, and say where it runs or why it waits."""
    seconds = limit(wait) if wait is not None else None
    order = source.body(
        what,
        name=name,
        cluster=cluster,
        gpus=gpus,
        vram=vram,
        shared=shared,
        model=model,
        priority=priority,
        sets=sets,
    )
    started = time.monotonic()
    took = None
    with Api() as api:
        answer = api.post("workloads", body={**order, "dry_run": dry_run}, key=uuid.uuid4().hex)
        if wait is not None and answer["workload"] is not None:
            following = Wait(api, answer["workload"], seconds=seconds, started=started)
            answer["workload"] = following.follow()
            took = following.took
    if output is Format.JSON:
        print_json(answer)
    else:
        say(_sentence(answer, took))


def _sentence(answer: dict[str, Any], took: float | None) -> str:
    """What was done; took: seconds, where it was waited for."""
    workload, preview = answer["workload"], answer["preview"]
    if workload is None:
        return words.preview(preview)
    if took is None and workload["state"] == "queued" and preview["starts_now"]:
        placement = preview["placement"]
        nodes = list(dict.fromkeys(slot["node"] for slot in placement["slots"]))
        where = words.place(nodes, placement["devices"], workload["spec"])
        return f"{workload['name']}: accepted, starts on {where}"
    return words.line_with_urls(workload, took)


@app.command()
def plan(
    files: Annotated[list[str], typer.Argument(metavar="FILE...")],
    output: Output = Format.TEXT,
) -> None:
    """Say what would happen if these workload files were deployed now. Nothing is stored."""
    order = [{"source": file[-253:], "text": text_of(file, "The workload file")} for file in files]
    with Api() as api:
        previews = api.post("plan", body={"files": order})
    if output is Format.JSON:
        print_json(previews)
    else:
        for preview in previews:
            say(words.preview(preview))
        if len(previews) > 1:
            hint("Each is judged alone, against what runs and waits now.")
    if any(preview["refused"] for preview in previews):
        raise typer.Exit(REFUSED)
