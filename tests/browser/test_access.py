"""axe on full pages: WCAG 2.0 to 2.2, A and AA, and best practice; light, dark, phone."""

from __future__ import annotations

import pytest

PAGES = (
    "/login", "/", "/queue", "/workloads?show=all", "/workloads/id-vllm", "/workloads/id-jupyter",
    "/workloads/id-blender-render", "/workloads/id-vllm/logs", "/workloads/id-vllm/delete",
    "/workloads/id-vllm/update", "/workloads/id-vllm/rollback/1", "/catalogue",
    "/deploy/ollama?name=A%20b&p.context=many", "/deploy/vllm?vram=24GB", "/deploy-file", "/account",
    "/clusters", "/storage", "/start", "/patterns",
)  # fmt: skip
VIEWS = {
    "light": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 780}, "color_scheme": "light"},
}
RUN = """() => axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})
  .then(r => r.violations.map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.target.join(' ') + ' ' + n.failureSummary.split('\\n')[1]).join(' | ')))"""


@pytest.mark.parametrize("view", VIEWS)
def test_no_violation_and_nothing_scrolls_sideways(visit, axe, view):
    page = visit(**VIEWS[view], reduced_motion="reduce").page
    page.context.set_default_timeout(60_000)
    found = {}
    for path in PAGES:
        page.goto(page.url.split("/", 3)[0] + "//" + page.url.split("/")[2] + path)
        page.get_by_role("heading", level=1).wait_for()
        page.evaluate(axe)
        violations = page.evaluate(RUN)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            violations.append("scrolls sideways")
        if violations:
            found[path] = violations
    assert found == {}
