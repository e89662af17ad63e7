from __future__ import annotations

import os
import subprocess
import sys

import pytest

from podwarden.cli.locks import hold, holder
from podwarden.errors import Conflict

HOLD = (
    "import sys; from pathlib import Path; from podwarden.cli.locks import hold\n"
    "with hold(Path(sys.argv[1])):\n    print('held', flush=True); sys.stdin.read()"
)


@pytest.fixture
def other(tmp_path):
    """Another process that holds the lock."""
    path = tmp_path / "run" / "x.lock"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield path, process
    process.kill()
    process.communicate()


def test_the_holder_is_known_by_its_process(other):
    path, process = other
    assert holder(path) == process.pid
    with pytest.raises(Conflict), hold(path):
        pass


def test_a_killed_process_holds_nothing(other):
    path, process = other
    process.kill()
    process.wait()
    assert holder(path) is None
    with hold(path):
        assert path.exists()


def test_a_stale_file_means_nothing(tmp_path):
    path = tmp_path / "x.lock"
    assert holder(path) is None
    path.write_text(str(os.getpid()))
    assert holder(path) is None
