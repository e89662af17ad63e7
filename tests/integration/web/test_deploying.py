"""Deploying over the API and the command line, on the real control plane: made secrets, Compose files, fit."""

import pytest
from real_house import real_house

from podwarden.catalog import Overrides
from podwarden.cli import compose as cli_compose


@pytest.fixture
async def house(tmp_path):
    async with real_house(tmp_path) as running:
        yield running


COMPOSE = """\
services:
  app:
    image: example/app:1
    depends_on: [db]
    environment: {GREETING: "${GREETING}"}
    env_file: [app.env]
    ports: ["8081:8081"]
    privileged: true
  db:
    image: postgres:16
    container_name: pg
    volumes: ["data:/var/lib/postgresql/data"]
volumes: {data: {}}
"""
ORDER = {
    "text": COMPOSE,
    "source": "docker-compose.yml",
    "dotenv": "GREETING=hello\n",
    "env_files": {"app.env": "LEVEL=info\n"},
}


async def deploy(client, **body):
    answer = await client.post("/api/v1/workloads", json=body)
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


async def test_a_template_makes_its_secrets_and_shows_them_once(house):
    client = await house.login()
    preview = await deploy(client, template="postgres", dry_run=True)
    assert preview["made_secrets"] == []
    assert preview["preview"]["starts_now"]
    done = await deploy(client, template="postgres")
    (made,) = done["made_secrets"]
    assert made["name"] == "postgres-password"
    value = made["value"]
    assert len(value) == 24
    for path in ("workloads/postgres", "workloads/postgres/events", "workloads", "secrets"):
        answer = await client.get(f"/api/v1/{path}")
        assert answer.status_code == 200
        assert value not in answer.text
    update = await client.put(
        "/api/v1/workloads/postgres", json={"template": "postgres", "recreate": True}
    )
    assert update.status_code == 200, update.text
    assert update.json()["made_secrets"] == []


async def test_every_template_that_makes_secrets_can_be_deployed(house):
    client = await house.login()
    catalogue = house.app.controller.catalogue
    for name, template in catalogue.templates.items():
        made = template.generated({}, Overrides())
        if made and not template.asks_first:
            preview = await deploy(client, template=name, dry_run=True)
            assert preview["preview"]["spec"]["secrets"], name


async def test_a_compose_file_becomes_a_workload_for_each_service(house):
    client = await house.login()
    preview = await client.post("/api/v1/compose", json={**ORDER, "dry_run": True})
    assert preview.status_code == 200, preview.text
    shown = preview.json()
    assert [s["preview"]["name"] for s in shown["services"]] == ["db", "app"]
    assert all(s["workload"] is None for s in shown["services"])
    assert (await client.get("/api/v1/workloads")).json()["items"] == []
    lines = {(p["field"], p["line"]) for p in shown["unsupported"]}
    assert ("services.app.privileged", 8) in lines
    assert ("services.db.container_name", 11) in lines
    assert shown["notes"]
    done = await client.post("/api/v1/compose", json=ORDER)
    assert done.status_code == 201, done.text
    app = done.json()["services"][1]["workload"]
    assert app["spec"]["env"] == {"GREETING": "hello", "LEVEL": "info"}
    items = (await client.get("/api/v1/workloads")).json()["items"]
    assert [w["name"] for w in items] == ["db", "app"]


async def test_the_files_of_variables_are_named(house):
    client = await house.login()
    answer = await client.post("/api/v1/compose/env-files", json={"text": COMPOSE})
    assert answer.json() == ["app.env"]


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"text": COMPOSE.replace("example/app:1", "''")}, 422, "image"),
        ({"dotenv": ""}, 422, "GREETING"),
        ({"dotenv": "no variable\n"}, 422, ".env"),
        ({"env_files": {}}, 422, "app.env"),
        ({"vram": "80GB"}, 422, "no service of the file asks for a GPU"),
    ],
)
async def test_one_fault_and_nothing_is_stored(house, change, status, said):
    client = await house.login()
    answer = await client.post("/api/v1/compose", json={**ORDER, **change})
    assert answer.status_code == status, answer.text
    assert said in answer.text
    assert (await client.get("/api/v1/workloads")).json()["items"] == []


