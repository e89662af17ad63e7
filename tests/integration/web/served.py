"""A real uvicorn on loopback around a controller, in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Self

import uvicorn

from podwarden.web.app import create_app
from podwarden.web.settings import WebSettings


class Served:
    def __init__(self, controller: Any, settings: WebSettings | None = None) -> None:
        self.controller = controller
        self.app = create_app(controller, settings)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        config = uvicorn.Config(
            self.app,
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            timeout_graceful_shutdown=5,
        )
        self._server = uvicorn.Server(config)
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        self.loop.run_until_complete(self._server.serve(sockets=[self._listener]))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        if not self._thread.is_alive():
            return
        self.loop.call_soon_threadsafe(self.app.state.context.streams.close)
        self._server.should_exit = True
        self._thread.join(60)
        assert not self._thread.is_alive(), "the server did not stop"
        self._listener.close()

    def do(self, work: Callable[[], Any]) -> Any:
        """Runs `work` in the server's loop, as the loops of the control plane would."""

        async def call() -> Any:
            done = work()
            return await done if isinstance(done, Awaitable) else done

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result(60)
