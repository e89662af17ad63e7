"""Where the server is and with which token: environment first, then the file that `login` wrote.

A stored token belongs to its server and is never sent to another one.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podwarden.cli.failure import USAGE, Failure

DEFAULT_SERVER = "http://127.0.0.1:8080"


@dataclass(frozen=True, slots=True)
class Target:
    """token "": none known."""

    server: str
    token: str


def file(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "podwarden" / "client.json"


def target(environ: Mapping[str, str] | None = None) -> Target:
    env = os.environ if environ is None else environ
    stored = _read(file(env))
    server = _server(env.get("PODWARDEN_SERVER") or str(stored.get("current") or DEFAULT_SERVER))
    token = _token(env)
    if not token:
        entry = stored.get("servers", {}).get(server)
        token = str(entry.get("token", "")) if isinstance(entry, dict) else ""
    return Target(server, token)


def remember(server: str, user: str, token: str, environ: Mapping[str, str] | None = None) -> Path:
    """Stores a token and makes its server the current one."""
    path = file(os.environ if environ is None else environ)
    stored = _read(path)
    servers = stored.get("servers")
    servers = dict(servers) if isinstance(servers, dict) else {}
    servers[_server(server)] = {"user": user, "token": token}
    _write(path, {"current": _server(server), "servers": servers})
    return path


def forget(server: str, environ: Mapping[str, str] | None = None) -> None:
    """Drops the token of a server that is gone (`demo --stop`)."""
    path = file(os.environ if environ is None else environ)
    stored = _read(path)
    servers = stored.get("servers")
    if not isinstance(servers, dict) or _server(server) not in servers:
        return
    servers = {name: entry for name, entry in servers.items() if name != _server(server)}
    current = stored.get("current")
    if current == _server(server):
        current = next(iter(servers), "")
    _write(path, {"current": current, "servers": servers})


def _server(address: str) -> str:
    address = address.rstrip("/")
    if "://" not in address:
        address = f"http://{address}"
    if not address.startswith(("http://", "https://")):
        raise Failure(f"{address}: give an address such as {DEFAULT_SERVER}.", USAGE)
    return address


def _token(env: Mapping[str, str]) -> str:
    name = env.get("PODWARDEN_TOKEN_FILE", "")
    if not name:
        return env.get("PODWARDEN_TOKEN", "").strip()
    try:
        return Path(name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"PODWARDEN_TOKEN_FILE={name} cannot be read: {error}.", USAGE) from error


def _read(path: Path) -> dict[str, Any]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise Failure(f"{path} cannot be read: {error}. Delete it and log in again.") from error
    return stored if isinstance(stored, dict) else {}


def _write(path: Path, content: dict[str, Any]) -> None:
    """Readable by its owner only, never half written."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".client-")  # 0600 from the start
    with contextlib.ExitStack() as stack:
        stack.callback(Path(name).unlink, missing_ok=True)
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump(content, out, indent=2)
        Path(name).replace(path)
