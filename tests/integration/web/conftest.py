from __future__ import annotations

import sys
from pathlib import Path

import httpx
import pytest
from controller_double import ControllerDouble
from served import Served

sys.path.append(str(Path(__file__).parents[1] / "control"))  # the cluster in memory lies there

from podwarden.web.app import create_app
from podwarden.web.settings import WebSettings


@pytest.fixture
def control() -> ControllerDouble:
    return ControllerDouble()


@pytest.fixture
def ticks() -> list[float]:
    """The throttle's clock: ticks[0] is now."""
    return [1000.0]


@pytest.fixture
def web(control, ticks):
    return create_app(control, WebSettings(clock=lambda: ticks[0]))


@pytest.fixture
def connect(web):
    """Makes clients: connect() without a token, connect(secret) with one."""

    def make(secret: str = "", **headers: str) -> httpx.AsyncClient:
        if secret:
            headers["Authorization"] = f"Bearer {secret}"
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(app=web, raise_app_exceptions=False),
            base_url="http://127.0.0.1:8080",
            headers=headers,
        )

    return make


@pytest.fixture
async def admin(connect, control):
    async with connect(control.token("admin")) as client:
        yield client


@pytest.fixture
def served(control):
    with Served(control, WebSettings(heartbeat_s=0.2, most_streams_each=3)) as server:
        yield server
