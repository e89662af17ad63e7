"""replay: plan a saved snapshot again, offline."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any

import typer

from podwarden.cli.failure import USAGE, Failure
from podwarden.cli.printing import Format, Output, print_json, say
from podwarden.cli.reading import text_of

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _group() -> None:
    pass


@app.command()
def replay(
    file: Annotated[
        str, typer.Argument(help="As `podwarden snapshot` wrote it; - reads standard input.")
    ],
    at: Annotated[
        str,
        typer.Option(
            "--at", help="Plan as of this time (ISO 8601); when it was taken, if left out."
        ),
    ] = "",
    output: Output = Format.TEXT,
) -> None:
    """Plan a saved snapshot again: the same snapshot gives the same decisions, bit for bit."""
    from podwarden.errors import Refused  # noqa: PLC0415
    from podwarden.scheduling.codec import plan_to_json, snapshot_from_json  # noqa: PLC0415
    from podwarden.scheduling.plan import plan  # noqa: PLC0415 - the planner

    try:
        snapshot = snapshot_from_json(text_of(file, "The snapshot"))
    except Refused as error:
        raise Failure(f"{file}: {error.message}", USAGE) from error
    made = plan(snapshot, _moment(at) if at else snapshot.taken_at)
    if output is Format.JSON:
        print_json(json.loads(plan_to_json(made)))
        return
    names = {claimant.workload: claimant.name for claimant in snapshot.claimants}
    say(f"{snapshot.cluster}, as of {snapshot.taken_at.isoformat()}")
    for line in _lines(made, names):
        say(line)


def _lines(made: Any, names: dict[str, str]) -> list[str]:
    lines = [
        f"{names.get(p.workload, p.workload)}: starts on "
        + ", ".join(" ".join((slot.node, *slot.devices)) for slot in p.slots)
        for p in made.placements
    ]
    lines += [
        f"{names.get(v.workload, v.workload)}: place {v.position} in line. {v.reason.sentence}"
        for v in made.verdicts
        if v.position and v.reason
    ]
    lines += [
        f"{h.node} {h.device}: kept for {names.get(h.workload, h.workload)}" for h in made.holds
    ]
    lines += [
        f"{names.get(v.workload, v.workload)}: refused. {v.reason.sentence}"
        for v in made.refusals
        if v.reason
    ]
    return lines or ["Nothing waits, nothing changes."]


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise Failure(f"--at {text}: a time such as 2026-12-01T14:12:00+00:00.", USAGE) from error
    if moment.tzinfo is None:
        raise Failure(f"--at {text}: add the time zone, such as +00:00.", USAGE)
    return moment
