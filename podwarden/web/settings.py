"""How the web side behaves. The defaults are what `podwarden up` uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic


@dataclass(frozen=True, slots=True)
class WebSettings:
    """hosts: further names PodWarden answers to (Host header). secure: it is reached by https, so the
    cookie is never sent without. Seconds, bytes and counts as named.
    """

    hosts: frozenset[str] = frozenset()
    secure: bool = False
    most_body: int = 1 << 20
    body_s: float = 30.0
    heartbeat_s: float = 15.0
    most_streams: int = 256
    most_streams_each: int = 24
    login_tries: int = 5
    login_pause_s: float = 60.0
    clock: Callable[[], float] = monotonic

    @property
    def cookie(self) -> str:
        return "__Host-podwarden" if self.secure else "podwarden_session"
