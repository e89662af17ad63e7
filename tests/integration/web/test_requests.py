"""Faulty requests: each is refused with code, field and fix, and nothing is stored."""

from __future__ import annotations

import json

import pytest

from podwarden.errors import Conflict, FenceLost, NotFound, Unavailable

JSON = {"Content-Type": "application/json"}


def is_problem(answer, status: int, code: str) -> dict:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == status
    assert body["code"] == code
    assert body["type"].endswith(code)
    assert body["detail"]
    return body


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"nope",
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"template": "ollama"',
        b'{"a": ' * 5000,
        b"1" * 6000,
        b"{'a': 1}",
    ],
    ids=["open", "word", "deep list", "not utf-8", "cut", "deep object", "huge number", "python"],
)
async def test_what_is_no_json_is_said_to_be_none(admin, control, body):
    answer = await admin.post("/api/v1/workloads", content=body, headers=JSON)
    is_problem(answer, 400, "MALFORMED_JSON")
    assert not control.workloads.rows


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "application/yaml", "", "json"]
)
async def test_another_content_type_is_refused(admin, control, kind):
    body = json.dumps({"template": "ollama"})
    answer = await admin.post("/api/v1/workloads", content=body, headers={"Content-Type": kind})
    is_problem(answer, 415, "NOT_JSON")
    assert not control.workloads.rows


async def test_a_large_body_is_refused_by_its_length_without_reading_it(admin, control):
    read = 0

    async def body():
        nonlocal read
        for _ in range(100):
            read += 1 << 20
            yield b"x" * (1 << 20)

    answer = await admin.post(
        "/api/v1/workloads", content=body(), headers={**JSON, "Content-Length": str(100 << 20)}
    )
    is_problem(answer, 413, "BODY_TOO_LARGE")
    assert not control.workloads.rows


async def test_a_large_body_of_unknown_length_is_refused_where_it_crosses_the_limit(admin):
    read = 0

    async def body():
        nonlocal read
        for _ in range(100):
            read += 1
            yield b"x" * (1 << 18)

    answer = await admin.post("/api/v1/workloads", content=body(), headers=JSON)
    is_problem(answer, 413, "BODY_TOO_LARGE")
    assert read <= 6


@pytest.mark.parametrize("length", ["-1", "1e9", "abc", "9" * 30, "\u0661"])
async def test_a_content_length_that_is_none(admin, length):
    answer = await admin.post(
        "/api/v1/workloads", content=b"{}", headers={**JSON, "Content-Length": length.encode()}
    )
    assert answer.status_code in (400, 413)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "template"),
        ({"template": "ollama", "file": "name: x"}, "template"),
        ({"template": "ollama", "vrm": "16GB"}, "vrm"),
        ({"template": 3}, "template"),
        ({"template": "ollama", "vram": "16 gigs"}, "--vram"),
        ({"template": "ollama", "vram": "-1GB"}, "--vram"),
        ({"template": "ollama", "vram": "1e30GB"}, "--vram"),
        ({"template": "ollama", "gpus": "0"}, "--gpus"),
        ({"template": "ollama", "gpus": "-2"}, "--gpus"),
        ({"template": "ollama", "name": "Not A Label"}, "--name"),
        ({"template": "ollama", "priority": "urgent"}, "--priority"),
        ({"template": "ollama", "sharing": "both"}, "sharing"),
        ({"template": "ollama", "parameters": {"nope": "1"}}, "--set"),
        ({"template": "ollama", "parameters": ["a"]}, "parameters"),
        ({"template": "blender-render", "parameters": {"frames": "10-1"}}, "--set"),
        ({"template": "blender-render", "parameters": {"frames": "1-1000000000"}}, "--set"),
        ({"file": "name: x\nkind: service\nimage: 'a b'\n"}, "image"),
        ({"file": "\tname: x"}, ""),
        ({"file": "&a [*a]"}, ""),
        ({"template": "a\u0000b"}, "template"),
        ({"template": "ollama", "dry_run": "perhaps"}, "dry_run"),
    ],
)
async def test_each_faulty_field_is_named_with_its_fix(admin, control, body, field):
    answer = await admin.post("/api/v1/workloads", json=body)
    problem = is_problem(answer, 422, "INVALID")
    assert problem["problems"]
    assert all(each["fix"] for each in problem["problems"])
    if field:
        assert field in [each["field"] for each in problem["problems"]]
    assert not control.workloads.rows


async def test_lone_surrogates_are_no_text(admin, control):
    answer = await admin.post("/api/v1/workloads", content=b'{"template": "\\ud800"}', headers=JSON)
    assert answer.status_code in (400, 404, 422)
    answer = await admin.post(
        "/api/v1/workloads", content=b'{"file": "name: \\ud800"}', headers=JSON
    )
    assert answer.status_code in (400, 422)
    assert not control.workloads.rows


