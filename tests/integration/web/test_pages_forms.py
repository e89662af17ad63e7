"""What forms of the pages do: every order is a POST that leads on, every fault stands beside its field."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest
from filled import Filled
from reading import read

from podwarden.control.answers import Made
from podwarden.domain.workload import Desire, Priority, State
from podwarden.errors import Conflict, Invalid, Unavailable

OURS = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}


@pytest.fixture
def control() -> Filled:
    return Filled()


@pytest.fixture
async def browser(connect):
    """Logged in by the page, as a browser is."""
    async with connect() as client:
        client.headers.update(OURS)
        answer = await client.post("/login", data={"name": "admin", "password": "right horse"})
        assert answer.status_code == 303
        yield client


async def test_deploy_from_the_form_leads_to_the_workload(browser, control):
    page = read((await browser.get("/deploy/web")).text)
    once = page.having("input", name="once")[0]["value"]
    form = {"step": "deploy", "name": "front", "once": once}
    first = await browser.post("/deploy/web", data=form)
    again = await browser.post("/deploy/web", data=form)
    assert (first.status_code, again.status_code) == (303, 303)
    assert first.headers["location"] == again.headers["location"]
    assert [w.name for w in control.workloads.rows.values()].count("front") == 1
    assert "front" in (await browser.get(first.headers["location"])).text


async def test_secrets_made_for_a_workload_are_shown_once(browser, control):
    submit = control.workloads.submit

    async def making(actor, spec, **more):
        done = await submit(actor, spec, **more)
        assert [g.parameter for g in more["generated"]], "the form did not ask for the secrets"
        if done.workload is None:
            return done
        made = tuple(Made(g.secret, g.parameter, g.title, "pw-once") for g in more["generated"])
        return replace(done, made=made)

    control.workloads.submit = making
    assert "made for you when empty" in read((await browser.get("/deploy/postgres")).text).text
    answer = await browser.post("/deploy/postgres", data={"step": "deploy", "name": "db"})
    assert answer.status_code == 200
    page = read(answer.text)
    assert "pw-once" in page.text
    row = next(w for w in control.workloads.rows.values() if w.name == "db")
    assert page.having("a", href=f"/workloads/{row.id}")
    assert "pw-once" not in (await browser.get(f"/workloads/{row.id}")).text


async def test_storages_and_secrets_are_named_and_secrets_never_shown(browser, control):
    form = {"name": "films", "kind": "nfs", "place": "nas:/films"}
    assert (await browser.post("/storage", data=form)).status_code == 303
    assert (
        await browser.post("/secrets", data={"secret": "hf", "value": "s3cret-value"})
    ).status_code == 303
    page = read((await browser.get("/storage")).text)
    assert "nas:/films" in page.text
    assert "s3cret-value" not in page.text
    assert control.secrets.values["hf"] == "s3cret-value"
    picks = read((await browser.get("/deploy/blender-render")).text)
    assert picks.having("option", value="films") or picks.having("option", value="films:")

    async def refuses(*_, **__):
        raise Invalid.of("nfs", "nas:/x", "an NFS server that answers; nas does not")

    control.storage.add = refuses
    answer = await browser.post("/storage", data=form | {"name": "other", "place": "nas:/x"})
    assert answer.status_code == 422
    again = read(answer.text)
    assert "an NFS server that answers" in again.text
    assert again.having("input", id="place")[0]["value"] == "nas:/x"
    assert (await browser.post("/secrets/hf/delete")).status_code == 303
    assert (await browser.post("/storage/films/remove")).status_code == 303
    assert "films" not in control.storage.views
    assert "hf" not in control.secrets.views


async def test_the_preview_changes_nothing_and_names_the_gpu(browser, control):
    before = dict(control.workloads.rows)
    answer = await browser.post(
        "/deploy/ollama",
        data={
            "step": "preview",
            "name": "mine",
            "vram": "3GB",
            "sharing": "shared",
            "p.context": "4096",
        },
    )
    page = read(answer.text)
    assert "Starts at once on n3 GPU\xa00 (RTX 3060), shared." in page.text
    assert "8.0 → 11.0 of 11.1 GiB promised" in page.text
    assert "podwarden deploy ollama --name mine --vram 3GB --shared --set context=4096" in page.text
    assert page.having("input", id="f-p-context")[0]["value"] == "4096"
    assert control.workloads.rows == before


async def test_faults_stand_beside_their_fields_and_nothing_typed_is_lost(browser, control):
    form = {
        "step": "deploy",
        "name": "A b",
        "vram": "16 gigs",
        "p.context": "many",
        "p.models": "50 apples",
        "priority": "normal",
    }
    before = dict(control.workloads.rows)
    answer = await browser.post("/deploy/ollama", data=form)
    assert answer.status_code == 422
    page = read(answer.text)
    for name in ("name", "vram", "p-context", "p-models"):
        field = page.having("input", id=f"f-{name}")[0]
        assert field["aria-invalid"] == "true", name
        assert page.having("p", id=f"f-{name}-e"), name
        assert f"f-{name}-says" in field["aria-describedby"]
        assert field["value"] == form[name.replace("p-", "p.")]
    assert "4 things to fix" in page.text
    assert [a for a in page.having("button") if "disabled" in a]
    assert control.workloads.rows == before


async def test_a_name_that_is_taken_and_a_request_that_never_fits_are_said(browser):
    page = read(
        (await browser.post("/deploy/ollama", data={"step": "deploy", "name": "vllm"})).text
    )
    assert page.having("input", id="f-name")[0]["aria-invalid"] == "true"
    page = read(
        (
            await browser.post(
                "/deploy/ollama", data={"step": "preview", "name": "x", "vram": "48GB"}
            )
        ).text
    )
    assert "It can never run here" in page.text
    assert "NO_DEVICE_LARGE_ENOUGH" in page.text
    page = read((await browser.get("/deploy/vllm?vram=24GB&name=x")).text)
    assert "Would wait, 5th in line." in page.text
    assert "Deploy x, wait in line" in page.text


async def test_a_workload_file_is_previewed_and_deployed(browser, control):
    text = "name: from-file\nkind: service\nimage: nginx:1.29\nresources: {cpu: 1, memory: 256Mi}\n"
    page = read((await browser.post("/deploy-file", data={"step": "preview", "file": text})).text)
    assert "Starts at once on n2" in page.text
    answer = await browser.post("/deploy-file", data={"step": "deploy", "file": text})
    assert answer.status_code == 303
    assert [w for w in control.workloads.rows.values() if w.name == "from-file"]
    answer = await browser.post("/deploy-file", data={"step": "deploy", "file": "name: [\n"})
    assert answer.status_code == 422
    assert "name: [" in read(answer.text).text


async def test_stop_start_delete_and_priority_say_what_they_hit_and_do_it(browser, control):
    rows = control.workloads.rows
    text = read((await browser.get("/workloads/id-vllm/stop")).text).text
    assert "It ends on n3 GPU\xa01 (RTX 3090)" in text
    assert "http://192.168.1.33:8000 answers no longer." in text
    assert rows["id-vllm"].desire is Desire.RUN
    assert (await browser.post("/workloads/id-vllm/stop")).headers[
        "location"
    ] == "/workloads/id-vllm"
    assert rows["id-vllm"].state is State.STOPPING
    assert "Starts at once" in (await browser.get("/workloads/id-thumbnails/start")).text
    assert (await browser.post("/workloads/id-whisper/start")).status_code == 303
    assert rows["id-whisper"].state is State.QUEUED
    assert (
        await browser.post("/workloads/id-jupyter/priority", data={"priority": "high"})
    ).status_code == 303
    assert rows["id-jupyter"].spec.priority is Priority.HIGH
    answer = await browser.post("/workloads/id-jupyter/priority", data={"priority": "urgent"})
    assert answer.status_code == 409
    assert "one of critical, high, normal, low, idle" in answer.text
    assert (await browser.post("/workloads/id-whisper/delete", data={"volumes": "keep"})).headers[
        "location"
    ] == "/workloads"
    assert "id-whisper" not in rows
    assert (await browser.get("/workloads/id-vllm/explode")).status_code == 422


async def test_an_update_shows_its_difference_and_price_before_it_is_done(browser, control):
    text = read((await browser.get("/workloads/id-vllm/update")).text).text
    start = text.index("name: vllm")
    file = text[start : text.index("Preview", start)].strip() + "\n"
    changed = file.replace("v0.18.0", "v0.19.0")
    assert changed != file
    page = read(
        (
            await browser.post(
                "/workloads/id-vllm/update", data={"step": "preview", "file": changed}
            )
        ).text
    )
    assert "+ image: vllm/vllm-openai:v0.19.0" in page.text
    assert "Update, short outage" in page.text
    assert page.having("input", name="recreate")[0]["value"] == "yes"
    assert control.workloads.rows["id-vllm"].revision == 2
    answer = await browser.post(
        "/workloads/id-vllm/update", data={"step": "apply", "file": changed, "recreate": "yes"}
    )
    assert answer.status_code == 303
    assert control.workloads.rows["id-vllm"].spec.image.endswith("v0.19.0")
    page = read(
        (
            await browser.post(
                "/workloads/id-vllm/update", data={"step": "preview", "file": "kind: nothing\n"}
            )
        ).text
    )
    assert "Line 1" in page.text
    assert "kind: nothing" in page.text


async def test_a_rollback_is_previewed_and_done(browser, control):
    text = read((await browser.get("/workloads/id-vllm/rollback/1")).text).text
    assert "removed: \N{MINUS SIGN} - --max-num-seqs=64" in text
    assert "Roll back, short outage" in text
    answer = await browser.post("/workloads/id-vllm/rollback/1", data={"recreate": "yes"})
    assert answer.status_code == 303
    assert control.workloads.rows["id-vllm"].revision == 3
    assert (await browser.get("/workloads/id-vllm/rollback/9")).status_code == 404


async def test_a_refusal_on_the_way_keeps_the_page_with_its_sentence(browser, control):
    async def stale(*_, **__):
        raise Conflict("vllm was changed by somebody else in the meantime.", code="STALE")

    control.workloads.stop = stale
    answer = await browser.post("/workloads/id-vllm/stop")
    assert answer.status_code == 409
    assert "changed by somebody else" in read(answer.text).text


async def test_tokens_are_shown_once_and_users_are_the_admins_affair(browser, control, connect):
    page = read(
        (await browser.post("/account/tokens", data={"label": "laptop", "days": "30"})).text
    )
    secret = page.text.partition("Copy it now: ")[2].split()[0]
    assert secret.startswith("pw_")
    assert secret not in (await browser.get("/account")).text
    async with connect(secret) as program:
        assert (await program.get("/api/v1/session")).json()["user"] == "admin"
    faulty = await browser.post("/account/tokens", data={"label": "x", "days": "0"})
    assert faulty.status_code == 422
    assert "a whole number from 1 to 3,650" in faulty.text
    form = {"name": "kim", "role": "member", "password": "long enough", "again": "long enough"}
    assert (await browser.post("/account/users", data=form)).status_code == 303
    assert "kim" in control.access.people
    assert (await browser.post("/account/users", data=form | {"again": "other"})).status_code == 422
    assert "kim" in read((await browser.get("/account/users/kim/remove")).text).text
    assert (await browser.post("/account/users/kim/remove")).status_code == 303
    assert "kim" not in control.access.people
    async with connect(control.token("vic")) as viewer:
        text = read((await viewer.get("/account")).text).text
        assert "Add user" not in text
        assert (await viewer.get("/deploy/ollama", headers=OURS)).status_code == 403
        assert "Stop" not in read((await viewer.get("/workloads/id-vllm")).text).text


async def test_a_cluster_is_adopted_and_its_access_file_never_shown_again(browser, control):
    answer = await browser.post("/clusters", data={"name": "second", "kubeconfig": "secret: 12345"})
    assert answer.status_code == 303
    assert "second" in control.clusters.views

    async def refuses(*_, **__):
        raise Invalid.of("kubeconfig", "", "a file with a current context")

    control.clusters.adopt = refuses
    answer = await browser.post("/clusters", data={"name": "third", "kubeconfig": "secret: 12345"})
    assert answer.status_code == 422
    assert "12345" not in answer.text
    assert read(answer.text).having("input", name="name")[0]["value"] == "third"
    assert "goes on running" in (await browser.get("/clusters/second/remove")).text
    assert (await browser.post("/clusters/second/remove")).status_code == 303
    assert "second" not in control.clusters.views


async def test_an_expired_login_leads_to_the_login_and_back(browser, control):
    control.access.secrets.clear()
    answer = await browser.post("/deploy/ollama", data={"step": "deploy", "name": "x"})
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        "/login?next=%2Fdeploy%2Follama",
    )
    page = read((await browser.get(answer.headers["location"])).text)
    assert page.having("input", name="next")[0]["value"] == "/deploy/ollama"
    assert "what you had typed there is kept" in page.text


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
async def test_no_form_of_another_site_does_anything(browser, control, site):
    for path in (
        "/workloads/id-vllm/stop",
        "/deploy/web",
        "/account/tokens",
        "/clusters/home/remove",
    ):
        answer = await browser.post(path, data={"step": "deploy"}, headers={"Sec-Fetch-Site": site})
        assert answer.status_code == 403, path
    assert control.workloads.rows["id-vllm"].desire is Desire.RUN
    assert "home" in control.clusters.views


async def test_a_control_plane_that_does_not_answer_is_a_page_too(browser, control):
    async def away(*_, **__):
        raise Unavailable("The database does not answer.")

    control.workloads.gpus = away
    answer = await browser.get("/")
    assert answer.status_code == 503
    assert "The database does not answer." in read(answer.text).text


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/deploy/ollama", "a=1&" * 5000),
        ("/deploy/ollama", "name=%00%ff%fe&p.context=%00"),
        ("/deploy-file", "file=" + "x" * 600_000),
        ("/workloads/id-vllm/update", "step=apply"),
        ("/account/tokens", "days=" + "9" * 400),
        ("/account/tokens", "days=%D9%A3"),
        ("/clusters", "name=" + "n" * 5000),
    ],
)
async def test_bad_forms_are_answered_with_a_sentence(browser, path, body):
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await browser.post(path, content=body, headers=headers)
    assert answer.status_code in (200, 303, 404, 409, 413, 422), answer.text
    assert isinstance(answer, httpx.Response)


async def test_a_hostile_login_name_stays_text(connect):
    hostile = "<img src=x onerror=alert(1)>\"'<script>alert(2)</script>"
    async with connect() as client:
        answer = await client.post(
            "/login", data={"name": hostile, "password": "x", "next": hostile}, headers=OURS
        )
    page = read(answer.text)
    assert not page.having("img")
    assert page.having("input", name="name")[0]["value"] == hostile
    assert page.having("input", name="next")[0]["value"] == "/"
    assert "4 tries left" in page.text
