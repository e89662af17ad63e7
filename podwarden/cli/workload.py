"""workload list, show, logs, events, stop, start, update, rollback, priority, delete."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import httpx
import typer

from podwarden.cli import detail, source, words
from podwarden.cli.client import Api
from podwarden.cli.compose import show_secrets
from podwarden.cli.failure import NOT_REACHABLE, USAGE, Failure
from podwarden.cli.printing import Format, Output, hint, log_line, print_json, say, table
from podwarden.cli.source import Cluster

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
workload = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Look at workloads and change them."
)
app.add_typer(workload, name="workload")


def complete(incomplete: str) -> list[str]:
    """Names that begin so; nothing when the server is away: completion never complains."""
    try:
        with Api() as api:
            found = api.get("workloads", search=incomplete, limit=50)["items"]
    except (Failure, httpx.HTTPError):
        return []
    return [w["name"] for w in found if w["name"].startswith(incomplete)]


Ref = Annotated[str, typer.Argument(metavar="NAME", help="Name or id.", autocompletion=complete)]


@app.callback()
def _group() -> None:
    pass


@workload.command("list")
def list_(
    state: Annotated[list[str], typer.Option("--state", help="Only these; may be repeated.")] = [],  # noqa: B006
    owner: Annotated[str, typer.Option("--owner", help="Only what this user owns.")] = "",
    cluster: Cluster = "",
    search: Annotated[str, typer.Option("--search", help="Part of the name.")] = "",
    output: Output = Format.TEXT,
) -> None:
    """All workloads."""
    found: list[dict[str, Any]] = []
    with Api() as api:
        after: str | None = ""
        while after is not None:
            page = api.get(
                "workloads",
                state=state or None,
                owner=owner,
                cluster=cluster,
                search=search,
                after=after,
                limit=500,
            )
            found += page["items"]
            after = page["next"]
    if output is Format.JSON:
        print_json(found)
    elif found:
        heads = ("NAME", "KIND", "STATE", "WHERE", "OWNER", "AGE", "ADDRESS")
        say(table(heads, [_row(w) for w in found]))
    else:
        say("No workloads. Next: podwarden deploy TEMPLATE (podwarden template list)")


@workload.command()
def show(ref: Ref, cluster: Cluster = "", output: Output = Format.TEXT) -> None:
    """One workload: where it runs, or why it waits, and what would let it run."""
    with Api() as api:
        found = api.get("workloads", ref, cluster=cluster)
        where = api.get("clusters", found["cluster"]) if output is Format.TEXT else {}
    if output is Format.JSON:
        print_json(found)
    else:
        say(detail.text(found, simulated=where["simulated"]))


@workload.command()
def logs(
    ref: Ref,
    cluster: Cluster = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new lines.")] = False,
    tail: Annotated[
        int | None, typer.Option("--tail", min=0, help="Only so many last lines of each copy.")
    ] = None,
    instance: Annotated[str, typer.Option("--instance", help="One copy, or one frame.")] = "",
) -> None:
    """Its output."""
    with Api() as api:
        try:
            with api.lines(
                "workloads",
                ref,
                "logs",
                cluster=cluster,
                follow=follow,
                tail=tail,
                instance=instance,
            ) as lines:
                for line in lines:
                    log_line(line)
        except httpx.ReadTimeout as error:
            raise Failure("The log broke off: no answer in time.", NOT_REACHABLE) from error


@workload.command()
def events(ref: Ref, cluster: Cluster = "", output: Output = Format.TEXT) -> None:
    """What happened to it, oldest first."""
    found: list[dict[str, Any]] = []
    with Api() as api:
        after: int | None = 0
        while after is not None:
            page = api.get("workloads", ref, "events", cluster=cluster, after=after, limit=500)
            found += page["items"]
            after = page["next"]
    if output is Format.JSON:
        print_json(found)
        return
    rows = [(words.clock(e["at"]), e["kind"], e["actor"], detail.event(e)) for e in found]
    say(table(("TIME", "WHAT", "WHO", ""), rows))


@workload.command()
def stop(ref: Ref, cluster: Cluster = "", output: Output = Format.TEXT) -> None:
    """Stop it. Its volumes stay, and it can be started again."""
    _do("stop", ref, cluster, output)


@workload.command()
def start(ref: Ref, cluster: Cluster = "", output: Output = Format.TEXT) -> None:
    """Put a stopped or ended one in the queue again."""
    _do("start", ref, cluster, output)


@workload.command()
def update(
    *,
    ref: Ref,
    what: Annotated[
        str, typer.Argument(metavar="TEMPLATE|FILE", help="As it is now when left out.")
    ] = "",
    cluster: Cluster = "",
    gpus: source.Gpus = "",
    vram: source.Vram = "",
    shared: source.Shared = None,
    model: source.Model = "",
    priority: source.PriorityWord = "",
    sets: source.Sets = [],  # noqa: B006 - never changed
    recreate: Annotated[
        bool,
        typer.Option("--recreate", help="Stop the old one first where there is no room for both."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")] = False,
    output: Output = Format.TEXT,
) -> None:
    """Give it a new revision: without an outage where there is room, and never silently with one."""
    with Api() as api:
        current = api.get("workloads", ref, cluster=cluster)
        target = what or (current["template"] if sets else "")
        if sets and not target:
            raise Failure(f"{ref} came from a file: --set is for templates.", USAGE)
        order = source.body(
            target,
            gpus=gpus,
            vram=vram,
            shared=shared,
            model=model,
            priority=priority,
            sets=sets,
        )
        if not target:
            order |= {"file": detail.as_file(current["spec"]), "source": ref}
        order |= {"name": current["name"], "recreate": recreate, "dry_run": dry_run}
        answer = api.put("workloads", current["id"], body=order)
    _changed(answer, output)


@workload.command()
def rollback(
    ref: Ref,
    to: Annotated[
        int | None, typer.Option("--to", min=1, help="Revision; the one before when left out.")
    ] = None,
    cluster: Cluster = "",
    recreate: Annotated[
        bool,
        typer.Option("--recreate", help="Stop the old one first where there is no room for both."),
    ] = False,
    output: Output = Format.TEXT,
) -> None:
    """Go back to an earlier revision."""
    with Api() as api:
        answer = api.post(
            "workloads",
            ref,
            "rollback",
            body={"revision": to, "recreate": recreate},
            cluster=cluster,
        )
    _changed(answer, output)


@workload.command()
def priority(
    ref: Ref,
    level: Annotated[
        str, typer.Argument(metavar="LEVEL", help="critical, high, normal, low or idle.")
    ],
    cluster: Cluster = "",
    output: Output = Format.TEXT,
) -> None:
    """Change its place in the queue."""
    with Api() as api:
        found = api.put("workloads", ref, "priority", body={"priority": level}, cluster=cluster)
    _print(found, output)


@workload.command()
def delete(
    ref: Ref,
    cluster: Cluster = "",
    volumes: Annotated[
        bool, typer.Option("--volumes", help="Its data too. There is no way back.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    output: Output = Format.TEXT,
) -> None:
    """Stop it and remove it. Its volumes stay unless told otherwise."""
    if volumes and not yes:
        if not sys.stdin.isatty():
            raise Failure(
                f"Deleting the data of {ref} needs --yes where nobody can be asked.", USAGE
            )
        typer.confirm(f"Delete {ref} and all of its data?", abort=True, err=True)
    with Api() as api:
        gone = api.delete("workloads", ref, cluster=cluster, keep_volumes=not volumes)
    if output is Format.JSON:
        print_json(gone)
        return
    say(f"{gone['name']}: is being deleted.")
    if not volumes and any(v.get("kind") == "disk" for v in gone["spec"].get("volumes", [])):
        hint("Its volumes stay.")


def _do(verb: str, ref: str, cluster: str, output: Format) -> None:
    with Api() as api:
        found = api.post("workloads", ref, verb, cluster=cluster)
    _print(found, output)


def _print(found: dict[str, Any], output: Format) -> None:
    if output is Format.JSON:
        print_json(found)
    else:
        say(words.line(found))


def _changed(answer: dict[str, Any], output: Format) -> None:
    if output is Format.JSON:
        print_json(answer)
    else:
        show_secrets(answer["made_secrets"])
        say(f"{answer['workload']['name']}: {answer['text']}")


def _row(w: dict[str, Any]) -> tuple[str, ...]:
    where = words.place(w["nodes"], w["devices"], {})
    state = w["state"] + (f", {words.progress(w)}" if words.progress(w) else "")
    if w["state"] in ("queued", "failed", "unhealthy") and w["reason"]:
        where = w["reason"]["code"]
    age = words.since(w["times"]["created_at"])
    return (w["name"], w["kind"], state, where, w["owner"], age, " ".join(w["urls"][:1]))
