"""template list, show."""

from __future__ import annotations

from typing import Annotated

import typer

from podwarden.cli.client import Api
from podwarden.cli.printing import Format, Output, print_json, say, table
from podwarden.cli.words import request

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
template = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The catalogue.")
app.add_typer(template, name="template")


@app.callback()
def _group() -> None:
    pass


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
