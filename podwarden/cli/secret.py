"""secret set, list, delete."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from podwarden.cli.client import Api
from podwarden.cli.failure import USAGE, Failure
from podwarden.cli.printing import Format, Output, print_json, say, table
from podwarden.cli.reading import text_of
from podwarden.cli.words import since

app = typer.Typer(no_args_is_help=True)
secret = typer.Typer(no_args_is_help=True, help="Named secrets, for workloads to refer to.")
app.add_typer(secret, name="secret")


@app.callback()
def _group() -> None:
    pass


@secret.command("set")
def set_(
    name: str,
    value_file: Annotated[
        str,
        typer.Option("--value-file", help="Read the value from this file; - reads standard input."),
    ] = "",
    registry: Annotated[
        str,
        typer.Option(
            "--registry", metavar="HOST", help="The value is a password there; it is tried first."
        ),
    ] = "",
    user: Annotated[str, typer.Option("--user", help="The user's name at the registry.")] = "",
    output: Output = Format.TEXT,
) -> None:
    """Store a secret, or a new value of it. It is never shown again."""
    value = _value(
        value_file, f"Password of {user} at {registry}" if registry else f"Value of {name}"
    )
    with Api() as api:
        made = api.put("secrets", name, body={"value": value, "registry": registry, "user": user})
    if output is Format.JSON:
        print_json(made)
        return
    say(
        f"{name} is stored" + (f", {made['registry']} took the login." if made["registry"] else ".")
    )
    if made["used_by"]:
        say(
            f"Used by {', '.join(made['used_by'])}: they get the new value at their next start "
            "(podwarden workload stop, then start)."
        )


@secret.command("list")
def list_(output: Output = Format.TEXT) -> None:
    """All secrets without their values, and which workloads use them."""
    with Api() as api:
        found = api.get("secrets")
    if output is Format.JSON:
        print_json(found)
    elif found:
        say(table(("NAME", "OWNER", "CHANGED", "LOGIN OF", "USED BY"), [_row(s) for s in found]))
    else:
        say("No secret yet. Next: podwarden secret set NAME --value-file FILE")


@secret.command("delete")
def delete(name: str) -> None:
    """Delete a secret that no workload uses."""
    with Api() as api:
        api.delete("secrets", name)
    say(f"{name} is deleted.")


def _row(s: dict[str, Any]) -> tuple[str, ...]:
    age = since(s["changed_at"]) + " ago"
    return (s["name"], s["owner"], age, s["registry"] or "", ", ".join(s["used_by"]))


def _value(file: str, prompt: str) -> str:
    """Of a file without the line end after its last line; else what is typed."""
    if not file:
        if not sys.stdin.isatty():
            raise Failure(
                "There is no terminal to ask for the value: give --value-file FILE, or - for standard input.",
                USAGE,
            )
        return str(typer.prompt(prompt, hide_input=True, err=True))
    text = text_of(file, "The value file")
    for end in ("\r\n", "\n"):
        if text.endswith(end):
            text = text.removesuffix(end)
            break
    if not text:
        raise Failure(f"{file} is empty.", USAGE)
    return text