async def test_a_yaml_bomb_is_refused_quickly(admin, control):
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(12)
    )
    answer = await admin.post("/api/v1/workloads", json={"file": bomb})
    assert answer.status_code == 422
    assert len(answer.content) < 20_000
    assert not control.workloads.rows


async def test_a_secret_is_never_repeated(admin):
    for body in (
        {"name": "x" * 300, "password": "hunter22"},
        {"name": "x", "password": {"a": "hunter22"}},
        {"name": "x", "password": "hunter22" * 1000},
        {"nam": "x", "password": "hunter22"},
    ):
        answer = await admin.post("/api/v1/users", json=body)
        assert answer.status_code == 422
        assert "hunter22" not in answer.text
    answer = await admin.post("/api/v1/clusters", json={"name": 1, "kubeconfig": "hunter22"})
    assert "hunter22" not in answer.text


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (NotFound("not there"), 404, "NOT_FOUND"),
        (Conflict("taken", code="NAME_TAKEN"), 409, "NAME_TAKEN"),
        (Unavailable("The cluster does not answer."), 503, "UNAVAILABLE"),
        (FenceLost("Another PodWarden leads."), 503, "FENCE_LOST"),
    ],
)
async def test_every_error_of_the_control_plane_has_its_status(admin, control, error, status, code):
    control.workloads.fail = error
    answer = await admin.post("/api/v1/workloads", json={"template": "ollama"})
    assert is_problem(answer, status, code)["detail"] == str(error)
    assert ("retry-after" in answer.headers) == (status == 503)


async def test_an_unexpected_error_says_nothing_of_the_inside(admin, control):
    control.workloads.fail = RuntimeError("secret path /var/lib/x")
    answer = await admin.get("/api/v1/gpus")
    is_problem(answer, 500, "INTERNAL")
    assert "secret path" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("HEAD", "/api/v1/gpus", 200),
        ("HEAD", "/", 200),
        ("HEAD", "/healthz", 200),
        ("HEAD", "/api/v1/feed", 200),
        ("HEAD", "/api/v1/nothing", 404),
        ("OPTIONS", "/api/v1/workloads", 204),
        ("OPTIONS", "/api/v1/workloads/x", 204),
        ("TRACE", "/api/v1/gpus", 405),
        ("PATCH", "/api/v1/workloads/x", 405),
        ("POST", "/api/v1/gpus", 405),
    ],
)
async def test_other_methods(admin, method, path, status):
    answer = await admin.request(method, path)
    assert answer.status_code == status
    if method == "HEAD":
        assert answer.content == b""
    if status in (204, 405):
        assert "GET" in answer.headers["allow"]


async def test_allow_lists_every_method_of_an_address(admin):
    answer = await admin.options("/api/v1/workloads/x")
    assert answer.headers["allow"].split(", ") == ["DELETE", "GET", "HEAD", "OPTIONS", "PUT"]


@pytest.mark.parametrize(
    "ref",
    [
        "..",
        "%2e%2e",
        "..%2f..%2fetc%2fpasswd",
        "a%00b",
        "%F0%9F%92%A9",
        "x" * 300,
        "'; drop table",
        "%0d%0aa:b",
    ],
)
async def test_strange_names_find_nothing(admin, ref):
    answer = await admin.get(f"/api/v1/workloads/{ref}")
    assert answer.status_code in (404, 422)
    assert "\n" not in answer.headers.get("location", "")


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=501", "limit=x", "state=flying", "after=" + "x" * 999, "search=%00"]
)
async def test_faulty_queries_are_named(admin, query):
    is_problem(await admin.get(f"/api/v1/workloads?{query}"), 422, "INVALID")


async def test_the_same_key_twice_makes_one_workload(admin, control):
    first = await admin.post(
        "/api/v1/workloads", json={"template": "web"}, headers={"Idempotency-Key": "k1"}
    )
    second = await admin.post(
        "/api/v1/workloads", json={"template": "web"}, headers={"Idempotency-Key": "k1"}
    )
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["workload"]["id"] == second.json()["workload"]["id"]
    assert len(control.workloads.rows) == 1
    other = await admin.post(
        "/api/v1/workloads", json={"template": "ollama"}, headers={"Idempotency-Key": "k1"}
    )
    is_problem(other, 409, "IDEMPOTENCY_KEY_REUSED")
    third = await admin.post("/api/v1/workloads", json={"template": "web"})
    is_problem(third, 409, "NAME_TAKEN")


async def test_a_dry_run_says_where_and_stores_nothing(admin, control):
    answer = await admin.post("/api/v1/workloads", json={"template": "ollama", "dry_run": True})
    assert answer.status_code == 200
    assert answer.json()["workload"] is None
    preview = answer.json()["preview"]
    assert preview["starts_now"]
    assert preview["placement"]["devices"][0]["model"] == "GTX 1070"
    assert not control.workloads.rows


