"""login, token, user."""

from __future__ import annotations

import socket
from typing import Annotated

import typer

from podwarden.cli import credentials
from podwarden.cli.client import Api
from podwarden.cli.printing import Format, Output, hint, print_json, say, table
from podwarden.cli.reading import PasswordFile, password
from podwarden.cli.words import since

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
token = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Tokens: how programs log in."
)
user = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Who may use PodWarden, and as what."
)
app.add_typer(token, name="token")
app.add_typer(user, name="user")


@app.callback()
def _group() -> None:
    pass


@app.command()
def login(
    server: Annotated[
        str, typer.Argument(help="Its address; the last one used when left out.")
    ] = "",
    name: Annotated[
        str, typer.Option("--name", help="Your user name; asked for when left out.")
    ] = "",
    password_file: PasswordFile = "",
) -> None:
    """Log in to a PodWarden and remember it for the next commands."""
    address = credentials.target({"PODWARDEN_SERVER": server} if server else None).server
    who = name or str(typer.prompt("Name", err=True))
    secret = password(password_file)
    with Api(credentials.Target(address, "")) as api:
        session = api.post("session", body={"name": who, "password": secret})
    with Api(credentials.Target(address, session["token"])) as api:
        made = api.post("tokens", body={"label": f"command line on {socket.gethostname()}"[:100]})
        api.delete("session")
    path = credentials.remember(address, session["user"], made["token"])
    say(f"Logged in to {address} as {session['user']} ({session['role']}).")
    hint(f"The token is kept in {path}.")


@token.command("create")
def token_create(
    label: Annotated[str, typer.Argument(help="What it is for.")] = "",
    days: Annotated[
        int | None,
        typer.Option("--days", min=1, max=3650, help="It expires then; never when left out."),
    ] = None,
    output: Output = Format.TEXT,
) -> None:
    """Create a token. It is shown this once."""
    with Api() as api:
        made = api.post("tokens", body={"label": label, "days": days})
    if output is Format.JSON:
        print_json(made)
    else:
        say(made["token"])
        hint(f"Token {made['id']} of {made['user']}. It is not shown again.")


@token.command("list")
def token_list(output: Output = Format.TEXT) -> None:
    """Your tokens, for admins all tokens; never their secrets."""
    with Api() as api:
        found = api.get("tokens")
    if output is Format.JSON:
        print_json(found)
        return
    rows = [
        (
            t["id"],
            t["user"],
            t["label"] or ("page login" if t["session"] else ""),
            since(t["created_at"]) + " ago",
            since(t["last_used_at"]) + (" ago" if t["last_used_at"] else ""),
            t["expires_at"][:16] if t["expires_at"] else "never",
        )
        for t in found
    ]
    say(table(("ID", "USER", "LABEL", "CREATED", "LAST USED", "EXPIRES (UTC)"), rows))


@token.command("revoke")
def token_revoke(token_id: Annotated[str, typer.Argument(metavar="ID")]) -> None:
    """Revoke a token at once."""
    with Api() as api:
        api.delete("tokens", token_id)
    say(f"Token {token_id} is revoked.")


@user.command("add")
def user_add(
    name: str,
    role: Annotated[str, typer.Option("--role", help="admin, member or viewer.")] = "member",
    password_file: PasswordFile = "",
    output: Output = Format.TEXT,
) -> None:
    """Add a user (admins)."""
    secret = password(password_file, prompt=f"Password for {name}", twice=True)
    with Api() as api:
        made = api.post("users", body={"name": name, "role": role, "password": secret})
    if output is Format.JSON:
        print_json(made)
    else:
        say(f"{made['name']} may log in, as {made['role']}.")


@user.command("list")
def user_list(output: Output = Format.TEXT) -> None:
    """All users."""
    with Api() as api:
        found = api.get("users")
    if output is Format.JSON:
        print_json(found)
        return
    rows = [
        (u["name"], u["role"], "disabled" if u["disabled"] else "", since(u["created_at"]) + " ago")
        for u in found
    ]
    say(table(("NAME", "ROLE", "", "ADDED"), rows))


@user.command("remove")
def user_remove(name: str) -> None:
    """Remove a user (admins). Their tokens end at once."""
    with Api() as api:
        api.delete("users", name)
    say(f"{name} is removed.")


@user.command("passwd")
def user_passwd(
    name: Annotated[str, typer.Argument(help="You, when left out.")] = "",
    password_file: PasswordFile = "",
) -> None:
    """Set a password: your own, or as admin anyone's."""
    with Api() as api:
        who = name or str(api.get("session")["user"])
        secret = password(password_file, prompt=f"New password for {who}", twice=True)
        api.put("users", who, "password", body={"password": secret})
    say(f"The password of {who} is set.")
