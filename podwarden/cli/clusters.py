"""cluster adopt, list, show, kubeconfig, remove."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from podwarden.cli.client import Api
from podwarden.cli.printing import Format, Output, print_json, say, table
from podwarden.cli.reading import text_of
from podwarden.cli.words import count

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
cluster = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Clusters that PodWarden looks after."
)
app.add_typer(cluster, name="cluster")


@app.callback()
def _group() -> None:
    pass


@cluster.command("adopt")
def adopt(
    name: str,
    kubeconfig: Annotated[
        str,
        typer.Option(
            "--kubeconfig", help="The file that gives access to it; - reads standard input."
        ),
    ],
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Its nodes are simulated: every page says so.")
    ] = False,
    output: Output = Format.TEXT,
) -> None:
    """Look after a cluster that runs already. What an earlier PodWarden left there is taken over."""
    text = text_of(kubeconfig, "The kubeconfig")
    with Api() as api:
        made = api.post("clusters", body={"name": name, "kubeconfig": text, "simulated": simulated})
    if output is Format.JSON:
        print_json(made)
        return
    say(f"{made['name']}: adopted, {_size(made)}.")
    if made["taken_over"]:
        number = count(len(made["taken_over"]), "workload")
        say(f"Taken over {number}: {', '.join(made['taken_over'])}.")
    for note in made["notes"]:
        say(note)


@cluster.command("list")
def list_(output: Output = Format.TEXT) -> None:
    """All clusters."""
    with Api() as api:
        found = api.get("clusters")
    if output is Format.JSON:
        print_json(found)
    elif found:
        rows = [
            (c["name"], c["version"], str(c["nodes"]), str(c["gpus"]), _state(c), c["server"])
            for c in found
        ]
        say(table(("NAME", "VERSION", "NODES", "GPUS", "STATE", "SERVER"), rows))
    else:
        say("No cluster yet. Next: podwarden cluster adopt NAME --kubeconfig FILE")


@cluster.command("show")
def show(name: str, output: Output = Format.TEXT) -> None:
    """One cluster, and what it cannot do."""
    with Api() as api:
        found = api.get("clusters", name)
        nodes = api.get("nodes", cluster=name)
    if output is Format.JSON:
        print_json({**found, "node_list": nodes})
        return
    say(f"{found['name']}: {_state(found)}, {_size(found)}, {found['server']}")
    for note in found["notes"]:
        say(note)
    rows = [
        (
            n["name"],
            "ready" if n["ready"] else "not ready",
            f"{n['used_cpu_milli'] / 1000:g} of {n['cpu_milli'] / 1000:g}",
            f"{n['used_memory_mib'] / 1024:.1f} of {n['memory_mib'] / 1024:.1f} GiB",
            str(n["gpus"] or ""),
            _remarks(n),
        )
        for n in nodes
    ]
    say(table(("NODE", "STATE", "CPU", "MEMORY", "GPUS", ""), rows))


@cluster.command("kubeconfig")
def kubeconfig_(name: str) -> None:
    """Print its kubeconfig (admins). It gives full access to the cluster."""
    with Api() as api:
        print(api.text("clusters", name, "kubeconfig"), end="")


@cluster.command("remove")
def remove(name: str) -> None:
    """Forget a cluster. What runs there goes on running."""
    with Api() as api:
        api.delete("clusters", name)
    say(f"{name} is no longer looked after. What runs there goes on running.")


def _size(c: dict[str, Any]) -> str:
    return f"{count(c['nodes'], 'node')}, {count(c['gpus'], 'GPU')}"


def _state(c: dict[str, Any]) -> str:
    state = "reachable" if c["reachable"] else "not reachable"
    return ", ".join(x for x in (state, c["trouble"], "simulated" if c["simulated"] else "") if x)


def _remarks(n: dict[str, Any]) -> str:
    remarks = {
        "K3s server": n["server"],
        "takes no new work": n["cordoned"],
        "node agent away": n["agent_away"],
        "simulated": n["simulated"],
    }
    return ", ".join(word for word, true in remarks.items() if true)
