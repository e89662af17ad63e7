"""Starts and stops the demo: engine, simulated nodes, PodWarden, a first pair of workloads.

Each part is looked for first, so that a start after a crash, or beside a running demo, only adds what is missing.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from podwarden.cli import credentials
from podwarden.cli.background import LOOK, Background, wait_for
from podwarden.cli.client import Api
from podwarden.cli.credentials import Target
from podwarden.cli.demo_fleet import nodes_of
from podwarden.cli.failure import NOT_REACHABLE, Failure, Gone
from podwarden.cli.locks import hold
from podwarden.errors import Invalid, SetupFailed
from podwarden.simulator.engine import Engine, EngineOptions, EngineStatus
from podwarden.simulator.engine_build import engine_binary, patience

USER = "admin"
CLUSTER = "demo"
LABEL = "command line of the demo"
FIRST: tuple[dict[str, str], ...] = ({"template": "vllm"}, {"template": "web"})
START = 60.0  # seconds for one part to come up
PORTS = 50  # how many ports are tried
UNAUTHORIZED = 401  # the status of a refused login

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Running:
    url: str
    kubernetes: str
    user: str
    password_file: str
    already: bool

    @property
    def activate(self) -> str:
        """What a shell still needs so that `podwarden` is found."""
        here = Path(sys.prefix)
        if sys.prefix == sys.base_prefix or os.environ.get("VIRTUAL_ENV") == str(here):
            return ""
        with contextlib.suppress(ValueError):
            here = here.relative_to(Path.cwd())
        return f"source {here}/bin/activate; "

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Demo:
    """folder: everything of it. options: of the engine. bare: nothing is deployed, and the command line does
    not learn of it (`demo --once` keeps to itself).
    """

    def __init__(
        self, folder: Path, options: EngineOptions | None = None, *, bare: bool = False
    ) -> None:
        self._folder = folder
        self._options = options
        self._bare = bare
        self._engine = Engine(folder / "engine")
        self._control = Background("podwarden", folder)
        self._fleet = Background("nodes", folder)
        self._made: list[subprocess.Popen[bytes]] = []

    def start(self, *, nodes: Path | None, port: int, tell: Tell) -> Running:
        """Conflict: another start or stop is under way. SetupFailed, with the part's own words."""
        _checked(nodes)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with hold(self._folder / "start.lock"):
            already = self._control.running and self._fleet.running and self._engine.status().ready
            if already:
                url = self._state()["url"]
                engine = self._engine.status()
                self._furnish(url, engine)
                return self._answer(url, engine, already=True)
            self._start_engine(tell)
            url = self._start_control(port, tell)
            engine = self._engine.wait_ready(START)
            self._start_fleet(nodes)
            self._furnish(url, engine)
            return self._answer(url, engine, already=False)

    def stop(self) -> bool:
        """False: nothing was running."""
        if not self._folder.exists():
            return False
        with hold(self._folder / "start.lock"):
            with ThreadPoolExecutor() as at_once:
                asked = [
                    at_once.submit(part)
                    for part in (self._control.stop, self._fleet.stop, self._stop_engine)
                ]
            stopped = [part.result() for part in asked]
            self._end_made()
            if not self._bare:
                with contextlib.suppress(FileNotFoundError):
                    credentials.forget(self._state()["url"])
        return any(stopped)

    def _stop_engine(self) -> bool:
        running = self._engine.status().running
        self._engine.stop()
        return running

    def _end_made(self) -> None:
        """What was started here and did not come as far as its lock."""
        for process in self._made:
            process.terminate()
            process.wait()
        self._made = []

    # ---- the parts

    def _start_engine(self, tell: Tell) -> None:
        if self._engine.status().running:
            return
        with patience(tell):
            engine_binary()
        self._engine.start(self._options)

    def _start_control(self, wanted: int, tell: Tell) -> str:
        if self._control.running:
            url = self._state().get("url")
            if url:
                return str(url)
            self._control.stop()
        port = _free_port(wanted)
        if port != wanted:
            tell(f"Port {wanted} is taken: PodWarden takes {port}.")
        url = f"http://127.0.0.1:{port}"
        process = self._control.start(
            [
                *(sys.executable, "-m", "podwarden.cli", "up"),
                *("--data", str(self._folder / "control")),
                *("--host", "127.0.0.1", "--port", str(port)),
                *("--lock", str(self._control.lock)),
            ],
            self._environment(),
        )
        self._made.append(process)
        self._write_state({"url": url})
        wait_for(self._control, process, "PodWarden is running at", START)
        return url

    def _start_fleet(self, nodes: Path | None) -> None:
        if self._fleet.running:
            if nodes is None:
                return
            self._fleet.stop()
        chosen = [str(nodes.absolute())] if nodes else []
        process = self._fleet.start(
            [
                *(sys.executable, "-m", "podwarden.cli.demo_fleet"),
                *(str(self._fleet.lock), str(self._engine.kubeconfig), *chosen),
            ],
            self._environment(),
        )
        self._made.append(process)
        wait_for(self._fleet, process, "The nodes are there.", START)

    def _furnish(self, url: str, engine: EngineStatus) -> None:
        """A token for the command line, the cluster, and something to look at."""
        session = self._session(url)
        with Api(Target(url, session["token"])) as api:
            self._adopt(api, engine)
            if not self._bare:
                self._log_in(api, url)
                self._deploy_first(api)
            api.delete("session")

    def _session(self, url: str) -> dict[str, Any]:
        with Api(Target(url, "")) as api:
            try:
                found: dict[str, Any] = api.post(
                    "session", body={"name": USER, "password": self.password()}
                )
            except Failure as failure:
                if (failure.details or {}).get("status") != UNAUTHORIZED:
                    raise
                raise Failure(
                    f"PodWarden is running at {url}, but the password of {USER} is no longer the one in "
                    f"{self._password_file}: write the new one there, then run `podwarden demo` again."
                ) from failure
        return found

    def _log_in(self, api: Api, url: str) -> None:
        for token in api.get("tokens"):
            if token["label"] == LABEL:
                api.delete("tokens", token["id"])
        made = api.post("tokens", body={"label": LABEL})
        credentials.remember(url, USER, made["token"])

    def _adopt(self, api: Api, engine: EngineStatus) -> None:
        """The engine may have come back on another port: then the cluster is taken over anew."""
        try:
            known = api.get("clusters", CLUSTER)
        except Gone:
            known = None
        if known is not None and known["server"].rstrip("/") != engine.server.rstrip("/"):
            api.delete("clusters", CLUSTER)
            known = None
        if known is None:
            text = self._engine.kubeconfig.read_text(encoding="utf-8")
            api.post("clusters", body={"name": CLUSTER, "kubeconfig": text, "simulated": True})

    def _deploy_first(self, api: Api) -> None:
        """Only into an empty demo; with nodes of one's own it may be that nothing fits."""
        if api.get("workloads", limit=1)["items"]:
            return
        _until(lambda: all(n["ready"] for n in api.get("nodes") or [{"ready": False}]))
        made = []
        for order in FIRST:
            with contextlib.suppress(Failure):
                made.append(api.post("workloads", body=order)["workload"]["id"])
        _until(lambda: all(api.get("workloads", w)["state"] == "running" for w in made))

    # ---- what is kept

    def _answer(self, url: str, engine: EngineStatus, *, already: bool) -> Running:
        version = engine.versions.get("kubernetes", "").removeprefix("v")
        return Running(url, version, USER, str(self._password_file), already)

    @property
    def kubeconfig(self) -> Path:
        return self._engine.kubeconfig

    def password(self) -> str:
        return self._password_file.read_text(encoding="utf-8").strip()

    @property
    def _password_file(self) -> Path:
        return self._folder / "password"

    def _environment(self) -> dict[str, str]:
        """None of the caller's PodWarden settings: the demo is its own."""
        with contextlib.suppress(FileExistsError):
            handle = os.open(self._password_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                out.write(secrets.token_urlsafe(12) + "\n")
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PODWARDEN_")}
        return {**kept, "PODWARDEN_ADMIN_PASSWORD_FILE": str(self._password_file)}

    def _state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self._folder / "demo.json").read_text(encoding="utf-8"))
        return found

    def _write_state(self, state: dict[str, Any]) -> None:
        fresh = self._folder / "demo.json.new"
        fresh.write_text(json.dumps(state), encoding="utf-8")
        fresh.replace(self._folder / "demo.json")


def _checked(nodes: Path | None) -> None:
    """A faulty node file stops the start before anything runs."""
    try:
        nodes_of(nodes)
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid.of(
            "--nodes", nodes, "a readable node file (YAML, or CSV of the openb trace)"
        ) from error


def _free_port(wanted: int) -> int:
    for port in range(wanted, min(wanted + PORTS, 65536)):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise SetupFailed(
        f"Ports {wanted} to {wanted + PORTS - 1} are all taken: choose another with --port."
    )


def _until(done: Callable[[], bool], seconds: float = 20.0) -> None:
    """Or until the time is over: what comes later is shown when it comes."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if done():
                return
        except Failure as failure:
            if failure.code != NOT_REACHABLE:
                raise
        time.sleep(LOOK)
