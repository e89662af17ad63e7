"""The top of the command line: knows which module has which command, and imports only that one."""

from __future__ import annotations

import importlib
from typing import Any

import typer
from typer.core import TyperGroup

# In the order of the help.
COMMANDS = {
    "up": "up",
    "demo": "demo",
    "login": "access",
    "token": "access",
    "user": "access",
    "cluster": "clusters",
    "storage": "storage",
    "secret": "secret",
    "template": "templates",
    "fit": "templates",
    "deploy": "deploy",
    "plan": "deploy",
    "workload": "workload",
    "queue": "look",
    "gpus": "look",
    "snapshot": "look",
    "replay": "replay",
}


def command(name: str) -> Any:
    """The command of that name, or None."""
    module = COMMANDS.get(name)
    if module is None:
        return None
    app = importlib.import_module(f"podwarden.cli.{module}").app
    return typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]  # a group: each has a callback


class LazyGroup(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - their face
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - their face
        found = command(cmd_name)
        if found is None:
            self.commands.update(dict.fromkeys(COMMANDS))  # type: ignore[arg-type]  # names for "did you mean"
        return found
