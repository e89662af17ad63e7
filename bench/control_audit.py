"""What the API server says happened: its audit log of all writes, with microseconds."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from bench.control_ground import until

OURS = "podwarden"  # user agent of PodWarden's writes
BENCH = "bench"
_WORKLOAD = re.compile(r"^([a-z]+-\d{5})-")
_BINDING = b'"subresource":"binding"'


class Audit:
    """Follows the file as it grows; bindings are read at once, the rest when it is asked for.

    bound: when a workload's first pod was bound, by name, in seconds since 1970: the binding was answered.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = path.stat().st_size  # only what comes from now on
        self._rest = b""
        self._lines: list[bytes] = []
        self.bound: dict[str, float] = {}

    def wait_bound(self, names: Iterable[str], seconds: float) -> None:
        wanted = set(names)

        def all_bound() -> bool:
            self.read()
            return wanted <= self.bound.keys()

        try:
            until(all_bound, "everything is bound", seconds, 0.1)
        except TimeoutError as late:
            missing = sorted(wanted - self.bound.keys())
            raise TimeoutError(f"{late} {len(missing)} are missing, first {missing[:3]}") from None

    def read(self) -> None:
        with self._path.open("rb") as file:
            file.seek(self._at)
            fresh = file.read()
        self._at += len(fresh)
        *lines, self._rest = (self._rest + fresh).split(b"\n")
        for line in lines:
            if _BINDING not in line:
                self._lines.append(line)
                continue
            event = json.loads(line)
            found = _WORKLOAD.match(event["objectRef"]["name"])
            if found and event["responseStatus"]["code"] == 201:
                self.bound.setdefault(found[1], _seconds(event["stageTimestamp"]))
            self._lines.append(line)

    def writes(self, agent: str = "") -> Counter[str]:
        """How often: `verb resource/subresource`; of one client (its user agent) or of all."""
        self.read()
        counted: Counter[str] = Counter()
        for line in self._lines:
            event = json.loads(line)
            if agent and not event.get("userAgent", "").startswith(agent):
                continue
            ref = event.get("objectRef") or {}
            if ref.get("resource") == "leases":
                continue
            part = f"/{ref['subresource']}" if ref.get("subresource") else ""
            refused = "" if event["responseStatus"]["code"] < 400 else " (refused)"
            counted[f"{event['verb']} {ref.get('resource')}{part}{refused}"] += 1
        return counted


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()
