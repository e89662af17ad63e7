"""A picture of each page, light, dark and on a phone, from a control plane full of work: `make screenshots`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

sys.path.append(str(Path(__file__).parents[1] / "integration" / "web"))
sys.path.append(str(Path(__file__).parent))

from conftest import FLAGS
from filled import Filled
from served import Served

PAGES = {
    "login": "/login",
    "gpus": "/",
    "queue": "/queue",
    "workloads": "/workloads?show=all",
    "workload": "/workloads/id-vllm",
    "workload-waiting": "/workloads/id-jupyter",
    "workload-failed": "/workloads/id-whisper",
    "array": "/workloads/id-blender-render",
    "log": "/workloads/id-vllm/logs",
    "stop": "/workloads/id-vllm/stop",
    "update": "/workloads/id-vllm/update",
    "rollback": "/workloads/id-vllm/rollback/1",
    "catalogue": "/catalogue",
    "deploy": "/deploy/ollama?sharing=shared&vram=3GB&name=chat",
    "deploy-wrong": "/deploy/ollama?name=A%20b&p.context=many",
    "deploy-waits": "/deploy/vllm?vram=24GB&name=second",
    "file": "/deploy-file",
    "account": "/account",
    "clusters": "/clusters",
    "storage": "/storage",
    "start": "/start",
    "patterns": "/patterns",
}
VIEWS = {
    "light": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
}


def main(folder: Path, wanted: set[str]) -> None:
    """folder gets PAGE-VIEW.png. wanted: names of pages; empty means all."""
    path = shutil.which("chromium")
    if path is None:
        sys.exit("Chromium is not installed: apt-get install chromium")
    folder.mkdir(parents=True, exist_ok=True)
    with Served(Filled()) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        for view in VIEWS:
            _shoot(browser, server.url, folder, view, wanted)
        browser.close()
    print(f"{len(list(folder.glob('*.png')))} pictures are in {folder}")  # noqa: T201


def _shoot(browser: Browser, url: str, folder: Path, view: str, wanted: set[str]) -> None:
    context = browser.new_context(**VIEWS[view], locale="en-GB", reduced_motion="reduce")
    page = context.new_page()
    for name, address in PAGES.items():
        if name == "gpus":
            page.get_by_label("Name").fill("admin")
            page.get_by_label("Password").fill("right horse")
            page.get_by_role("button", name="Log in").click()
            page.get_by_role("heading", name="GPUs", exact=True).wait_for()
        if wanted and name not in wanted and name != "login":
            continue
        page.goto(url + address)
        page.get_by_role("heading", level=1).wait_for()
        if page.locator("[data-live]").count():
            page.get_by_text("Live", exact=True).wait_for()
        if page.locator("[data-log]").count():
            page.get_by_text("following").wait_for()
        page.screenshot(path=folder / f"{name}-{view}.png", full_page=True)
    context.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), set(sys.argv[2:]))
