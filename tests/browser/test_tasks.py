"""What people do, from the login to the job done."""

from __future__ import annotations

from dataclasses import replace

import pytest

from podwarden.domain.placement import Verdict
from podwarden.domain.reason import Code, Reason
from podwarden.domain.workload import State

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import expect

SOON = 3000  # ms; a change is on the page within a second, the machine may be busy


def test_from_the_login_to_a_running_workload_its_log_and_its_stop(visit, served, control):
    page = visit().page
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Catalogue").click()
    page.get_by_role("searchbox", name="Search templates").fill("nginx")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Web server").click()
    page.get_by_label("Name").fill("front")
    expect(page.get_by_role("button", name="Deploy front")).to_be_enabled(timeout=SOON)
    expect(page.locator("#preview")).to_contain_text("Starts at once on n2")
    page.get_by_role("button", name="Deploy front").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("front")
    row = next(w for w in control.workloads.rows.values() if w.name == "front")
    served.do(lambda: control.workloads.run(row.id))
    expect(page.locator("#live")).to_contain_text("Runs on n2", timeout=SOON)
    expect(page.get_by_role("log")).to_contain_text("the client went away")
    page.get_by_role("searchbox", name="Search the log").fill("metrics")
    expect(page.get_by_text("6 of the last 24 lines")).to_be_visible()
    page.get_by_role("link", name="Stop", exact=True).click()
    expect(page.get_by_text("It ends on n2")).to_be_visible()
    page.get_by_role("button", name="Stop front").click()
    expect(page.locator("#live")).to_contain_text("stopping")


def test_the_queue_tells_why_and_keeps_what_is_open_when_it_changes(visit, served, control):
    page = visit().go("/queue")
    page.locator("tr", has_text="jupyter").get_by_text("Verdict for each GPU").click()
    note = page.get_by_text("is held by vllm, a service without an end").last
    expect(note).to_be_visible()

    def changes() -> None:
        verdict = control.workloads.verdicts["id-jupyter"]
        reason = replace(verdict.reason, code=Code.WAITS_BEHIND, text="Waits behind comfyui now.")
        control.workloads.verdicts["id-jupyter"] = Verdict("id-jupyter", 3, reason)
        control.feed.publish("queue", "home")

    served.do(changes)
    expect(page.get_by_text("Waits behind comfyui now.")).to_be_visible(timeout=SOON)
    expect(note).to_be_visible()
    page.get_by_role("row").filter(has=page.get_by_role("link", name="train-lora")).get_by_role(
        "link", name="Priority"
    ).click()
    page.get_by_role("combobox", name="Priority").select_option("high")
    page.get_by_role("button", name="Set priority").click()
    expect(page.locator("#live")).to_contain_text("priority high")


def test_two_browsers_see_a_change_soon(visit, served, control):
    one, two = visit().go("/workloads"), visit("mel", "member pass").go("/")
    for page in (one, two):
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
    row = control.workloads.rows["id-vllm"]
    served.do(
        lambda: control.workloads.put(
            replace(
                row, state=State.UNHEALTHY, reason=Reason(Code.PROBE_FAILING, "/health is silent.")
            )
        )
    )
    expect(one.get_by_text("/health is silent.")).to_be_visible(timeout=SOON)
    before = two.locator("#stamp time").get_attribute("datetime")
    served.do(lambda: control.feed.publish("gpus", "home"))
    expect(two.locator("#stamp time")).not_to_have_attribute("datetime", before, timeout=SOON)


def test_a_fault_shows_beside_its_field_while_one_types_and_nothing_moves(visit):
    page = visit().go("/deploy/ollama")
    field = page.get_by_label("Context length")
    field.click()
    field.fill("")
    page.keyboard.type("many")
    expect(page.locator("#f-p-context-e")).to_contain_text("A whole number from 512", timeout=SOON)
    expect(field).to_be_focused()
    expect(field).to_have_value("many")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("button", name="Deploy ollama")).to_be_disabled()
    field.fill("4096")
    expect(page.locator("#f-p-context-e")).to_have_count(0, timeout=SOON)
    expect(field).not_to_have_attribute("aria-invalid", "true")


def test_an_expired_login_keeps_what_was_typed(visit, control):
    page = visit().go("/deploy/web")
    page.get_by_label("Name").fill("typed-before")
    expect(page.get_by_role("button", name="Deploy typed-before")).to_be_visible(timeout=SOON)
    control.access.secrets.clear()
    page.get_by_role("button", name="Deploy typed-before").click()
    expect(page.get_by_text("what you had typed there is kept in this tab")).to_be_visible()
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill("right horse")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_label("Name")).to_have_value("typed-before")
    expect(page.get_by_role("button", name="Deploy typed-before")).to_be_visible(timeout=SOON)


def test_a_cut_line_is_said_and_heals(visit, served, control):
    visitor = visit()
    page = visitor.go("/queue")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    visitor.context.set_offline(True)
    served.do(lambda: control.feed.publish("queue", "home"))
    expect(page.locator("#live-state")).to_contain_text("silent for", timeout=10_000)
    visitor.context.set_offline(False)
    expect(page.get_by_text("Live", exact=True)).to_be_visible(timeout=15_000)


def test_an_update_shows_its_price_first(visit, control):
    page = visit().go("/workloads/id-vllm/update")
    file = page.get_by_role("textbox", name="Workload file")
    file.fill(file.input_value().replace("v0.18.0", "v0.19.0"))
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("region", name="Difference")).to_contain_text("v0.19.0")
    page.get_by_role("button", name="Update, short outage").click()
    expect(page.locator("#live")).to_contain_text("revision 3")


def test_everything_is_reached_by_keys(visit):
    page = visit().go("/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("g")
    page.keyboard.press("q")
    expect(page.get_by_role("heading", level=1)).to_have_text("Queue")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()  # its scripts have run
    page.keyboard.press("g")
    page.keyboard.press("w")
    expect(page.get_by_role("heading", level=1)).to_have_text("Workloads")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()


def test_hostile_log_lines_stay_text_and_the_page_stays_bounded(visit, control):
    control.workloads.lines = [
        "<img src=x onerror=alert(1)><script>alert(2)</script>",
        "\x1b[31mred\x1b[0m \u202eturned",
        "x" * (1 << 20),
        *(f"line {n}" for n in range(20_000)),
        "the last line",
    ]
    control.workloads.lines = control.workloads.lines[3:] + control.workloads.lines[:3]
    page = visit().go("/workloads/id-vllm")
    log = page.get_by_role("log")
    expect(log).to_contain_text("<img src=x onerror=alert(1)>", timeout=15_000)
    expect(log).to_contain_text("red \ufffdturned")
    assert log.locator("img, script").count() == 0
    assert log.locator("li").count() <= 2000
    assert (
        page.evaluate("document.querySelector('[data-log] li:last-child').textContent.length")
        <= 2000
    )


def test_without_scripts_one_reads_and_deploys_all_the_same(visit, control):
    page = visit(java_script_enabled=False).go("/deploy/web")
    page.get_by_label("Name").fill("no-script")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Deploy no-script").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("no-script")
    page.get_by_role("link", name="Whole page").click()
    expect(page.get_by_role("log")).to_contain_text("the client went away")
