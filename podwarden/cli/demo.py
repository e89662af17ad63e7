"""demo: the whole of PodWarden on simulated nodes, in the background. What it needs is imported when it runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from podwarden.cli.failure import REFUSED, USAGE, Failure
from podwarden.cli.printing import Format, Output, hint, print_json, say

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _group() -> None:
    pass


def default_folder() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "podwarden-demo"


@app.command()
def demo(
    *,
    stop: Annotated[
        bool, typer.Option("--stop", help="Stop it. What it had stays for the next time.")
    ] = False,
    once: Annotated[
        bool,
        typer.Option(
            "--once",
            help="Play 14 workloads in a temporary folder, check each, and take everything away again.",
        ),
    ] = False,
    nodes: Annotated[
        Path | None,
        typer.Option(
            "--nodes", help="The simulated nodes: a YAML file, or an openb node list (CSV)."
        ),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=1, max=65535, help="The next free one when it is taken.")
    ] = 8080,
    data: Annotated[Path | None, typer.Option("--data", help="Where it keeps everything.")] = None,
    output: Output = Format.TEXT,
) -> None:
    """Start PodWarden with a real Kubernetes and simulated nodes and GPUs, to see how it works."""
    from podwarden.cli.demo_run import Demo  # noqa: PLC0415 - the engine and the simulator
    from podwarden.errors import PodWardenError  # noqa: PLC0415

    if once:
        if stop or nodes or data:
            raise Failure("--once has its own nodes and folder, and ends by itself.", USAGE)
        from podwarden.cli.demo_once import once as play  # noqa: PLC0415

        raise typer.Exit(play(output))
    run = Demo((data or default_folder()).absolute())
    try:
        if stop:
            say("The demo has stopped." if run.stop() else "No demo is running.")
            return
        running = run.start(nodes=nodes, port=port, tell=hint)
    except PodWardenError as error:
        raise Failure(error.message, REFUSED) from error
    if output is Format.JSON:
        print_json(running.as_json())
        return
    already = " already" if running.already else ""
    say(
        f"PodWarden is running{already} at {running.url}   "
        f"(real Kubernetes {running.kubernetes}, simulated nodes)      "
        f"next: {running.activate}podwarden gpus"
    )
    hint(f"The page's login: {running.user}, with the password in {running.password_file}")
