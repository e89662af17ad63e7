"""deploy, plan."""

from __future__ import annotations

import time
import uuid
from typing import Annotated, Any

import typer

from podwarden.cli import compose, source, words
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
        str,
        typer.Argument(metavar="TEMPLATE|FILE|COMPOSE", help="- reads a file from standard input."),
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
    """Deploy a template, a workload file or a Docker Compose file, and say where it runs or why it waits."""
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
    order["dry_run"] = dry_run
    with Api() as api:
        started = time.monotonic()
        answer, services = _send(api, what, order)
        if output is Format.TEXT:
            for service in services:
                compose.show_secrets(service["made_secrets"])
            compose.tell(answer, notes=dry_run)
        try:
            took = [
                _wait(api, one, seconds, started) if wait is not None else None for one in services
            ]
        finally:
            if output is Format.JSON:
                print_json(answer)  # also when the wait failed: nothing shows a made secret again
    if output is Format.TEXT:
        for service, seconds_taken in zip(services, took, strict=True):
            say(_sentence(service, seconds_taken))


def _send(
    api: Api, what: str, order: dict[str, Any]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The answer, and what it says of each workload."""
    key = uuid.uuid4().hex
    if "file" in order and compose.is_compose(order["source"], order["file"]):
        answer = api.post("compose", body=compose.body(api, what, order), key=key)
        return answer, answer["services"]
    answer = api.post("workloads", body=order, key=key)
    return answer, [answer]


def _wait(api: Api, answer: dict[str, Any], seconds: float | None, started: float) -> float | None:
    """Puts the workload as it is then into the answer; how long it took, in seconds."""
    if answer["workload"] is None:
        return None
    following = Wait(api, answer["workload"], seconds=seconds, started=started)
    answer["workload"] = following.follow()
    return following.took


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
