"""The entry point `podwarden`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer

from podwarden.cli.failure import Failure
from podwarden.cli.lazy import LazyGroup
from podwarden.cli.printing import hint, print_json_error

app = typer.Typer(
    name="podwarden",
    cls=LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Run GPU work on a handful of machines, with a queue that explains itself.",
    epilog="Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 not reachable.",
)


def _version(asked: bool) -> None:
    if asked:
        print(f"podwarden {version('podwarden')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


def spread(args: Sequence[str]) -> list[str]:
    """`--wait` may stand alone or carry a time (`--wait=10m`): alone it becomes `--wait=`."""
    given = list(args)
    ends = given.index("--") if "--" in given else len(given)
    return ["--wait=" if arg == "--wait" else arg for arg in given[:ends]] + given[ends:]


def wants_json(args: Sequence[str]) -> bool:
    pairs = zip(args, [*args[1:], ""], strict=True)
    return any(
        (arg in ("-o", "--output") and value == "json") or arg in ("-ojson", "--output=json")
        for arg, value in pairs
    )


def main() -> None:
    args = spread(sys.argv[1:])
    try:
        app(args=args, prog_name="podwarden")
    except Failure as failure:
        if failure.details is not None and wants_json(args):
            print_json_error(failure.details)
        else:
            hint(str(failure))
        sys.exit(failure.code)
