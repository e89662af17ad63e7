"""The command `podwarden` as a user types it, in a home of its own."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plant import PODWARDEN


@dataclass
class Said:
    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return self.out + self.err


class Shell:
    """home: also where its settings, data and working folder are. environ: beside or instead of this process' own."""

    def __init__(self, home: Path, **environ: str) -> None:
        self.home = home
        # The engine that is built already lies in the cache, and is used from there.
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PODWARDEN_")}
        self.environ = {
            **kept,
            "HOME": str(home),
            "XDG_CACHE_HOME": cache,
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_DATA_HOME": str(home / "data"),
            "COLUMNS": "200",
            **environ,
        }

    def __call__(self, *args: str, stdin: str | None = None, seconds: float = 120) -> Said:
        done = subprocess.run(
            [PODWARDEN, *args],
            env=self.environ,
            cwd=self.home,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def good(self, *args: str, seconds: float = 120) -> str:
        said = self(*args, seconds=seconds)
        assert said.code == 0, f"podwarden {' '.join(args)}: {said}"
        return said.out

    def json(self, *args: str) -> Any:
        return json.loads(self.good(*args, "-o", "json"))

    def refused(self, *args: str, code: int = 1, stdin: str | None = None) -> str:
        """What it said. Never a traceback."""
        said = self(*args, stdin=stdin)
        assert said.code == code, f"podwarden {' '.join(args)}: {said}"
        assert "Traceback" not in said.all
        return said.all