async def test_one_service_that_never_fits_and_nothing_is_stored(house):
    client = await house.login()
    text = COMPOSE.replace("    privileged: true\n", "    x-podwarden: {gpu: {vram: 80GB}}\n")
    answer = await client.post("/api/v1/compose", json={**ORDER, "text": text})
    assert answer.status_code == 422
    assert answer.json()["code"] == "NO_DEVICE_LARGE_ENOUGH"
    assert answer.json()["detail"].startswith("app: ")
    assert "Nothing of docker-compose.yml was deployed." in answer.json()["detail"]
    assert (await client.get("/api/v1/workloads")).json()["items"] == []


async def test_a_name_that_is_taken_and_nothing_is_stored(house):
    client = await house.login()
    await deploy(client, file="name: app\nkind: service\nimage: a/b:1\n")
    answer = await client.post("/api/v1/compose", json=ORDER)
    assert (answer.status_code, answer.json()["code"]) == (409, "NAME_TAKEN")
    names = [w["name"] for w in (await client.get("/api/v1/workloads")).json()["items"]]
    assert names == ["app"]


async def test_ten_thousand_services_are_refused_in_a_sentence(house):
    client = await house.login()
    text = "services:\n" + "".join(f"  s{n}:\n    image: a/b:1\n" for n in range(10_000))
    assert len(text) < 512 * 1024
    for path in ("compose", "compose/env-files"):
        answer = await client.post(f"/api/v1/{path}", json={"text": text, "source": "big.yml"})
        assert answer.status_code == 422
        assert answer.json()["code"] == "COMPOSE_TOO_LARGE"
        assert "10,000 services" in answer.json()["detail"]


async def test_fit_says_now_later_and_never(house):
    client = await house.login()
    for vram in (24, 12, 8):
        await deploy(
            client, file=f"name: h{vram}\nkind: service\nimage: a/b:1\ngpu: {{vram: {vram}GB}}\n"
        )
    answer = await client.get("/api/v1/fit")
    assert answer.status_code == 200, answer.text
    found = {f["template"]: f for f in answer.json()}
    assert set(found) == set(house.app.controller.catalogue.templates)
    assert found["web"]["verdict"] == "now"
    waits = [f for f in found.values() if f["verdict"] == "later"]
    assert waits
    for f in waits:
        assert f["empty"]["fits"], f
        assert f["now"]["reason"]["code"]
    for f in found.values():
        if f["verdict"] == "now":
            assert f["now"]["placement"]["slots"]
    small = await client.get("/api/v1/fit", params={"cluster": "nowhere"})
    assert small.status_code == 404


async def test_fit_never_stores_anything_and_agrees_with_a_dry_run(house):
    client = await house.login()
    for f in (await client.get("/api/v1/fit")).json():
        if f["asks_first"]:
            continue
        answer = await client.post(
            "/api/v1/workloads", json={"template": f["template"], "dry_run": True}
        )
        if f["verdict"] == "never":
            assert answer.json()["code"] == f["now"]["reason"]["code"], f
        elif answer.status_code == 200:
            assert answer.json()["preview"]["starts_now"] == f["now"]["fits"], f
    assert (await client.get("/api/v1/workloads")).json()["items"] == []


@pytest.mark.parametrize(
    ("name", "text", "is_one"),
    [
        ("docker-compose.yml", "", True),
        ("compose.yaml", "", True),
        ("/x/docker-compose.prod.yml", "", True),
        ("media.yml", "services:\n  a: {image: b}\n", True),
        ("media.yml", "name: a\nimage: b\nkind: service\n", False),
        ("media.yml", "image: b\nservices: no\n", False),
    ],
)
def test_a_compose_file_is_known_by_name_or_content(name, text, is_one):
    assert cli_compose.is_compose(name, text) is is_one
