"""storage add, list, remove."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from podwarden.cli.client import Api
from podwarden.cli.printing import Format, Output, hint, print_json, say, table

app = typer.Typer(no_args_is_help=True)
storage = typer.Typer(no_args_is_help=True, help="Named places for data, for all workloads.")
app.add_typer(storage, name="storage")


@app.callback()
def _group() -> None:
    pass


@storage.command("add")
def add(
    *,
    name: str,
    nfs: Annotated[
        str, typer.Option("--nfs", metavar="SERVER:/PATH", help="A folder that a server exports.")
    ] = "",
    host: Annotated[
        str, typer.Option("--host", metavar="NODE:/PATH", help="A folder of one node.")
    ] = "",
    cluster: Annotated[
        str, typer.Option("--cluster", help="The node's, where several clusters have one so named.")
    ] = "",
    no_check: Annotated[
        bool,
        typer.Option("--no-check", help="Never look whether the NFS server answers from here."),
    ] = False,
    output: Output = Format.TEXT,
) -> None:
    """Add a storage (admins): an NFS export, or a folder of one node."""
    body = {"name": name, "nfs": nfs, "host": host, "cluster": cluster, "check": not no_check}
    with Api() as api:
        made = api.post("storage", body=body)
    if output is Format.JSON:
        print_json(made)
        return
    where = "on every node" if made["kind"] == "nfs" else f"on {made['node']} only"
    say(f"{made['name']}: {made['place']}, for workloads {where}.")
    if made["kind"] == "nfs" and made["checked"]:
        hint("The server answers. Whether it exports this folder shows when a workload starts.")
    elif made["kind"] == "host":
        hint("Whether the folder exists there shows when a workload starts.")


@storage.command("list")
def list_(output: Output = Format.TEXT) -> None:
    """All storages, and which workloads use them."""
    with Api() as api:
        found = api.get("storage")
    if output is Format.JSON:
        print_json(found)
    elif found:
        say(table(("NAME", "KIND", "PLACE", "CLUSTER", "USED BY"), [_row(s) for s in found]))
    else:
        say("No storage yet. Next: podwarden storage add media --nfs nas:/media")


@storage.command("remove")
def remove(name: str) -> None:
    """Forget a storage that no workload uses (admins). What lies there is not touched."""
    with Api() as api:
        api.delete("storage", name)
    say(f"{name} is forgotten. What lies there was not touched.")


def _row(s: dict[str, Any]) -> tuple[str, ...]:
    return (s["name"], s["kind"], s["place"], s["cluster"] or "all", ", ".join(s["used_by"]))
