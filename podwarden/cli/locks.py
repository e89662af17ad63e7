"""A lock file says who runs, truly: the kernel drops the lock when its process ends, however that was,
and knows the process that holds it. No number in a file can be stale.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from podwarden.errors import Conflict

_FLOCK = "hhqqi4x"  # struct flock on 64-bit Linux: type, whence, start, length, process


@contextlib.contextmanager
def hold(path: Path) -> Iterator[None]:
    """Holds the lock for the block; Conflict when another process does."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Conflict(f"Another process runs here already ({path}).") from error
        yield
    finally:
        os.close(handle)


def holder(path: Path) -> int | None:
    """The process that holds the lock now; None when nobody does."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        answer = struct.unpack(_FLOCK, fcntl.fcntl(handle, fcntl.F_GETLK, asked))
    finally:
        os.close(handle)
    return None if answer[0] == fcntl.F_UNLCK else int(answer[4])
