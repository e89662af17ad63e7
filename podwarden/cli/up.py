"""up: run PodWarden here. What it needs is imported only when it runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from podwarden.cli.failure import REFUSED, Failure

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _group() -> None:
    pass


@app.command()
def up(
    data: Annotated[
        Path | None,
        typer.Option("--data", help="The one folder with everything that must survive."),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; 127.0.0.1 when left out.")
    ] = "",
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, help="8080 when left out; 0 takes any free one."),
    ] = None,
    lock: Annotated[Path | None, typer.Option("--lock", hidden=True)] = None,
) -> None:
    """Run PodWarden here: API, pages and everything it does by itself."""
    from podwarden.cli.serve import serve  # noqa: PLC0415 - the whole control plane
    from podwarden.errors import PodWardenError  # noqa: PLC0415
    from podwarden.settings import read_settings  # noqa: PLC0415

    try:
        settings = read_settings()
        settings = replace(
            settings,
            data=data or settings.data,
            host=host or settings.host,
            port=settings.port if port is None else port,
        )
        serve(settings, lock)
    except PodWardenError as error:
        raise Failure(error.message, REFUSED) from error
