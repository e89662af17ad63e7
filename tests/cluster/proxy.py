"""A network between PodWarden and the API server that can be made to fail: a TLS proxy that understands the requests.

PodWarden is given the proxy's kubeconfig (its own authority, a token instead of a client certificate). Faults are asked in
order before a request is passed on; the first that takes it decides. One thread a connection.
"""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from rawapi import RawApi

ACCOUNT = "podwarden-test"
LONGEST_HOLD = 120.0  # seconds
_HOP = {
    "connection",
    "keep-alive",
    "transfer-encoding",
    "host",
    "content-length",
    "accept-encoding",
}


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    watch: bool

    @property
    def writes(self) -> bool:
        return self.method != "GET"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Fault:
    """What may happen to a request: `act` answers it, holds it, or breaks it off."""

    def __init__(self, where: Callable[[Asked], bool], times: int = 10**9) -> None:
        self.where = where
        self.hits = 0
        self._left = times
        self._lock = threading.Lock()

    def takes(self, asked: Asked) -> bool:
        with self._lock:
            if self._left <= 0 or not self.where(asked):
                return False
            self._left -= 1
            self.hits += 1
            return True

    def act(self) -> tuple[int, dict[str, str]] | None:
        """The answer, None to pass it on; raises ConnectionError to break it off."""
        raise NotImplementedError


class Says(Fault):
    def __init__(
        self, code: int, where: Callable[[Asked], bool], times: int = 10**9, **headers: str
    ) -> None:
        super().__init__(where, times)
        self._code, self._headers = code, headers

    def act(self) -> tuple[int, dict[str, str]] | None:
        return self._code, self._headers


class Breaks(Fault):
    def act(self) -> tuple[int, dict[str, str]] | None:
        raise ConnectionError("broken off by the test")


class Holds(Fault):
    """Keeps requests until `release`; then they go on to the server. caught: the first has arrived."""

    def __init__(self, where: Callable[[Asked], bool], times: int = 1) -> None:
        super().__init__(where, times)
        self.caught = threading.Event()
        self.answers: list[int] = []
        self._open = threading.Event()

    def release(self) -> None:
        self._open.set()

    def act(self) -> tuple[int, dict[str, str]] | None:
        self.caught.set()
        self._open.wait(LONGEST_HOLD)
        return None


class Proxy:
    """kubeconfig: the text to give to PodWarden. faults: change it at any time."""

    def __init__(self, admin: Path, folder: Path) -> None:
        self.faults: list[Fault] = []
        config = yaml.safe_load(admin.read_text())
        cluster = config["clusters"][0]["cluster"]
        self._upstream = urlsplit(cluster["server"])
        self._trust = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
        )
        raw = RawApi(admin)
        try:
            token = _token(raw)
        finally:
            raw.close()
        certificate = _certificate(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "proxy.crt", folder / "proxy.key")
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.proxy = self
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        address = f"https://127.0.0.1:{self._server.server_address[1]}"
        self.kubeconfig = _kubeconfig(address, certificate, token)
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="proxy", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        for fault in self.faults:
            if isinstance(fault, Holds):
                fault.release()
        self._server.shutdown()
        self._thread.join(10)
        self.cut()
        self._server.server_close()  # waits for the threads of all connections

    def cut(self) -> None:
        """Breaks every connection, watches above all."""
        with self._lock:
            for one in self._open:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def known(self, one: socket.socket) -> Iterator[None]:
        with self._lock:
            self._open.add(one)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(one)

    def fault(self, asked: Asked) -> Fault | None:
        return next((fault for fault in list(self.faults) if fault.takes(asked)), None)

    @contextmanager
    def upstream(self) -> Iterator[http.client.HTTPSConnection]:
        host, port = self._upstream.hostname or "", self._upstream.port
        link = http.client.HTTPSConnection(host, port, context=self._trust, timeout=600)
        try:
            link.connect()
            with self.known(link.sock):
                yield link
        finally:
            link.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 128
    proxy: Proxy

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what these tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def handle(self) -> None:
        with self.server.proxy.known(self.connection), suppress(OSError, ssl.SSLError):
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name it has above
        """Quiet."""

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        fault = self.server.proxy.fault(Asked(self.command, url.path, "watch=true" in url.query))
        try:
            answer = fault.act() if fault is not None else None
        except ConnectionError:
            self._break()
            return
        if answer is not None:
            self._answer(*answer)
            return
        try:
            self._forward(body, fault)
        except (OSError, http.client.HTTPException):  # the server, or the client, went away
            self._break()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass  # noqa: N815 - names of the standard library

    def _forward(self, body: bytes, fault: Fault | None) -> None:
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP}
        with self.server.proxy.upstream() as link:
            link.request(self.command, self.path, body or None, headers)
            answer = link.getresponse()
            if isinstance(fault, Holds):
                fault.answers.append(answer.status)
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while chunk := answer.read1(1 << 16):
                self._chunk(chunk)
            self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _answer(self, code: int, headers: dict[str, str]) -> None:
        status = {"kind": "Status", "code": code, "message": "injected", "reason": "Injected"}
        body = json.dumps(status).encode()
        self.send_response_only(code)
        about = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
        for name, value in about.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _break(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _token(raw: RawApi) -> str:
    """Of an administrator of the cluster, outside kube-system: controllers live there."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    raw.create(accounts, {"metadata": {"name": ACCOUNT}})
    raw.create(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {
            "metadata": {"name": ACCOUNT},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin",
            },
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": "default"}],
        },
    )  # fmt: skip
    asked = {"spec": {"expirationSeconds": 7200}}
    return raw.create(f"{accounts}/{ACCOUNT}/token", asked)["status"]["token"]


def _certificate(folder: Path) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "proxy")])
    today = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    (folder / "proxy.crt").write_bytes(pem)
    (folder / "proxy.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return pem


def _kubeconfig(server: str, ca: bytes, token: str) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "proxy",
            "clusters": [
                {
                    "name": "proxy",
                    "cluster": {
                        "server": server,
                        "certificate-authority-data": base64.b64encode(ca).decode(),
                    },
                }
            ],
            "users": [{"name": "proxy", "user": {"token": token}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
        }
    )
