"""queue, gpus, snapshot."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from podwarden.cli import words
from podwarden.cli.client import Api
from podwarden.cli.failure import Failure
from podwarden.cli.printing import Format, Output, hint, print_json, say, table
from podwarden.cli.source import Cluster
from podwarden.domain.units import show_gib

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _group() -> None:
    pass


@app.command()
def queue(cluster: Cluster = "", output: Output = Format.TEXT) -> None:
    """What waits, in order, and why."""
    with Api() as api:
        found = api.get("queue", cluster=cluster)
    if output is Format.JSON:
        print_json(found)
        return
    if not found:
        say("Nothing waits.")
        return
    rows = [
        (
            str(place),
            w["name"],
            w["priority"],
            words.request(w["spec"]),
            words.since(w["times"]["queued_at"]),
            words.reason(w["reason"]) or "not judged yet",
        )
        for place, w in enumerate(found, 1)
    ]
    say(table(("#", "NAME", "PRIORITY", "ASKS FOR", "WAITS", "WHY"), rows))


@app.command()
def gpus(
    cluster: Cluster = "",
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Again at each change.")] = False,
    output: Output = Format.TEXT,
) -> None:
    """All GPUs: free VRAM, and who holds the rest."""
    with Api() as api:
        if not watch:
            _print_gpus(api.get("gpus", cluster=cluster), output)
            return
        try:
            _watch(api, cluster, output)
        except httpx.ReadTimeout as error:
            raise Failure("PodWarden went silent.", 3) from error


@app.command()
def snapshot(
    cluster: Cluster = "",
    file: Annotated[
        str, typer.Option("--file", help="Write it there instead of printing it.")
    ] = "",
) -> None:
    """Save what the planner sees now, for `podwarden replay`."""
    with Api() as api:
        found = api.get("snapshot", cluster=cluster)
    if not file:
        print_json(found)
        return
    try:
        Path(file).write_text(json.dumps(found, indent=1), encoding="utf-8")
    except OSError as error:
        raise Failure(f"{file} cannot be written: {error.strerror}.") from error
    hint(f"Saved. Next: podwarden replay {file}")


def _watch(api: Api, cluster: str, output: Format) -> None:
    with api.lines("feed", read=60.0) as lines:
        shown: list[dict[str, Any]] | None = None
        for _ in _signs(lines):
            found = api.get("gpus", cluster=cluster)
            if found != shown:
                if sys.stdout.isatty() and output is Format.TEXT:
                    print("\x1b[H\x1b[2J", end="")
                elif shown is not None and output is Format.TEXT:
                    print()
                _print_gpus(found, output)
                sys.stdout.flush()
                shown = found


def _signs(lines: Iterator[str]) -> Iterator[str]:
    """A first look, then one for each notice or heartbeat."""
    yield ""
    for line in lines:
        if line.startswith(("data:", ":")):
            yield line


def _print_gpus(found: list[dict[str, Any]], output: Format) -> None:
    if output is Format.JSON:
        print_json(found)
        return
    if not found:
        say("No GPU is known here.")
        return
    several = len({g["cluster"] for g in found}) > 1
    heads: tuple[str, ...] = ("NODE", "GPU", "MODEL", "VRAM", "FREE", "HELD BY")
    rows: list[tuple[str, ...]] = [
        (
            g["node"],
            str(g["index"]),
            g["model"],
            show_gib(g["vram_mib"]),
            show_gib(g["free_mib"]),
            _held(g),
        )
        for g in found
    ]
    if several:
        heads = ("CLUSTER", *heads)
        rows = [(g["cluster"], *row) for g, row in zip(found, rows, strict=True)]
    say(table(heads, rows))


def _held(g: dict[str, Any]) -> str:
    parts = []
    if g["health"] != "ok":
        parts.append(f"{g['health']}: out of use")
    elif not g["present"]:
        parts.append("away: its node agent does not answer")
    for h in g["held_by"]:
        how = "dedicated" if h["dedicated"] else show_gib(h["memory_mib"])
        parts.append(f"{h['name']} ({how}{', ending' if h['terminating'] else ''})")
    if g["outside_mib"]:
        parts.append(f"outside PodWarden ({show_gib(g['outside_mib'])})")
    if g["reserved_for"]:
        parts.append(f"kept for {g['reserved_for']}")
    return ", ".join(parts)
