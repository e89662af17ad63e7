"""A plant: the real engine, a simulated fleet, and `podwarden up` as processes of their own that tests may kill.

Processes are only ever reached as people reach them: over HTTP, by signals, by their folder. What the cluster really
carries is read beside them, through `RawApi`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from deadline import eventually
from proxy import Proxy, free_port
from rawapi import Json
from running import NODE_GRACE, RunningEngine

from podwarden.kube.client import Client
from podwarden.kube.connect import read_kubeconfig
from podwarden.simulator.engine import EngineOptions
from podwarden.simulator.fleet import Fleet
from podwarden.simulator.fleet_file import DEFAULT, read_node_file
from podwarden.simulator.fleet_volumes import VolumeBinder

PODWARDEN = Path(sys.executable).with_name("podwarden")
PASSWORD = "correct horse battery staple"
CLUSTER = "home"
NAMESPACE = "podwarden"
LEASE_SECONDS = 3


class SimulatedFleet:
    """Keeps simulated nodes and their volumes in a thread of its own, so that tests stay plain code."""

    def __init__(self, kubeconfig: Path, nodes: str) -> None:
        self._kubeconfig = kubeconfig
        self._nodes = read_node_file(nodes)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fleet", daemon=True)
        self._thread.start()
        self._client, self._fleet, self._binder = self._do(self._open())

    @property
    def names(self) -> list[str]:
        return [node.name for node in self._nodes]

    def switch_off(self, name: str) -> None:
        self._do(self._fleet.switch_off(name))

    def switch_on(self, name: str) -> None:
        self._do(self._fleet.switch_on(name))

    def close(self) -> None:
        self._do(self._shut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _open(self) -> tuple[Client, Fleet, asyncio.Task[None]]:
        client = Client(read_kubeconfig(self._kubeconfig.read_text()))
        fleet = Fleet(client, self._nodes)
        await fleet.start()
        return client, fleet, asyncio.create_task(VolumeBinder(client).run())

    async def _shut(self) -> None:
        self._binder.cancel()
        with suppress(asyncio.CancelledError):
            await self._binder
        await self._client.close()


@dataclass
class Warden:
    """One `podwarden up`: the folder it keeps, the port it listens on, the process while it runs."""

    data: Path
    port: int
    database: str = ""
    environ: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.data.parent / f"{self.data.name}.log"

    def start(self, *, wait: bool = True) -> None:
        env = {
            **os.environ,
            "PODWARDEN_DATA": str(self.data),
            "PODWARDEN_ADMIN_PASSWORD": PASSWORD,
            "PODWARDEN_LEASE_SECONDS": str(LEASE_SECONDS),
            **({"PODWARDEN_DATABASE_URL": self.database} if self.database else {}),
            **self.environ,
        }
        self.starts += 1
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [PODWARDEN, "up", "--port", str(self.port)],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if wait:
            eventually(self.answers, f"{self.url} answers", 30)

    def answers(self) -> bool:
        assert self.process is not None
        ended = self.process.poll()
        assert ended is None, f"podwarden up ended with {ended}: {self.tail()}"
        try:
            return httpx.get(f"{self.url}/healthz", timeout=2, trust_env=False).is_success
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        self._send(signal.SIGKILL, 10)

    def stop(self) -> None:
        """As a service manager does; it must end by itself."""
        if self.process is not None and self.process.poll() is None:
            self._send(signal.SIGTERM, 20)

    def pause(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGCONT)

    def tail(self, lines: int = 30) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _send(self, what: signal.Signals, seconds: float) -> None:
        assert self.process is not None
        self.process.send_signal(what)
        self.process.wait(seconds)
        self.process = None


class Desk:
    """PodWarden's API as its administrator; answers other than 2xx raise, unless asked for as they are."""

    def __init__(self, warden: Warden) -> None:
        self.warden = warden
        self.token = ""
        self.http = httpx.Client(timeout=30, trust_env=False)

    def login(self) -> None:
        answer = self.http.post(
            f"{self.warden.url}/api/v1/session", json={"name": "admin", "password": PASSWORD}
        )
        assert answer.status_code == 201, answer.text
        self.token = answer.json()["token"]

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Whatever it answers. Raises httpx.TransportError while the process is away."""
        headers = {"Authorization": f"Bearer {self.token}", **more.pop("headers", {})}
        return self.http.request(
            method, f"{self.warden.url}/api/v1/{path}", headers=headers, **more
        )

    def get(self, path: str, **params: Any) -> Any:
        return self._good(self.ask("GET", path, params=params))

    def post(self, path: str, body: Json | None = None, **headers: str) -> Any:
        return self._good(self.ask("POST", path, json=body, headers=headers))

    def put(self, path: str, body: Json) -> Any:
        return self._good(self.ask("PUT", path, json=body))

    def delete(self, path: str, **params: Any) -> Any:
        answer = self.ask("DELETE", path, params=params)
        assert answer.is_success, f"DELETE {path}: {answer.status_code} {answer.text}"
        return answer

    def workloads(self) -> list[Json]:
        """All of them, over every page."""
        found: list[Json] = []
        after = ""
        while True:
            page = self.get("workloads", limit=200, after=after)
            found += page["items"]
            if page["next"] is None:
                return found
            after = page["next"]

    def workload(self, name: str) -> Json | None:
        answer = self.ask("GET", f"workloads/{name}")
        return None if answer.status_code == 404 else self._good(answer)

    def state(self, name: str) -> str:
        found = self.workload(name)
        return found["state"] if found else "gone"

    def deploy(self, file: str, **more: Any) -> Json:
        return self.post("workloads", {"file": file, **more})["workload"]

    def events(self, name: str) -> list[Json]:
        return self.get(f"workloads/{name}/events", limit=500)["items"]

    def close(self) -> None:
        self.http.close()

    @staticmethod
    def _good(answer: httpx.Response) -> Any:
        request = answer.request
        assert answer.is_success, (
            f"{request.method} {request.url.path}: {answer.status_code} {answer.text[:600]}"
        )
        return answer.json()


class Plant:
    """nodes: the text of a node file. Everything lies below `folder`; close() ends every process."""

    def __init__(self, folder: Path, nodes: str = "", options: EngineOptions | None = None) -> None:
        self.folder = folder
        self.engine = RunningEngine.start(
            folder / "e", options or EngineOptions(node_grace=NODE_GRACE)
        )
        self.wardens: list[Warden] = []
        self.desks: list[Desk] = []
        self.fleet: SimulatedFleet | None = None
        self._proxy: Proxy | None = None
        try:
            self.fleet = SimulatedFleet(self.engine.kubeconfig, nodes or DEFAULT.read_text())
            eventually(self._nodes_ready, "all simulated nodes are ready", 30)
        except BaseException:
            self.close()
            raise

    @property
    def raw(self) -> Any:
        return self.engine.api

    @property
    def proxy(self) -> Proxy:
        """A network before the API server that can fail; made at first use. Give its kubeconfig to PodWarden."""
        if self._proxy is None:
            self._proxy = Proxy(self.engine.kubeconfig, self.folder)
        return self._proxy

    def warden(self, name: str = "w", *, database: str = "", **environ: str) -> Warden:
        """A PodWarden of its own on a folder of its own; not started yet."""
        made = Warden(self.folder / name, free_port(), database, environ)
        self.wardens.append(made)
        return made

    def desk(self, warden: Warden) -> Desk:
        """Logged in."""
        desk = Desk(warden)
        self.desks.append(desk)
        desk.login()
        return desk

    def open(self, name: str = "w", *, database: str = "", kubeconfig: str = "") -> Desk:
        """A running PodWarden that leads this cluster and has read all of it."""
        warden = self.warden(name, database=database)
        warden.start()
        desk = self.desk(warden)
        self.adopt(desk, kubeconfig)
        return desk

    def adopt(self, desk: Desk, kubeconfig: str = "") -> Json:
        text = kubeconfig or self.engine.kubeconfig.read_text()
        return desk.post("clusters", {"name": CLUSTER, "kubeconfig": text, "simulated": True})

    def objects(self) -> dict[str, list[Json]]:
        """What the oracle judges: the cluster's own lists, one after the other."""
        return {
            "nodes": self.raw.items("/api/v1/nodes"),
            "pods": self.raw.items("/api/v1/pods"),
            "resourceslices": self.raw.items("/apis/resource.k8s.io/v1/resourceslices"),
            "resourceclaims": self.raw.items("/apis/resource.k8s.io/v1/resourceclaims"),
        }

    def pods(self, name: str = "") -> list[Json]:
        chosen = {"labelSelector": f"podwarden.io/name={name}"} if name else {}
        return self.raw.items(f"/api/v1/namespaces/{NAMESPACE}/pods", **chosen)

    def leftovers(self) -> list[str]:
        """Objects that carry the label of some workload, in PodWarden's namespace."""
        found = []
        for path in OWNED:
            items = self.raw.items(path, labelSelector="podwarden.io/workload")
            kind = path.rsplit("/", 1)[1]
            found += [f"{kind}/{item['metadata']['name']}" for item in items]
        return found

    def close(self) -> None:
        for desk in self.desks:
            desk.close()
        for warden in self.wardens:
            if warden.process is not None and warden.process.poll() is None:
                warden.resume()
                warden.kill()
        if self._proxy is not None:
            self._proxy.close()
        if self.fleet is not None:
            self.fleet.close()
        self.engine.stop()

    def _nodes_ready(self) -> bool:
        assert self.fleet is not None
        return all(self.engine.node_condition(name) == "True" for name in self.fleet.names)