async def test_a_request_that_can_never_fit_carries_the_reason(admin, control):
    answer = await admin.post("/api/v1/workloads", json={"template": "vllm", "vram": "80GB"})
    body = is_problem(answer, 422, "NO_DEVICE_LARGE_ENOUGH")
    assert "24 GB (n3, RTX 3090)" in body["detail"]
    assert body["reason"]["code"] == "NO_DEVICE_LARGE_ENOUGH"
    assert not control.workloads.rows


async def test_workloads_come_in_pages(admin, control):
    for number in range(7):
        await admin.post("/api/v1/workloads", json={"template": "web", "name": f"web-{number}"})
    seen, after = [], ""
    while True:
        page = (await admin.get("/api/v1/workloads", params={"limit": 3, "after": after})).json()
        seen += [w["name"] for w in page["items"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert seen == [f"web-{number}" for number in range(7)]
    found = (await admin.get("/api/v1/workloads", params={"search": "b-3"})).json()["items"]
    assert [w["name"] for w in found] == ["web-3"]


async def test_a_workloads_whole_life(admin, control):
    made = (await admin.post("/api/v1/workloads", json={"template": "ollama"})).json()["workload"]
    control.workloads.run(made["id"])
    shown = (await admin.get("/api/v1/workloads/ollama")).json()
    assert shown["state"] == "running"
    assert shown["devices"] == [
        {"uuid": "gpu-n5-0", "node": "n5", "index": 0, "model": "GTX 1070", "vram_mib": 8192}
    ]
    gpus = (await admin.get("/api/v1/gpus")).json()
    assert [g["held_by"][0]["name"] for g in gpus if g["held_by"]] == ["ollama"]
    assert [g["free_mib"] for g in gpus if g["held_by"]] == [0]
    answer = await admin.put("/api/v1/workloads/ollama/priority", json={"priority": "high"})
    assert answer.json()["priority"] == "high"
    refused = await admin.put(
        "/api/v1/workloads/ollama", json={"template": "ollama", "vram": "6GB"}
    )
    assert refused.json()["code"] == "UPDATE_NEEDS_DOWNTIME"
    done = await admin.put(
        "/api/v1/workloads/ollama", json={"template": "ollama", "vram": "6GB", "recreate": True}
    )
    assert done.json()["workload"]["revision"] == 2
    assert (await admin.post("/api/v1/workloads/ollama/rollback", json={})).json()["workload"][
        "revision"
    ] == 3
    assert len((await admin.get("/api/v1/workloads/ollama/revisions")).json()) == 3
    assert (await admin.get("/api/v1/workloads/ollama/events")).json()["items"][0][
        "kind"
    ] == "submitted"
    assert (await admin.post("/api/v1/workloads/ollama/stop")).json()["state"] == "stopping"
    assert (await admin.delete("/api/v1/workloads/ollama")).status_code == 202
    is_problem(await admin.get("/api/v1/workloads/ollama"), 404, "NOT_FOUND")


async def test_clusters_and_users(admin, connect, control):
    made = await admin.post(
        "/api/v1/clusters", json={"name": "home", "kubeconfig": "apiVersion: v1"}
    )
    assert made.json()["taken_over"] == ["ollama"]
    assert [c["name"] for c in (await admin.get("/api/v1/clusters")).json()] == ["demo", "home"]
    assert (
        (await admin.get("/api/v1/clusters/home/kubeconfig"))
        .headers["content-type"]
        .startswith("application/yaml")
    )
    assert (await admin.delete("/api/v1/clusters/home")).status_code == 204
    is_problem(await admin.get("/api/v1/clusters/home"), 404, "NOT_FOUND")
    made = await admin.post(
        "/api/v1/users", json={"name": "new", "role": "viewer", "password": "long enough"}
    )
    assert made.json() == {**made.json(), "name": "new", "role": "viewer", "disabled": False}
    assert (
        await admin.put("/api/v1/users/new/password", json={"password": "longer yet"})
    ).status_code == 204
    assert control.access.passwords["new"] == "longer yet"
    assert (await admin.delete("/api/v1/users/new")).status_code == 204
    assert (await admin.get("/api/v1/status")).json()["leading"] is True
    assert [n["name"] for n in (await admin.get("/api/v1/nodes")).json()] == [
        "n2",
        "n3",
        "n4",
        "n5",
    ]
    assert (await admin.get("/api/v1/snapshot")).json()["format"].startswith("podwarden/snapshot")


async def test_plan_previews_files_and_stores_nothing(admin, control):
    file = "name: x\nkind: service\nimage: nginx\ngpu: {vram: 16GB}\n"
    answer = await admin.post("/api/v1/plan", json={"files": [{"source": "x.yaml", "text": file}]})
    assert answer.json()[0]["placement"]["slots"][0]["node"] == "n4"
    bad = await admin.post(
        "/api/v1/plan", json={"files": [{"source": "x.yaml", "text": "name: x"}]}
    )
    assert "x.yaml" in is_problem(bad, 422, "INVALID")["detail"]
    assert not control.workloads.rows
