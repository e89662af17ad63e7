"""A real Chromium against a real server; the control plane behind it is in memory.

Left out where Chromium or axe is not installed, unless PODWARDEN_BROWSER=needed: then that is a failure.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "integration" / "web"))

from filled import Filled
from served import Served

from podwarden.web.settings import WebSettings

try:
    from playwright import sync_api
except ImportError:
    sync_api = None

HERE = Path(__file__).parent
AXE = HERE / "node_modules" / "axe-core" / "axe.min.js"
NEEDED = os.environ.get("PODWARDEN_BROWSER") == "needed"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def _or_leave_out(what: str) -> None:
    if NEEDED:
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def chromium():
    path = shutil.which("chromium")
    if path is None:
        _or_leave_out("Chromium is not installed (package chromium)")
    if sync_api is None:
        _or_leave_out("playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe() -> str:
    if not AXE.exists():
        _or_leave_out("axe-core is not installed (npm ci in tests/browser)")
    return AXE.read_text()


@pytest.fixture
def control() -> Filled:
    return Filled()


@pytest.fixture
def served(control):
    with Served(control, WebSettings(heartbeat_s=0.2)) as server:
        yield server


class Visitor:
    """A person at a browser. Whatever the browser complains of fails the test."""

    def __init__(self, browser, url: str, **options) -> None:
        self.context = browser.new_context(viewport={"width": 1440, "height": 900}, timezone_id="Europe/Berlin", locale="en-GB", reduced_motion="reduce") if not options else browser.new_context(**options)  # fmt: skip
        self.context.set_default_timeout(20_000)
        self.page = self.context.new_page()
        self.url = url
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss())
        )
        self.page.on("console", self._heard)
        self.page.on("request", self._asked)

    def _heard(self, message) -> None:
        if "Content Security Policy" in message.text or "Refused to" in message.text:
            self.complaints.append(message.text)

    def _asked(self, request) -> None:
        if not request.url.startswith((self.url, "data:")):
            self.complaints.append(f"asked another server: {request.url}")

    def go(self, path: str):
        self.page.goto(self.url + path)
        return self.page

    def log_in(self, name: str = "admin", password: str = "right horse"):
        page = self.go("/login")
        page.get_by_label("Name").fill(name)
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("heading", level=1).wait_for()
        return page


@pytest.fixture
def visit(chromium, served):
    """Makes visitors: visit() logs in as admin."""
    made: list[Visitor] = []

    def make(name: str = "admin", password: str = "right horse", **options) -> Visitor:
        visitor = Visitor(chromium, served.url, **options)
        made.append(visitor)
        visitor.log_in(name, password)
        return visitor

    yield make
    for visitor in made:
        visitor.context.close()
        assert visitor.complaints == []