_IN = f"namespaces/{NAMESPACE}"
OWNED = [
    *(f"/api/v1/{_IN}/{kind}" for kind in ("pods", "services", "configmaps", "secrets")),
    f"/api/v1/{_IN}/persistentvolumeclaims",
    f"/apis/apps/v1/{_IN}/deployments",
    f"/apis/apps/v1/{_IN}/replicasets",
    f"/apis/batch/v1/{_IN}/jobs",
    f"/apis/resource.k8s.io/v1/{_IN}/resourceclaims",
    f"/apis/resource.k8s.io/v1/{_IN}/resourceclaimtemplates",
]


@contextmanager
def plant(folder: Path, nodes: str = "", options: EngineOptions | None = None) -> Iterator[Plant]:
    made = Plant(folder, nodes, options)
    try:
        yield made
    finally:
        made.close()


def service(name: str, gpu: str = "", more: str = "", cpu: str = "500m") -> str:
    """A workload file of a service; gpu: the inside of its braces."""
    asks = f"gpu: {{{gpu}}}\n" if gpu else ""
    return (
        f"name: {name}\nkind: service\nimage: example.org/app:1\n{asks}"
        f"resources: {{cpu: {cpu}, memory: 256Mi}}\nshm: 64Mi\n{more}"
    )


def job(
    name: str,
    gpu: str = "",
    seconds: float = 2,
    rules: str = "retries: 0",
    more: str = "",
    *,
    fail: bool = False,
) -> str:
    """A workload file of a job whose tasks run `seconds` each."""
    asks = f"gpu: {{{gpu}}}\n" if gpu else ""
    fails = ', simulator.podwarden.io/fail: "true"' if fail else ""
    return (
        f"name: {name}\nkind: job\nimage: example.org/app:1\n{asks}"
        f"resources: {{cpu: 500m, memory: 256Mi}}\nshm: 64Mi\njob: {{{rules}}}\n"
        f'annotations: {{simulator.podwarden.io/run-seconds: "{seconds}"{fails}}}\n{more}'
    )


def now() -> float:
    return time.monotonic()
