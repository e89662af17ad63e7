"""The engine's binary is built once for each state of its sources; a fake `go` stands in for the compiler."""

from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path

import pytest

from podwarden.errors import SetupFailed
from podwarden.simulator import engine_build
from podwarden.simulator.engine_build import engine_binary, find_go, main, source_hash

FAKE_GO = """#!/bin/sh
if [ "$1" = version ]; then echo "go version go{version} linux/amd64"; exit 0; fi
echo built >> "{log}"
while [ "$1" != -o ]; do case "$1" in *sourceHash=*) flags="$1";; esac; shift; done
{body}
"""
MAKES_IT = """hash=$(echo "$flags" | sed 's/.*sourceHash=\\([0-9a-f]*\\).*/\\1/')
sleep 0.2
printf '#!/bin/sh\\necho podwarden-engine %s\\n' "$hash" > "$2"; chmod +x "$2"
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "engine"
    (folder / "internal").mkdir(parents=True)
    (folder / "go.mod").write_text("module x\n\nrequire (\n\tk8s.io/kubernetes v1.37.2\n)\n")
    (folder / "main.go").write_text("package main\n")
    (folder / "internal" / "a.go").write_text("package internal\n")
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


class FakeGo:
    def __init__(self, folder: Path) -> None:
        self.program = folder / "bin" / "go"
        self.log = folder / "builds"
        self.program.parent.mkdir()

    def write(self, body: str, version: str = "1.26.5") -> None:
        self.program.write_text(FAKE_GO.format(version=version, log=self.log, body=body))
        self.program.chmod(0o755)

    @property
    def builds(self) -> int:
        return self.log.read_text().count("built") if self.log.exists() else 0


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    fake = FakeGo(tmp_path)
    fake.write(MAKES_IT)
    monkeypatch.setenv("PATH", f"{fake.program.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("PODWARDEN_ENGINE", raising=False)
    return fake


def test_built_once_and_again_when_the_sources_change(
    source: Path, cache: Path, go: FakeGo
) -> None:
    first = engine_binary(source, cache)
    assert first == cache / source_hash(source) / "podwarden-engine"
    assert first.stat().st_mode & stat.S_IXUSR
    assert engine_binary(source, cache) == first
    assert go.builds == 1
    (source / "internal" / "a.go").write_text("package internal // changed\n")
    assert engine_binary(source, cache) != first
    assert go.builds == 2


def test_the_hash_is_of_names_and_contents_but_not_of_tests(source: Path) -> None:
    before = source_hash(source)
    (source / "main_test.go").write_text("package main\n")
    (source / "README.md").write_text("words\n")
    assert source_hash(source) == before
    (source / "main.go").rename(source / "other.go")
    assert source_hash(source) != before


def test_two_at_a_time_build_once(source: Path, cache: Path, go: FakeGo) -> None:
    paths: list[Path] = []
    builders = [
        threading.Thread(target=lambda: paths.append(engine_binary(source, cache)))
        for _ in range(3)
    ]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()
    assert len(paths) == 3
    assert len(set(paths)) == 1
    assert go.builds == 1


def test_a_damaged_binary_is_built_anew(source: Path, cache: Path, go: FakeGo) -> None:
    binary = engine_binary(source, cache)
    binary.write_text("half of it")
    assert engine_binary(source, cache) == binary
    assert go.builds == 2


def test_builds_that_nobody_uses_are_forgotten(source: Path, cache: Path, go: FakeGo) -> None:
    sources = source / "main.go"
    texts = [f"package main // {n}\n" for n in range(3)]
    builds = []
    for text in texts[:2]:
        sources.write_text(text)
        builds.append(engine_binary(source, cache))
    unused, used = builds
    long_ago = time.time() - engine_build.KEEP_SECONDS - 60
    for path in builds:
        os.utime(path, (long_ago, long_ago))
    assert engine_binary(source, cache) == used  # using it is what keeps it
    sources.write_text(texts[2])
    engine_binary(source, cache)
    assert used.exists()
    assert not unused.parent.exists()


def test_a_failed_build_says_the_last_lines_and_leaves_nothing(
    source: Path, cache: Path, go: FakeGo
) -> None:
    go.write("echo first; for i in $(seq 40); do echo line $i; done; echo boom >&2; exit 1")
    with pytest.raises(SetupFailed) as failed:
        engine_binary(source, cache)
    assert "could not be built" in failed.value.message
    assert "boom" in failed.value.message
    assert "first" not in failed.value.message
    assert [path for path in cache.iterdir() if path.suffix != ".lock"] == []


def test_what_does_not_start_is_not_kept(source: Path, cache: Path, go: FakeGo) -> None:
    go.write('echo "#!/bin/false" > "$2"; chmod +x "$2"')
    with pytest.raises(SetupFailed, match="does not start"):
        engine_binary(source, cache)
    assert not (cache / source_hash(source) / "podwarden-engine").exists()


def test_too_little_space(
    source: Path, cache: Path, go: FakeGo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_build, "FREE_FOR_BUILD", 1 << 60)
    with pytest.raises(SetupFailed, match="GiB free"):
        engine_binary(source, cache)
    assert go.builds == 0


def test_a_cache_that_cannot_be_made(source: Path, tmp_path: Path, go: FakeGo) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupFailed, match="cannot be used"):
        engine_binary(source, tmp_path / "file" / "cache")


def test_sources_that_are_not_there(tmp_path: Path, cache: Path, go: FakeGo) -> None:
    with pytest.raises(SetupFailed, match="PODWARDEN_ENGINE"):
        engine_binary(tmp_path / "nowhere", cache)


def test_a_ready_binary_can_be_named(
    source: Path, cache: Path, go: FakeGo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = tmp_path / "ready"
    monkeypatch.setenv("PODWARDEN_ENGINE", str(ready))
    with pytest.raises(SetupFailed, match="no program is there"):
        engine_binary(source, cache)
    ready.touch(mode=0o755)
    assert engine_binary(source, cache) == ready
    assert go.builds == 0


def test_an_old_go_is_passed_over(cache: Path, go: FakeGo) -> None:
    assert find_go(cache) == go.program
    go.write(MAKES_IT, version="1.25.9")
    own = cache / "go" / "bin" / "go"
    own.parent.mkdir(parents=True)
    own.write_text("#!/bin/sh\necho go version go1.26.5 linux/amd64\n")
    own.chmod(0o755)
    assert find_go(cache) == own


def test_the_command_prints_the_path_or_the_reason(
    source: Path, cache: Path, go: FakeGo, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--source", str(source), "--cache", str(cache)]) == 0
    printed = capsys.readouterr()
    assert Path(printed.out.strip()).is_file()
    assert main(["--source", str(source / "internal"), "--cache", str(cache)]) == 1
    assert "checkout" in capsys.readouterr().err
