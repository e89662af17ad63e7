"""Settings, read once from the environment. A bad value stops the start with a sentence.

Every setting is an environment variable `PODWARDEN_<NAME>`; a secret may be given as `<NAME>_FILE`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from podwarden.errors import SetupFailed


@dataclass(frozen=True, slots=True)
class Settings:
    """data: the one folder with everything that must survive. database_url: "" = SQLite in `data`.
    templates: a folder of one's own templates, merged over the catalogue. lease_seconds: how long a leader
    that went silent is waited for before another PodWarden acts. hosts: further names it is reached by
    (Host header). admin_password: of the first user; "" = one is made up.
    """

    data: Path
    host: str = "127.0.0.1"
    port: int = 8080
    database_url: str = ""
    templates: Path | None = None
    lease_seconds: float = 6.0
    log_level: str = "info"
    hosts: tuple[str, ...] = ()
    admin_password: str = ""


def default_data() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "podwarden"


def read_settings(environ: Mapping[str, str] | None = None) -> Settings:
    env = os.environ if environ is None else environ
    templates = env.get("PODWARDEN_TEMPLATES", "")
    return Settings(
        data=Path(env.get("PODWARDEN_DATA") or default_data()),
        host=env.get("PODWARDEN_HOST") or "127.0.0.1",
        port=_number(env, "PODWARDEN_PORT", 8080, 0, 65535),
        database_url=_secret(env, "PODWARDEN_DATABASE_URL"),
        templates=Path(templates) if templates else None,
        lease_seconds=float(_number(env, "PODWARDEN_LEASE_SECONDS", 6, 2, 600)),
        log_level=_choice(
            env, "PODWARDEN_LOG_LEVEL", "info", ("debug", "info", "warning", "error")
        ),
        hosts=tuple(env.get("PODWARDEN_HOSTS", "").lower().replace(",", " ").split()),
        admin_password=_secret(env, "PODWARDEN_ADMIN_PASSWORD"),
    )


def _number(env: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    raw = env.get(name, "")
    if not raw:
        return default
    if not raw.isascii() or not raw.isdigit() or not low <= int(raw) <= high:
        raise SetupFailed(f"{name}={raw}: give a whole number from {low} to {high}.")
    return int(raw)


def _choice(env: Mapping[str, str], name: str, default: str, choices: tuple[str, ...]) -> str:
    raw = (env.get(name) or default).lower()
    if raw not in choices:
        raise SetupFailed(f"{name}={raw}: give one of {', '.join(choices)}.")
    return raw


def _secret(env: Mapping[str, str], name: str) -> str:
    value, file = env.get(name, ""), env.get(f"{name}_FILE", "")
    if value and file:
        raise SetupFailed(f"{name} and {name}_FILE are both set: keep one.")
    if not file:
        return value
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SetupFailed(
            f"{name}_FILE={file} cannot be read: {error.strerror}. Give a readable file."
        ) from error
