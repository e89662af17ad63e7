"""Passwords: prompted for, or read from a file; never an argument."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from podwarden.cli.failure import USAGE, Failure

PasswordFile = Annotated[
    str,
    typer.Option(
        "--password-file", help="Read the password from this file; - reads standard input."
    ),
]


def password(file: str, *, prompt: str = "Password", twice: bool = False) -> str:
    """The first line of `file`, or what is typed. Failure when there is nobody to ask."""
    if file:
        return _from(file)
    if not sys.stdin.isatty():
        raise Failure(
            "There is no terminal to ask for a password: give --password-file FILE, or - for standard input.",
            USAGE,
        )
    return str(typer.prompt(prompt, hide_input=True, confirmation_prompt=twice, err=True))


def text_of(file: str, what: str) -> str:
    """The text of a file, or of standard input for `-`."""
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{what} {file} cannot be read: {_why(error)}.", USAGE) from error


def _from(file: str) -> str:
    lines = text_of(file, "The password file").splitlines()
    if not lines or not lines[0]:
        raise Failure(f"{file} has no password in its first line.", USAGE)
    return lines[0]


def _why(error: Exception) -> str:
    return (
        (error.strerror or str(error)) if isinstance(error, OSError) else "it is not text in UTF-8"
    )
