"""Every page: what is on it, that nothing on it can execute, that it needs no other server.

Covered here: reading. Forms and orders are in test_pages_forms.py. What a browser makes of it is in tests/browser.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from filled import Filled
from reading import read

import podwarden.web
from podwarden.domain.cluster import Cluster
from podwarden.domain.event import EventKind
from podwarden.domain.placement import Verdict
from podwarden.domain.reason import Code, Note, Reason
from podwarden.domain.workload import State

HOSTILE = "<img src=x onerror=alert(1)>\"'`{{7*7}}</td><script>alert(2)</script>\u202e"
LIVE = (
    "/",
    "/queue",
    "/workloads",
    "/workloads?show=all",
    "/workloads/id-vllm",
    "/catalogue",
    "/clusters",
    "/start",
)
STILL = (
    "/workloads/id-vllm/logs",
    "/workloads/id-vllm/stop",
    "/workloads/id-whisper/start",
    "/workloads/id-vllm/delete",
    "/workloads/id-jupyter/priority",
    "/workloads/id-vllm/update",
    "/workloads/id-vllm/rollback/1",
    "/deploy/ollama",
    "/deploy/vllm?vram=48GB",
    "/deploy-file",
    "/account",
    "/account/users/mel/remove",
    "/clusters/home/remove",
    "/storage",
    "/patterns",
)  # fmt: skip
ALL = (
    *LIVE,
    *STILL,
    "/workloads/id-blender-render",
    "/workloads/id-jupyter",
    "/workloads/id-whisper",
)
ROOT = Path(podwarden.web.__file__).parent
ENGINE_WORDS = re.compile(
    r"\b(pods?|pvcs?|taint\w*|toleration\w*|namespace\w*|deployments?|daemonsets?|kubernetes|kubelet|"
    r"replicasets?|statefulsets?|configmaps?|resourceclaims?|claims?|crd|etcd)\b",
    re.IGNORECASE,
)


@pytest.fixture
def control() -> Filled:
    return Filled()


@pytest.mark.parametrize("path", ALL)
async def test_a_page_is_whole_has_a_head_and_no_word_of_the_engine(admin, path):
    answer = await admin.get(path, headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    page = read(answer.text)
    assert page.having("html", lang="en")
    assert len(page.having("h1")) == 1
    assert page.having("main", id="main")
    assert page.having("a", href="#main")
    assert "Simulated: home has nodes and GPUs that exist only in this program" in page.text
    assert not ENGINE_WORDS.findall(page.plain)
    assert [a for t, a in page.tags if t == "a" and a.get("href") == "#"] == []


@pytest.mark.parametrize("path", ALL)
async def test_nothing_is_inline_and_every_field_has_a_name_for_people(admin, path):
    page = read((await admin.get(path)).text)
    assert not [k for _, a in page.tags for k in a if k.startswith("on") or k == "style"]
    assert not page.having("style")
    assert all((a.get("src") or "").startswith("/static/") for a in page.having("script"))
    labelled = {a.get("for") for a in page.having("label")}
    for tag, a in page.tags:
        if tag in ("input", "select", "textarea") and a.get("type") not in (
            "hidden",
            "radio",
            "checkbox",
        ):
            assert a.get("id") in labelled or a.get("aria-label"), (tag, a)
        if tag == "th":
            assert a.get("scope") in ("col", "row", "rowgroup"), a
    ids = [a["id"] for _, a in page.tags if a.get("id")]
    assert len(ids) == len(set(ids)), "an id stands twice"


@pytest.mark.parametrize("path", LIVE)
async def test_the_live_part_is_the_same_html_and_says_when_it_was_true(admin, path):
    whole = (await admin.get(path)).text
    live = (await admin.get(path + ("&" if "?" in path else "?") + "only=live")).text
    assert "<html" not in live
    assert "as of <time" in live
    times = re.compile(r"<time.*?</time>")
    lines = [line for line in times.sub("", live).splitlines() if line.strip()]
    assert len(lines) > 5
    there = times.sub("", whole)
    assert not [
        line
        for line in lines
        if line not in there and "data-at=" not in line and 'class="job"' not in line
    ]


async def test_gpus_are_bars_on_one_scale_with_their_workloads(admin):
    page = read((await admin.get("/")).text)
    for word in (
        "RTX 3060",
        "12 GB, shared by 3",
        "23.2 GiB, dedicated",
        "0.5 GiB outside PodWarden",
        "lost",
        "then",
        "comfyui",
    ):
        assert word in page.text, word
    assert page.having("svg", **{"aria-label": "n3 GPU 0: 8.0 GiB of 11.1 GiB promised"})
    rooms = [a["width"] for a in page.having("rect", **{"class": "room"})]
    assert rooms == ["50%", "100%", "66.67%", "33.33%", "66.67%"]
    assert page.having("a", href="/workloads/id-vllm")


async def test_the_filter_is_in_the_address(admin):
    page = read((await admin.get("/?search=3090")).text)
    assert "n3" in page.text
    assert "n5" not in page.text.partition("Health")[2]
    assert "Nothing matches" in (await admin.get("/?search=zzz")).text
    page = read((await admin.get("/workloads?show=look&owner=sam")).text)
    assert "CRASH_LOOPING" in page.text
    assert "vllm" not in page.text
    assert page.having("input", name="show", value="look")


async def test_the_queue_says_place_code_sentence_and_way_out(admin):
    text = read((await admin.get("/queue")).text).text
    places = [
        text.index(name, text.index("What would let it run"))
        for name in ("comfyui", "train-lora", "jupyter", "tdarr-films")
    ]
    assert places == sorted(places)
    for word in (
        "WAITS_FOR_SERVICE",
        "Stop vllm, or ask for 16 GB",
        "behind comfyui",
        "n4 GPU 0, reserved",
        "n3 GPU\xa01 (RTX 3090) is held by vllm",
    ):
        assert word in text, word
    assert "Nothing of yours waits" in (await admin.get("/queue?show=mine")).text


async def test_a_workload_opens_with_its_state_and_shows_what_a_revision_changed(admin):
    text = read((await admin.get("/workloads/id-vllm")).text).text
    assert "Runs on n3 GPU\xa01 (RTX 3090) for 17 h. It asked for 1 whole GPU, 24 GB." in text
    assert "added: + - --max-num-seqs=64" in text
    text = read((await admin.get("/workloads/id-jupyter")).text).text
    assert "Waits for 3 h 41 min, 3rd in line. It asks for 1 whole GPU, 16 GB." in text
    assert "What would help: Ask for 8 GB" in text
    text = read((await admin.get("/workloads/id-blender-render")).text).text
    assert "117 of 250 done, 2 running, 1 failed." in text


async def test_the_catalogue_is_judged_by_the_planner(admin):
    page = read((await admin.get("/catalogue")).text)
    assert "fits now" in page.text
    assert "would wait" in page.text
    only = read((await admin.get("/catalogue?fit=now")).text)
    assert "would wait" not in only.text


async def test_hostile_names_and_texts_stay_text(admin, control):
    row = control.workloads.rows["id-vllm"]
    reason = Reason(
        Code.IMAGE_PULL_FAILED,
        HOSTILE,
        HOSTILE,
        (Note(HOSTILE, "x", Code.QUOTA, HOSTILE),),
        (HOSTILE,),
    )
    failed = replace(
        row,
        name=HOSTILE,
        owner=HOSTILE,
        state=State.FAILED,
        reason=reason,
        nodes=(HOSTILE,),
        spec=replace(row.spec, image=HOSTILE, env=((HOSTILE, HOSTILE),)),
    )
    control.workloads.rows[row.id] = failed
    control.workloads.kept[row.id] = [
        replace(r, made_by=HOSTILE, note=HOSTILE, spec=failed.spec)
        for r in control.workloads.kept[row.id]
    ]
    control.workloads.event(failed, EventKind.REASON, HOSTILE, HOSTILE)
    queued = control.workloads.rows["id-jupyter"]
    control.workloads.rows[queued.id] = replace(queued, name=HOSTILE, owner=HOSTILE)
    control.workloads.verdicts[queued.id] = Verdict(queued.id, 1, reason)
    view = control.clusters.views["home"]
    control.clusters.views["home"] = replace(
        view,
        trouble=HOSTILE,
        cluster=Cluster(
            HOSTILE, HOSTILE, view.cluster.added_at, HOSTILE, simulated=True, notes=(HOSTILE,)
        ),
    )
    control.house = tuple(
        replace(
            n,
            name=HOSTILE,
            address=HOSTILE,
            devices=tuple(replace(d, node=HOSTILE, model=HOSTILE) for d in n.devices),
        )
        for n in control.house
    )
    control.workloads.lines = [HOSTILE, "\x1b[31mred\x1b[0m \x00 \x1b]0;title\x07", "x" * (1 << 20)]
    for path in (
        *ALL,
        "/?search=" + HOSTILE,
        "/workloads?search=" + HOSTILE,
        "/login?next=" + HOSTILE,
        "/deploy/ollama?name=" + HOSTILE,
    ):
        answer = await admin.get(path)
        page = read(answer.text)
        assert answer.status_code == 200, path
        assert not page.having("img"), path
        assert all((a.get("src") or "").startswith("/static/") for a in page.having("script")), path
        assert not [k for _, a in page.tags for k in a if k.startswith("on") or k == "style"], path
        assert not [
            a for _, a in page.tags if str(a.get("href", "/")).lower().startswith("javascript")
        ], path
        assert "alert(2)" in page.text or path.startswith("/login"), path
        assert "49</td>" not in answer.text
        assert len(answer.text) < 200_000, path


async def test_a_log_line_with_control_codes_is_shown_without_them(admin, control):
    control.workloads.lines = [
        "\x1b[31mred\x1b[0m and \u202eturned",
        "x" * (1 << 20),
        "needle here",
    ]
    text = read((await admin.get("/workloads/id-vllm/logs")).text).text
    assert "red and \N{REPLACEMENT CHARACTER}turned" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "x" * 1999 + "…" in text
    found = read((await admin.get("/workloads/id-vllm/logs?search=NEEDLE")).text).text
    assert "needle here" in found
    assert "red and" not in found


async def test_what_is_not_there_is_said_as_a_page_to_people_and_as_json_to_programs(admin):
    for path in ("/nothing", "/workloads/nope", "/deploy/nope", "/clusters/nope/remove"):
        answer = await admin.get(path, headers={"Accept": "text/html"})
        assert answer.status_code == 404, path
        assert read(answer.text).having("a", href="/")
    assert (await admin.get("/api/v1/nothing", headers={"Accept": "text/html"})).json()[
        "code"
    ] == "NO_SUCH_PAGE"


async def test_without_a_cluster_the_first_page_leads_to_the_first_workload(admin, control):
    control.clusters.views.clear()
    control.workloads.rows.clear()
    assert (await admin.get("/")).headers["location"] == "/start"
    text = read((await admin.get("/start")).text).text
    assert "podwarden cluster adopt" in text
    assert "podwarden deploy ollama" in text
    assert "Simulated" not in text


async def test_a_cluster_that_does_not_answer_is_said_on_every_page(admin, control):
    view = control.clusters.views["home"]
    control.clusters.views["home"] = replace(view, reachable=False, trouble="")
    for path in ("/", "/queue", "/account"):
        page = read((await admin.get(path)).text)
        assert page.having("p", role="alert")
        assert "does not answer" in page.text


async def test_many_nodes_are_a_grid_in_pages(admin, control):
    base = next(n for n in control.house if n.name == "n3")
    control.house = tuple(
        replace(
            base,
            name=f"m{n}",
            devices=tuple(replace(d, node=f"m{n}", uuid=f"u{n}-{d.index}") for d in base.devices),
        )
        for n in range(300)
    )
    page = read((await admin.get("/")).text)
    assert "300 nodes, 600 GPUs" in page.text
    assert "1 to 240 of 300" in page.text
    assert len([a for a in page.having("a") if "tile" in (a.get("class") or "")]) == 240
    assert page.having("a", href="/?first=240")
    assert "241 to 300 of 300" in (await admin.get("/?first=240")).text


def test_nothing_of_it_comes_from_another_server():
    files = [p for folder in ("html", "static") for p in (ROOT / folder).iterdir()]
    assert len(files) >= 20
    for path in files:
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text, path
        assert "https://" not in text, path
        assert "@import" not in text, path
        if path.suffix == ".html":
            assert "style=" not in text, path
            assert "| safe" not in text, path
            assert "autoescape" not in text, path
        if path.suffix == ".js":
            assert "innerHTML =" not in text, path
            assert "eval(" not in text, path


def test_colours_stand_in_the_tokens_only():
    for path in (ROOT / "static").glob("*.css"):
        found = re.findall(r"(?<!url\()#[0-9a-fA-F]{3,8}\b|rgba?\(", path.read_text())
        assert not found or path.name == "tokens.css", (path, found)


def test_no_word_of_the_engine_is_in_what_pages_say():
    for path in [
        *(ROOT / "html").iterdir(),
        *(ROOT / "static").glob("*.js"),
        *(ROOT / "pages").glob("*.py"),
    ]:
        text = path.read_text()
        text = re.sub(r"\w\.\w+", "", text)  # attributes of nouns are no words that people see
        text = re.sub(r"<details[^>]*data-expert.*?</details>", "", text, flags=re.DOTALL)
        assert not ENGINE_WORDS.findall(text), path
