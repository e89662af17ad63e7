"""`--wait`: follow a workload until it runs (service) or has ended (job), or the time is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx

from podwarden.cli import words
from podwarden.cli.client import Api
from podwarden.cli.failure import NOT_REACHABLE, Failure, Gone
from podwarden.cli.printing import hint
from podwarden.domain.units import parse_duration, show_duration

LOOK_AFTER = 5.0  # seconds without a sign of change: look anyway
PATIENCE = 30.0  # seconds that PodWarden may be away (a restart) before the wait gives up


def limit(text: str) -> float | None:
    """The time of `--wait=TIME` in seconds; None: as long as it takes."""
    if not text:
        return None
    try:
        return float(parse_duration(text))
    except ValueError as error:
        raise Failure(f"--wait={text}: {error}.", 2) from error


class Wait:
    """Follows one workload. started: when it was asked for, by `clock`."""

    def __init__(
        self,
        api: Api,
        workload: dict[str, Any],
        *,
        seconds: float | None,
        started: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._id = workload["id"]
        self._clock = clock
        self._started = started
        self._deadline = None if seconds is None else started + seconds
        self._seen = workload
        self._said = ""
        self._ran = False

    def follow(self) -> dict[str, Any]:
        """The workload as it is when the wait is over. Failure when it failed, was stopped or is gone."""
        try:
            while not self._done():
                self._until_change()
        except KeyboardInterrupt:
            hint(
                f"\n{self._seen['name']} is {self._seen['state']} and stays so: "
                f"only the wait is over. Look with: podwarden workload show {self._seen['name']}"
            )
            raise
        except Gone as error:
            raise Failure(f"{self._seen['name']}: was deleted meanwhile.") from error
        return self._seen

    @property
    def took(self) -> float:
        return self._clock() - self._started

    def _done(self) -> bool:
        state = self._seen["state"]
        if state in ("failed", "stopped"):
            raise Failure(words.line(self._seen), details=self._seen)
        if state == "succeeded" or (state == "running" and self._seen["kind"] == "service"):
            return True
        self._tell()
        if self._deadline is not None and self._clock() >= self._deadline:
            waited = show_duration(self._deadline - self._started)
            raise Failure(
                f"{words.line(self._seen)}\nNot there after {waited}; it goes on by itself.",
                details=self._seen,
            )
        return False

    def _tell(self) -> None:
        """What keeps it waiting, once for each new reason; that a job has begun, once."""
        said = words.line(self._seen)
        if self._seen["state"] == "running" and not self._ran:
            self._ran = True
            hint(said)
            self._said = said
        if (
            self._seen["reason"]
            and self._seen["reason"]["code"] != "STARTING"
            and said != self._said
        ):
            hint(said)
            self._said = said

    def _until_change(self) -> None:
        """Listens, and reads the workload at each sign of change; listening starts before the first look."""
        away_since = None
        while True:
            try:
                self._listen()
            except httpx.ReadTimeout:
                pass  # time for a look, or the end
            except Failure as error:
                if error.code != NOT_REACHABLE:
                    raise
                away_since = away_since or self._clock()
                if self._clock() - away_since > PATIENCE:
                    raise
                time.sleep(0.5)  # between two tries to reach it
                continue
            return

    def _listen(self) -> None:
        read = LOOK_AFTER
        if self._deadline is not None:
            read = min(read, max(self._deadline - self._clock(), 0.05))
        with self._api.lines("feed", read=read) as lines:
            before = self._seen
            self._look()
            if self._seen != before:
                return
            for line in lines:
                if self._matters(line):
                    self._look()
                    if self._seen != before:
                        return
                if self._deadline is not None and self._clock() >= self._deadline:
                    return

    def _look(self) -> None:
        self._seen = self._api.get("workloads", self._id)

    def _matters(self, line: str) -> bool:
        if line.startswith(":"):
            return True  # a heartbeat: look, in case a notice was lost
        if not line.startswith("data:"):
            return False
        return (
            self._id in line
            or (self._seen["state"] == "queued" and '"kind": "queue"' in line)
            or '"reset"' in line
        )
