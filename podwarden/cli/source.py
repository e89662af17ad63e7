"""What to deploy, as typed: a template's name or a file, and the options that change it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from podwarden.cli.failure import USAGE, Failure
from podwarden.cli.reading import text_of

Name = Annotated[str, typer.Option("--name", help="Its name; the template's own when left out.")]
Cluster = Annotated[
    str, typer.Option("--cluster", help="In which cluster, where there are several.")
]
Gpus = Annotated[str, typer.Option("--gpus", help="How many GPUs.")]
Vram = Annotated[str, typer.Option("--vram", help="VRAM of each GPU, such as 16GB.")]
Shared = Annotated[
    bool | None,
    typer.Option("--shared/--dedicated", help="Share a GPU within a budget, or have whole ones."),
]
Model = Annotated[str, typer.Option("--model", help="Only these GPU models, separated by commas.")]
PriorityWord = Annotated[
    str, typer.Option("--priority", help="critical, high, normal, low or idle.")
]
Sets = Annotated[
    list[str], typer.Option("--set", metavar="NAME=VALUE", help="Set a parameter of the template.")
]


def body(
    what: str,
    *,
    name: str = "",
    cluster: str = "",
    gpus: str = "",
    vram: str = "",
    shared: bool | None = None,
    model: str = "",
    priority: str = "",
    sets: list[str] | None = None,
) -> dict[str, Any]:
    """The JSON for the API. what "": neither template nor file."""
    given: dict[str, Any] = {
        "name": name,
        "cluster": cluster,
        "gpus": gpus,
        "vram": vram,
        "model": model,
        "priority": priority,
        "parameters": parameters(sets or []),
        "sharing": "" if shared is None else "shared" if shared else "dedicated",
    }
    if what and is_file(what):
        given |= {"file": text_of(what, "The workload file"), "source": what[-253:]}
    elif what:
        given["template"] = what
    return given


def is_file(what: str) -> bool:
    """A path, or `-`; a bare word is a template, even where a folder of that name lies around."""
    return (
        what == "-"
        or "/" in what
        or what.endswith((".yaml", ".yml", ".json"))
        or Path(what).is_file()
    )


def parameters(sets: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for given in sets:
        name, equals, value = given.partition("=")
        if not equals or not name:
            raise Failure(f"--set {given}: write NAME=VALUE, such as frames=1-40.", USAGE)
        if name in found:
            raise Failure(f"--set {name} is given twice: keep one.", USAGE)
        found[name] = value
    return found
