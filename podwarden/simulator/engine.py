"""Starts, watches and stops the embedded engine: a whole Kubernetes control plane on one data folder.

The engine runs in the background, in a session of its own, so the program that started it may end. What another program
needs to know lies in the folder: `engine.json` says what runs, and a lock that the engine holds says whether that is true.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podwarden.errors import Conflict, SetupFailed, Unavailable
from podwarden.simulator.engine_build import engine_binary

STAGES = Path(__file__).with_name("stages.yaml")
COMPONENTS = ("kine", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
_POLL_SECONDS = 0.05
_TAIL_LINES = 20


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How a control plane is run. Times in seconds, rates in requests per second.

    port: of the API server; 0 takes the one used last, or a free one. stages: KWOK's stages; empty = no simulated nodes.
    node_grace: silence after which a node counts as not ready; at least 4.
    """

    port: int = 0
    stages: tuple[Path, ...] = (STAGES,)
    node_grace: float = 50.0
    concurrent_job_syncs: int = 5
    qps: int = 1000
    burst: int = 2000
    audit_log: Path | None = None
    max_requests_inflight: int = 400
    max_mutating_requests_inflight: int = 200

    def arguments(self, data_dir: Path) -> list[str]:
        flags = [
            f"--data={data_dir}",
            f"--port={self.port}",
            f"--node-monitor-grace-period={self.node_grace}s",
            f"--concurrent-job-syncs={self.concurrent_job_syncs}",
            f"--qps={self.qps}",
            f"--burst={self.burst}",
            f"--max-requests-inflight={self.max_requests_inflight}",
            f"--max-mutating-requests-inflight={self.max_mutating_requests_inflight}",
        ]
        if self.audit_log is not None:
            flags.append(f"--audit-log={self.audit_log}")
        if not self.stages:
            flags.append("--no-kwok")
        return flags + [f"--kwok-config={path}" for path in self.stages]


@dataclass(frozen=True, slots=True)
class ComponentStatus:
    pid: int
    restarts: int
    ready: bool


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """What engine.json says. state: absent (never started), starting, ready, stopping, stopped, failed, or dead (it was
    killed and could not say so).
    """

    state: str
    pid: int = 0
    server: str = ""
    kubeconfig: Path | None = None
    message: str = ""
    ports: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    components: Mapping[str, ComponentStatus] = field(default_factory=dict)

    @property
    def running(self) -> bool:
        return self.state in {"starting", "ready", "stopping"}

    @property
    def ready(self) -> bool:
        """All components do their work, also those that were just restarted."""
        return self.state == "ready" and all(part.ready for part in self.components.values())


class Engine:
    """One engine on one data folder, whoever started it."""

    def __init__(self, data_dir: Path, binary: Path | None = None) -> None:
        self.data_dir = data_dir.absolute()
        self._binary = binary
        self._child = (
            0  # the supervisor's process, while it is a child of ours that was not waited for
        )

    @property
    def kubeconfig(self) -> Path:
        """The administrator's, with certificates inside; for this machine only (loopback)."""
        return self.data_dir / "admin.kubeconfig"

    @property
    def log(self) -> Path:
        """What the supervisor itself says: a JSON line for each event, and why it ended."""
        return self.data_dir / "engine.log"

    def status(self) -> EngineStatus:
        try:
            found = json.loads((self.data_dir / "engine.json").read_text())
        except FileNotFoundError:
            return EngineStatus("absent")
        status = _status(found)
        if status.running and not self._locked():
            return EngineStatus("dead", message="The engine was killed.", ports=status.ports)
        return status

    def start(self, options: EngineOptions | None = None) -> None:
        """Starts the engine in the background and returns at once; see wait_ready.

        Raises Conflict where one runs already, SetupFailed where the folder cannot be used or there is no binary.
        """
        if (status := self.status()).running:
            raise Conflict(
                f"An engine is running in {self.data_dir} already (process {status.pid})."
            )
        binary = self._binary or engine_binary()
        try:
            self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.log.unlink(missing_ok=True)
            self._spawn(binary, (options or EngineOptions()).arguments(self.data_dir))
        except OSError as error:
            raise SetupFailed(
                f"The engine cannot use the folder {self.data_dir} ({error.strerror}): choose one that you may write to."
            ) from error

    def _spawn(self, binary: Path, arguments: list[str]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._child = os.posix_spawn(
            binary,
            ["podwarden-engine", "up", *arguments],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(self.log), flags, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )

    def wait_ready(self, timeout: float = 120.0) -> EngineStatus:
        """Waits until every component is ready. Raises SetupFailed with the engine's own words when it gave up,
        Unavailable when it takes longer than `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        while True:
            ours = bool(self._child)
            gone = self._child_ended()
            status = self.status()
            # While our own process comes up, the file may still show an earlier run.
            if gone and (ours or not status.running):
                raise SetupFailed(
                    f"The engine in {self.data_dir} does not run: {self._last_words()}"
                )
            if status.ready and self._child in {0, status.pid}:
                return status
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"The engine in {self.data_dir} is not ready after {timeout:.0f} s (state: {status.state})."
                )
            time.sleep(_POLL_SECONDS)

    def stop(self, timeout: float = 60.0) -> None:
        """Stops the engine and waits until nothing of it runs. Does nothing where none runs."""
        status = self.status()
        pid = self._child or (status.pid if status.running else 0)
        if not pid:
            return
        _signal(pid, signal.SIGTERM)
        self._await_end(timeout, "did not stop")

    def kill(self, timeout: float = 10.0) -> None:
        """Kills the supervisor as a crash would, for tests; its components go with it."""
        _signal(self.status().pid, signal.SIGKILL)
        self._await_end(timeout, "survived SIGKILL")

    def kill_component(self, name: str) -> int:
        """Kills one component, for tests; the supervisor starts it again. Returns the process that was killed."""
        status = self.status()
        component = status.components.get(name)
        if not status.running or component is None or not component.pid:
            raise Unavailable(f"No {name} is running in {self.data_dir}.")
        _signal(component.pid, signal.SIGKILL)
        return component.pid

    def _await_end(self, timeout: float, failure: str) -> None:
        deadline = time.monotonic() + timeout
        while not self._child_ended() or self._locked():
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"The engine in {self.data_dir} {failure} within {timeout:.0f} s."
                )
            time.sleep(_POLL_SECONDS)

    def _child_ended(self) -> bool:
        """Whether no child of ours is left; takes its exit code from the system, so that no zombie stays."""
        if self._child and os.waitpid(self._child, os.WNOHANG)[0]:
            self._child = 0
        return not self._child

    def _locked(self) -> bool:
        """Whether an engine holds the folder's lock."""
        try:
            with (self.data_dir / "engine.lock").open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def _last_words(self) -> str:
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return "it was never started."
        words = [line for line in lines if not line.startswith("{")] or lines
        return "\n".join(words[-_TAIL_LINES:])


def _status(found: Mapping[str, Any]) -> EngineStatus:
    return EngineStatus(
        state=found["state"],
        pid=found["pid"],
        server=found.get("server", ""),
        kubeconfig=Path(found["kubeconfig"]) if found.get("kubeconfig") else None,
        message=found.get("message", ""),
        ports=found.get("ports") or {},
        versions=found.get("versions") or {},
        components={
            name: ComponentStatus(part["pid"], part["restarts"], part["ready"])
            for name, part in (found.get("components") or {}).items()
        },
    )


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
