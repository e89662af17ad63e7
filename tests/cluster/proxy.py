"""A network between PodWarden and the API server that can be made to fail: a TLS proxy that understands the requests.

PodWarden is given the proxy's kubeconfig (its own authority, a token instead of a client certificate). Rules are asked in
order before a request is passed on; the first that answers decides.
"""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx
import uvicorn
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from deadline import eventually
from rawapi import RawApi

ACCOUNT = "podwarden-test"
_HOP = {"connection", "keep-alive", "transfer-encoding", "host", "content-length"}


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
    """What may happen to a request. The default is nothing; `act` may answer, hold, or break it off."""

    def __init__(self, where: Callable[[Asked], bool], times: int = 10**9) -> None:
        self._where = where
        self._left = times
        self.hits = 0

    def takes(self, asked: Asked) -> bool:
        if self._left <= 0 or not self._where(asked):
            return False
        self._left -= 1
        self.hits += 1
        return True

    async def act(self) -> tuple[int, dict[str, str]] | None:
        """The answer, None to pass it on; raises ConnectionError to break it off."""
        return None


class Says(Fault):
    def __init__(
        self, code: int, where: Callable[[Asked], bool], times: int = 10**9, **headers: str
    ) -> None:
        super().__init__(where, times)
        self._code, self._headers = code, headers

    async def act(self) -> tuple[int, dict[str, str]] | None:
        return self._code, self._headers


class Breaks(Fault):
    async def act(self) -> tuple[int, dict[str, str]] | None:
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

    async def act(self) -> tuple[int, dict[str, str]] | None:
        self.caught.set()
        await asyncio.to_thread(self._open.wait, 120)
        return None


class Proxy:
    """kubeconfig: the text to give to PodWarden. faults: change it at any time."""

    def __init__(self, admin: Path, folder: Path) -> None:
        self.faults: list[Fault] = []
        config = yaml.safe_load(admin.read_text())
        cluster = config["clusters"][0]["cluster"]
        self._upstream: str = cluster["server"]
        self._trust = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
        )
        raw = RawApi(admin)
        try:
            token = _token(raw)
        finally:
            raw.close()
        certificate = _certificate(folder)
        port = free_port()
        self.kubeconfig = _kubeconfig(f"https://127.0.0.1:{port}", certificate, token)
        self._streams: set[asyncio.Task[None]] = set()
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._serve,
                port=port,
                ssl_certfile=folder / "proxy.crt",
                ssl_keyfile=folder / "proxy.key",
                interface="asgi3",
                lifespan="off",
                ws="none",
                log_level="critical",
                timeout_graceful_shutdown=1,
                timeout_keep_alive=60,
            )
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()
        eventually(lambda: self._server.started, "the proxy listens")

    def close(self) -> None:
        """After its clients have ended, so that every connection is closed by them."""
        for fault in self.faults:
            if isinstance(fault, Holds):
                fault.release()
        self._server.should_exit = True
        self._thread.join(20)

    def cut(self) -> None:
        """Breaks every open answer, watches above all."""
        assert self._loop is not None

        def cut() -> None:
            for task in list(self._streams):
                task.cancel()

        self._loop.call_soon_threadsafe(cut)

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            runner.run(self._main())

    async def _main(self) -> None:
        async with httpx.AsyncClient(
            base_url=self._upstream, verify=self._trust, timeout=None, trust_env=False,
            limits=httpx.Limits(max_connections=200),
        ) as client:  # fmt: skip
            self._client = client
            await self._server.serve()
            await asyncio.sleep(0.2)  # a few turns of the loop: connections close after their last word

    # --- one request -----------------------------------------------------------------------------

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        body = b""
        while True:
            part = await receive()
            body += part.get("body", b"")
            if not part.get("more_body"):
                break
        query = scope["query_string"].decode()
        asked = Asked(scope["method"], scope["path"], "watch=true" in query)
        fault = next((f for f in self.faults if f.takes(asked)), None)
        try:
            answer = await fault.act() if fault is not None else None
        except (
            ConnectionError
        ):  # a promise that is not kept: the connection ends in the middle of it
            await _begin(send, 200, {"content-length": "1000"})
            raise
        if answer is not None:
            await _answer(send, *answer)
            return
        work = asyncio.create_task(self._forward(scope, query, body, send, fault))
        gone = asyncio.create_task(_gone(receive))
        self._streams.add(work)
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if work.done() and not work.cancelled():
                work.result()
            elif not gone.done():
                raise ConnectionError("cut by the test")
        finally:
            self._streams.discard(work)
            for task in (work, gone):
                task.cancel()
                with suppress(asyncio.CancelledError, httpx.HTTPError):
                    await task

    async def _forward(
        self, scope: Any, query: str, body: bytes, send: Any, fault: Fault | None
    ) -> None:
        headers = [(k, v) for k, v in scope["headers"] if k.decode() not in _HOP]
        url = scope["raw_path"].decode() + (f"?{query}" if query else "")
        request = self._client.build_request(scope["method"], url, headers=headers, content=body)
        answer = await self._client.send(request, stream=True)
        try:
            if isinstance(fault, Holds):
                fault.answers.append(answer.status_code)
            kept = [(k, v) for k, v in answer.headers.raw if k.lower().decode() not in _HOP]
            await send(
                {"type": "http.response.start", "status": answer.status_code, "headers": kept}
            )
            async for chunk in answer.aiter_raw():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            await answer.aclose()


async def _gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _answer(send: Any, code: int, headers: dict[str, str]) -> None:
    body = json.dumps({"kind": "Status", "code": code, "message": "injected", "reason": "Injected"})
    await _begin(send, code, {"content-type": "application/json", **headers})
    await send({"type": "http.response.body", "body": body.encode()})


async def _begin(send: Any, code: int, headers: dict[str, str]) -> None:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": code, "headers": pairs})


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
