"""Processes in the background, known by the lock they hold: start, look, stop. Never by a stale number."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from podwarden.cli.locks import holder
from podwarden.errors import SetupFailed, Unavailable

LOOK = 0.05  # seconds between two looks
TAIL = 15  # lines of a log in a message


@dataclass(frozen=True, slots=True)
class Background:
    """name: for messages. folder: where `<name>.lock` and `<name>.log` lie. The command holds the lock
    for as long as it does its work.
    """

    name: str
    folder: Path

    @property
    def lock(self) -> Path:
        return self.folder / f"{self.name}.lock"

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def running(self) -> bool:
        return holder(self.lock) is not None

    def start(self, command: Sequence[str], environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """In a session of its own, so that it outlives the terminal."""
        with self.log.open("wb") as log:
            return subprocess.Popen(  # noqa: S603 - our own program
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=self.folder,
                env=dict(environ),
            )

    def check(self, process: subprocess.Popen[bytes]) -> None:
        """SetupFailed with its last words when it has ended."""
        code = process.poll()
        if code is not None:
            raise SetupFailed(
                f"{self.name} ended at its start (exit code {code}): {self.last_words()}"
            )

    def last_words(self) -> str:
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return "it left no log."
        return "\n".join(lines[-TAIL:])

    def stop(self, seconds: float = 15.0) -> bool:
        """Asks it to end, and ends it when it does not within `seconds`. False: nothing ran.

        Unavailable when even that did not help. The process is taken hold of before it is looked at
        again, so that a number that was given away meanwhile is never signalled.
        """
        pid = holder(self.lock)
        if pid is None:
            return False
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return True
        try:
            if holder(self.lock) != pid:
                return True
            for number, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, 5.0)):
                if _ended(handle, number, patience):
                    return True
        finally:
            os.close(handle)
        raise Unavailable(f"{self.name} (process {pid}) does not end.")


def _ended(handle: int, number: signal.Signals, seconds: float) -> bool:
    try:
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return True
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def wait_for(
    done: Background, process: subprocess.Popen[bytes], ready: str, seconds: float
) -> None:
    """Until the line `ready` stands in its log. SetupFailed when it ends before or takes too long."""
    deadline = time.monotonic() + seconds
    while ready not in done.last_words():
        done.check(process)
        if time.monotonic() > deadline:
            raise SetupFailed(
                f"{done.name} is not ready after {seconds:.0f} s: {done.last_words()}"
            )
        time.sleep(LOOK)
