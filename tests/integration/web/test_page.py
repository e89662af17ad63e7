"""The page: what is on it, that nothing on it can execute, that it needs no other server."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import podwarden.web
from podwarden.domain.cluster import Cluster
from podwarden.domain.placement import Verdict
from podwarden.domain.reason import Code, Reason
from podwarden.domain.workload import State

HOSTILE = "<img src=x onerror=alert(1)>\"'`{{7*7}}</td><script>alert(2)</script>"


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data) -> None:
        self.text += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    return reader


@pytest.fixture
async def busy(admin, control):
    made = (await admin.post("/api/v1/workloads", json={"template": "ollama"})).json()["workload"]
    control.workloads.run(made["id"])
    await admin.post("/api/v1/workloads", json={"template": "web"})
    return control


async def test_it_shows_gpus_queue_and_workloads_and_says_what_is_simulated(admin, busy):
    answer = await admin.get("/")
    page = read(answer.text)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    for word in (
        "RTX 3090",
        "24.0 GiB",
        "ollama",
        "dedicated",
        "Queue",
        "web",
        "running",
        "Simulated",
    ):
        assert word in page.text, word
    assert [t for t, _ in page.tags].count("table") == 2
    assert all(a.get("scope") in ("col", "row") for t, a in page.tags if t == "th")
    assert ("html", {"lang": "en"}) in page.tags


async def test_the_live_part_is_the_same_html(admin, busy):
    whole = (await admin.get("/")).text
    live = (await admin.get("/?only=live")).text
    without_times = [line for line in live.splitlines() if "As of" not in line and line.strip()]
    assert without_times
    assert all(line in whole for line in without_times)
    assert "<html" not in live


async def test_hostile_names_and_texts_stay_text(admin, busy):
    row = next(iter(busy.workloads.rows.values()))
    reason = Reason(Code.IMAGE_PULL_FAILED, HOSTILE, HOSTILE)
    busy.workloads.put(
        replace(
            row, name=HOSTILE, owner=HOSTILE, state=State.FAILED, reason=reason, nodes=(HOSTILE,)
        )
    )
    queued = next(w for w in busy.workloads.rows.values() if w.state is State.QUEUED)
    busy.workloads.put(replace(queued, name=HOSTILE))
    busy.workloads.verdicts[queued.id] = Verdict(queued.id, 1, reason)
    view = busy.clusters.views["demo"]
    busy.clusters.views["demo"] = replace(
        view,
        trouble=HOSTILE,
        cluster=Cluster(HOSTILE, HOSTILE, view.cluster.added_at, simulated=True),
    )
    for path in ("/", "/?only=live"):
        page = read((await admin.get(path)).text)
        assert page.text.count("alert(2)") >= 6
        scripts = [a for t, a in page.tags if t == "script"]
        assert scripts == ([{"src": "/static/live.js", "defer": None}] if path == "/" else [])
        assert not [a for t, a in page.tags if t == "img"]
        assert not [k for _, a in page.tags for k in a if k.startswith("on") or k == "style"]
        assert "49" not in page.text.replace("4.9", "")


async def test_a_hostile_login_name_stays_text(connect):
    async with connect() as client:
        answer = await client.post(
            "/login",
            data={"name": HOSTILE, "password": "x", "next": HOSTILE},
            headers={"Sec-Fetch-Site": "same-origin"},
        )
    page = read(answer.text)
    assert not [t for t, _ in page.tags if t in ("script", "img")]
    field = next(a for t, a in page.tags if a.get("id") == "name")
    assert field["value"] == HOSTILE
    assert next(a for t, a in page.tags if a.get("name") == "next")["value"] == "/"
    assert "4 tries left" in page.text


async def test_an_empty_page_says_what_to_do_next(admin, control):
    control.clusters.views.clear()
    text = read((await admin.get("/")).text).text
    assert "cluster adopt" in text
    assert "podwarden deploy ollama" in text
    assert "Simulated" not in text


async def test_a_cluster_that_does_not_answer_is_said(admin, control):
    view = control.clusters.views["demo"]
    control.clusters.views["demo"] = replace(view, reachable=False, trouble="")
    assert "does not answer" in read((await admin.get("/")).text).text


def test_nothing_of_it_comes_from_another_server():
    root = Path(podwarden.web.__file__).parent
    files = [p for folder in ("html", "static") for p in (root / folder).iterdir()]
    assert len(files) >= 6
    for path in files:
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text, path
        assert "https://" not in text, path
        assert "@import" not in text, path
        if path.suffix == ".html":
            assert "style=" not in text, path
            assert "| safe" not in text, path
            assert "autoescape" not in text, path


def test_no_word_of_the_engine_is_on_the_page():
    root = Path(podwarden.web.__file__).parent / "html"
    for path in root.iterdir():
        words = path.read_text().lower().replace("podwarden", "")
        for word in ("pod", "pvc", "taint", "namespace", "deployment", "kubernetes"):
            assert word not in words, (path, word)
