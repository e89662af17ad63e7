"""Light clients with ready-made bodies: one of the Kubernetes API, one of PodWarden's. They never poll under load."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from bench.control_ground import PASSWORD, Plant, until
from podwarden.kube import kinds
from podwarden.kube.connect import read_kubeconfig, tls_context
from podwarden.kube.labels import NAMESPACE

CONNECTIONS = 48
IDLE = 3.0  # seconds
Json = dict[str, Any]
T = TypeVar("T")


class Wire:
    """A connection a thread. Any answer that is not 2xx raises."""

    def __init__(
        self, url: str, headers: dict[str, str] | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self._url = urlsplit(url)
        self._tls = tls
        self._headers = {
            "User-Agent": "bench",
            "Content-Type": "application/json",
            **(headers or {}),
        }
        self._local = threading.local()

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> bytes:
        connection = self._connection()
        connection.request(method, path, body, {**self._headers, **headers})
        answer = connection.getresponse()
        content: bytes = answer.read()
        if not 200 <= answer.status < 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {content[:500]!r}")
        return content

    def _connection(self) -> http.client.HTTPConnection:
        """One that was idle so long that the server may have left it is not used again."""
        now = time.monotonic()
        used, connection = getattr(self._local, "kept", (0.0, None))
        if connection is None or now - used > IDLE:
            if connection is not None:
                connection.close()
            connection = self._connect()
        self._local.kept = (now, connection)
        return connection

    def _connect(self) -> http.client.HTTPConnection:
        where = (self._url.hostname or "", self._url.port)
        if self._tls is None:
            return http.client.HTTPConnection(*where, timeout=60)
        return http.client.HTTPSConnection(*where, timeout=60, context=self._tls)


class Kubernetes:
    """A plain client: what it is given, it creates."""

    def __init__(self, kubeconfig: Path) -> None:
        access = read_kubeconfig(kubeconfig.read_text())
        self._wire = Wire(access.server, tls=tls_context(access))

    def create(self, path: str, body: bytes) -> None:
        self._wire.ask("POST", path, body)

    def names(self, kind: kinds.Kind, namespace: str = "") -> list[str]:
        found = json.loads(self._wire.ask("GET", kind.path(namespace)))
        return [item["metadata"]["name"] for item in found["items"]]

    def delete(self, kind: kinds.Kind, name: str) -> None:
        body = json.dumps({"propagationPolicy": "Background"}).encode()
        self._wire.ask("DELETE", kind.path(NAMESPACE, name), body)

    def cordon(self, node: str, *, on: bool) -> None:
        body = json.dumps({"spec": {"unschedulable": on or None}}).encode()
        merge = {"Content-Type": "application/merge-patch+json"}
        self._wire.ask("PATCH", kinds.NODE.path(name=node), body, **merge)

    def warm_up(self, bodies: list[list[tuple[str, bytes]]]) -> None:
        """Some jobs that come and go again: caches are filled, connections open."""
        side_by_side([lambda parts=parts: create_all(self, parts) for parts in bodies])
        until(lambda: len(self.names(kinds.CLAIM, NAMESPACE)) >= len(bodies), "warm-up", 30, 0.3)
        for kind in (kinds.JOB, kinds.DEPLOYMENT, kinds.CLAIM_TEMPLATE):
            for name in self.names(kind, NAMESPACE):
                self.delete(kind, name)
        until(
            lambda: not (self.names(kinds.POD, NAMESPACE) or self.names(kinds.CLAIM, NAMESPACE)),
            "the warm-up is gone",
            60,
            0.3,
        )


class Desk:
    """PodWarden's API as its administrator."""

    def __init__(self, plant: Plant) -> None:
        url = f"http://127.0.0.1:{plant.warden.port}"
        login = json.dumps({"name": "admin", "password": PASSWORD}).encode()
        session = json.loads(Wire(url).ask("POST", "/api/v1/session", login))
        self._wire = Wire(url, {"Authorization": f"Bearer {session['token']}"})

    def get(self, path: str) -> Any:
        return json.loads(self._wire.ask("GET", f"/api/v1/{path}"))

    def post(self, path: str, body: bytes) -> None:
        self._wire.ask("POST", f"/api/v1/{path}", body)

    def deploy(self, body: bytes) -> None:
        self.post("workloads", body)

    def adopt(self, plant: Plant, nodes: int) -> None:
        text = plant.engine.kubeconfig.read_text()
        body = {"name": "bench", "kubeconfig": text, "simulated": True}
        self.post("clusters", json.dumps(body).encode())
        until(lambda: self._leads(nodes), "PodWarden sees all nodes", 60, 0.3)

    def _leads(self, nodes: int) -> bool:
        return sum(node["ready"] for node in self.get("nodes")) == nodes

    def warm_up(self, bodies: list[bytes]) -> None:
        side_by_side([lambda body=body: self.deploy(body) for body in bodies])
        until(
            lambda: all(w["state"] not in {"queued", "starting"} for w in self._some()),
            "the warm-up runs",
            60,
            0.3,
        )
        for workload in self._some():
            self._wire.ask("DELETE", f"/api/v1/workloads/{workload['id']}")
        until(lambda: not self._some(), "the warm-up is gone", 60, 0.3)

    def _some(self) -> list[Json]:
        found: list[Json] = self.get("workloads?limit=100")["items"]
        return found


def create_all(client: Kubernetes, parts: Iterable[tuple[str, bytes]]) -> None:
    for path, body in parts:
        client.create(path, body)


def side_by_side(calls: list[Callable[[], T]], connections: int = CONNECTIONS) -> list[T]:
    """In order, `connections` at once."""
    with ThreadPoolExecutor(min(connections, len(calls))) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def at_pace(calls: list[Callable[[], T]], every: float) -> list[T]:
    """One each `every` seconds, whether or not the one before was answered."""
    begun = time.monotonic()
    with ThreadPoolExecutor(16) as pool:
        futures = []
        for place, call in enumerate(calls):
            time.sleep(max(0.0, begun + place * every - time.monotonic()))
            futures.append(pool.submit(call))
        return [future.result() for future in futures]
