"""template list, show; fit."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import typer

from podwarden.cli.client import Api
from podwarden.cli.printing import Format, Output, print_json, say, table
from podwarden.cli.source import Cluster
from podwarden.cli.words import place, request

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
template = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The catalogue.")
app.add_typer(template, name="template")


@app.callback()
def _group() -> None:
    pass


@app.command()
def fit(cluster: Cluster = "", output: Output = Format.TEXT) -> None:
    """What of the catalogue this hardware can run, now and if it were empty."""
    with Api() as api:
        found = api.get("fit", cluster=cluster)
    if output is Format.JSON:
        print_json(found)
        return
    several = len({f["cluster"] for f in found}) > 1
    heads = ("CLUSTER", "NAME", "ASKS FOR", "NOW", "IF EMPTY")
    rows = [(f["cluster"], f["template"], request({"gpu": f["gpu"]}), *_chances(f)) for f in found]
    first = 0 if several else 1
    say(table(heads[first:], [row[first:] for row in rows]))
    counted = Counter(f["verdict"] for f in found)
    say("")
    say(
        f"{counted['now']} would start now, {counted['later']} would wait, "
        f"{counted['never']} do not fit here at all."
    )


def _chances(shape: dict[str, Any]) -> tuple[str, str]:
    now, empty = shape["now"], shape["empty"]
    if shape["verdict"] == "never":
        return "never", now["reason"]["text"]
    where = _where(empty) if empty["fits"] else empty["reason"]["text"]
    return (_where(now) if now["fits"] else f"waits: {now['reason']['code']}"), where


def _where(chance: dict[str, Any]) -> str:
    placement = chance["placement"]
    nodes = list(dict.fromkeys(slot["node"] for slot in placement["slots"]))
    return place(nodes, placement["devices"], {})


@template.command("list")
def list_(output: Output = Format.TEXT) -> None:
    """Everything that can be deployed by name."""
    with Api() as api:
        found = api.get("templates")
    if output is Format.JSON:
        print_json(found)
        return
    rows = [
        (t["name"], t["title"], request(t["spec"] or t["document"]), t["purpose"]) for t in found
    ]
    say(table(("NAME", "TITLE", "ASKS FOR", "PURPOSE"), rows))


@template.command("show")
def show(
    name: Annotated[str, typer.Argument()],
    output: Output = Format.TEXT,
) -> None:
    """One template and what can be set in it."""
    with Api() as api:
        found = api.get("templates", name)
    if output is Format.JSON:
        print_json(found)
        return
    say(f"{found['name']}: {found['title']}. {found['purpose']}")
    if found["homepage"]:
        say(found["homepage"])
    if found["notes"]:
        say(found["notes"].rstrip())
    rows = [
        (
            p["name"],
            p["default"] or ("must be given" if p["required"] else ""),
            ", ".join(p["choices"]) or p["kind"],
            p["help"] or p["title"],
        )
        for p in found["parameters"]
    ]
    if rows:
        say("")
        say(table(("--set NAME", "DEFAULT", "KIND", "MEANS"), rows))
