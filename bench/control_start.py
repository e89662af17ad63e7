"""Starting: the demo with a cached engine, as a user calls it, and the command line's answers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from bench.control_ground import free_port
from bench.control_parts import Run

ANSWERS = 5  # times a command is called; the median counts


def start(root: Path) -> Run:
    """Seconds. The user's own demo, credentials and settings stay as they are."""
    podwarden = Path(sys.executable).with_name("podwarden")
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PODWARDEN_")}
    config = {"XDG_CONFIG_HOME": str(root / "config"), "XDG_DATA_HOME": str(root / "data")}

    def timed(*arguments: str) -> float:
        begun = time.monotonic()
        done = subprocess.run(
            [podwarden, *arguments],
            env={**kept, **config},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"podwarden {' '.join(arguments)}: {done.stderr[-1000:]}")
        return time.monotonic() - begun

    before = os.times()
    begun = time.monotonic()
    machine = _busy()
    figures = {}
    try:
        figures["demo_s"] = round(timed("demo", "--port", str(free_port())), 1)
        for name, command in {"gpus_s": "gpus", "queue_s": "queue", "help_s": "--help"}.items():
            figures[name] = round(median(timed(command) for _ in range(ANSWERS)), 2)
    finally:
        figures["demo_stop_s"] = round(timed("demo", "--stop"), 1)
    after = os.times()
    ours = sum(after[:4]) - sum(before[:4])
    share = (_busy() - machine - ours) / ((time.monotonic() - begun) * (os.cpu_count() or 1))
    return Run({**figures, "busy_besides_the_commands": round(share, 2)}, 0.0)


def _busy() -> float:
    columns = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    ticks = [int(column) for column in columns]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
