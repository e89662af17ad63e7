"""How a process is named in the lease, so that a successor on the same host knows at once when it died.

The name says in which process namespace of which running kernel the process lives: only there its number means it.
"""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path


def own_name(proc: Path = Path("/proc")) -> str:
    """`gpu1/<kernel's start>-<namespace>/<number>/<random>`; no two processes share one."""
    return f"{socket.gethostname()}/{_place(proc)}/{os.getpid()}/{secrets.token_hex(3)}"


def is_dead(holder: str, proc: Path = Path("/proc")) -> bool:
    """True only for a process that lived right here and is surely gone."""
    parts = holder.split("/")
    if len(parts) != 4 or parts[1] != _place(proc) or not parts[1] or not parts[2].isdigit():
        return False
    try:
        os.kill(int(parts[2]), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _place(proc: Path) -> str:
    """Empty where the system does not tell: then nobody is taken for dead."""
    try:
        started = (proc / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{started[:8]}-{(proc / 'self/ns/pid').stat().st_ino}"
    except OSError:
        return ""
