"""What `podwarden up` runs: the control plane and the web server in one process and one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import uvicorn

from podwarden import bootstrap
from podwarden.cli.locks import hold
from podwarden.errors import SetupFailed
from podwarden.settings import Settings
from podwarden.web.app import create_app
from podwarden.web.settings import WebSettings
from podwarden.web.streams import Streams

GRACE = 5  # seconds that open answers get at a stop


def serve(settings: Settings, lock: Path | None = None) -> None:
    """Until SIGTERM or SIGINT. SetupFailed when it cannot start. lock: held for as long as it runs."""
    logging.basicConfig(
        level=settings.log_level.upper(),
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)  # a line for each request says nothing
    with contextlib.ExitStack() as stack:
        if lock is not None:
            stack.enter_context(hold(lock))
        listener = stack.enter_context(contextlib.closing(_listen(settings.host, settings.port)))
        asyncio.run(_serve(settings, listener))


class Server(uvicorn.Server):
    """Signals are ours: a stop ends the open streams first, and the loops stop cleanly afterwards."""

    def __init__(self, config: uvicorn.Config, streams: Streams) -> None:
        super().__init__(config)
        self._streams = streams

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    def stop(self) -> None:
        """Twice: at once."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._streams.close()


async def _serve(settings: Settings, listener: socket.socket) -> None:
    app = bootstrap.build(settings)
    try:
        await app.start()
        web = create_app(app.controller, WebSettings(hosts=frozenset(settings.hosts)))
        config = uvicorn.Config(
            web,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # who asks is who connects: the login's throttle counts on it
            timeout_graceful_shutdown=GRACE,
        )
        host, port = listener.getsockname()[:2]
        _keep_password(settings.data / "first-password", app.first_password)
        print(f"PodWarden is running at http://{_shown(host)}:{port}", flush=True)
        await Server(config, web.state.context.streams).serve(sockets=[listener])
    finally:
        await app.stop()


def _keep_password(file: Path, password: str) -> None:
    """A password that was made up is left in a file of its own, never in a log."""
    if not password:
        return
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(password + "\n")
    print(
        f"The first user is {bootstrap.FIRST_USER}; the password is in {file}. "
        "Log in, then change it: podwarden user passwd"
    )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(256)
    except OSError as error:
        listener.close()
        raise SetupFailed(
            f"PodWarden cannot listen on {host}:{port}: {error.strerror}. "
            "Choose another with --port, or stop what uses it."
        ) from error
    return listener


def _shown(host: str) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104 - only shown
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
