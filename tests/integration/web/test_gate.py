"""Who gets in, from where, with what: login, tokens, cookies, other sites, other host names, large bodies."""

from __future__ import annotations

from datetime import timedelta

import httpx
import pytest

PAGE = {"Sec-Fetch-Site": "same-origin"}


async def page_login(client: httpx.AsyncClient, name="admin", password="right horse"):
    return await client.post("/login", data={"name": name, "password": password}, headers=PAGE)


def every_route(web) -> list[tuple[str, str]]:
    """All (method, path) that OpenAPI describes, with an example in place of each parameter."""
    found = []
    for template, methods in web.openapi()["paths"].items():
        path = template
        for parameter in ("{ref}", "{name}", "{token}"):
            path = path.replace(parameter, "something")
        found += [(method.upper(), path) for method in methods]
    return found


async def test_nothing_is_answered_without_a_token_but_health_and_the_login(web, connect):
    async with connect() as client:
        routes = every_route(web)
        assert len(routes) > 30
        for method, path in routes:
            answer = await client.request(method, path)
            if path == "/healthz":
                assert answer.status_code == 200
            elif (method, path) == ("POST", "/api/v1/session"):
                assert answer.status_code == 422
            else:
                assert answer.status_code == 401, (method, path)
                assert answer.json()["code"] == "UNAUTHENTICATED"


@pytest.mark.parametrize(
    "path", ["/api/v1/openapi.json", "/api/v1/nothing", "/docs", "/metrics", "/x"]
)
async def test_what_does_not_exist_is_hidden_too(connect, path):
    async with connect() as client:
        assert (await client.get(path)).status_code in (401, 303)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer pw_wrong",
        "Basic YWRtaW46",
        "pw_x",
        "Bearer \x00",
        "bearer a b",
    ],
)
async def test_a_wrong_token_is_no_token(connect, value):
    async with connect() as client:
        answer = await client.get("/api/v1/gpus", headers={"Authorization": value.encode()})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_an_expired_and_a_revoked_token_end(connect, control):
    old = control.token("admin", timedelta(seconds=-1))
    async with connect(old) as client:
        assert (await client.get("/api/v1/gpus")).status_code == 401
    secret = control.token("admin")
    async with connect(secret) as client:
        made = (await client.post("/api/v1/tokens", json={"label": "x", "days": 3})).json()
        assert made["token"].startswith("pw_")
        assert made["expires_at"] is not None
        assert "token" not in (await client.get("/api/v1/tokens")).json()[0]
        assert (await client.delete(f"/api/v1/tokens/{made['id']}")).status_code == 204
    async with connect(made["token"]) as client:
        assert (await client.get("/api/v1/gpus")).status_code == 401


async def test_a_session_by_the_api_and_its_end(connect):
    async with connect() as client:
        made = await client.post("/api/v1/session", json={"name": "mel", "password": "member pass"})
    assert made.status_code == 201
    assert "set-cookie" not in made.headers
    async with connect(made.json()["token"]) as client:
        assert (await client.get("/api/v1/session")).json()["role"] == "member"
        assert (await client.delete("/api/v1/session")).status_code == 204
        assert (await client.get("/api/v1/session")).status_code == 401


async def test_the_page_login_sets_a_cookie_that_scripts_and_other_sites_cannot_use(connect):
    async with connect() as client:
        answer = await page_login(client)
        assert answer.status_code == 303
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert (await client.get("/")).status_code == 200
        assert (await client.get("/api/v1/gpus")).status_code == 200


async def test_pages_lead_to_the_login_and_back_but_never_to_another_site(connect):
    async with connect() as client:
        answer = await client.get("/")
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")
        for target in (
            "https://evil.example/",
            "//evil.example",
            "/\\evil.example",
            "/a\r\nb: c",
            "javascript:1",
        ):
            answer = await client.post(
                "/login",
                data={"name": "admin", "password": "right horse", "next": target},
                headers=PAGE,
            )
            assert answer.headers["location"] == "/"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 201),
        ({"Origin": "http://127.0.0.1:8080"}, 201),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1:8080"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:9999"}, 403),
        ({"Origin": "null"}, 403),
        ({}, 403),
    ],
)
async def test_a_write_by_cookie_must_come_from_our_own_pages(connect, headers, status):
    async with connect() as client:
        await page_login(client)
        answer = await client.post("/api/v1/tokens", json={"label": "x"}, headers=headers)
        assert answer.status_code == status
        assert (await client.get("/api/v1/gpus", headers=headers)).status_code == 200


async def test_another_site_cannot_log_anyone_in_or_out(connect):
    async with connect() as client:
        answer = await client.post(
            "/login",
            data={"name": "admin", "password": "right horse"},
            headers={"Sec-Fetch-Site": "cross-site"},
        )
        assert answer.status_code == 403
        await page_login(client)
        assert (
            await client.post("/logout", headers={"Sec-Fetch-Site": "cross-site"})
        ).status_code == 403
        assert (await client.get("/")).status_code == 200
        assert (await client.post("/logout", headers=PAGE)).status_code == 303
        assert (await client.get("/")).status_code == 303


async def test_a_token_in_a_cookie_is_no_login(connect, control):
    async with connect(cookie=f"podwarden_session={control.token()}") as client:
        assert (await client.get("/api/v1/gpus")).status_code == 401


async def test_a_token_needs_no_origin(connect, control):
    async with connect(control.token(), origin="http://evil.example") as client:
        assert (await client.post("/api/v1/tokens", json={})).status_code == 201


async def test_wrong_passwords_are_slowed_down_for_that_name_and_address(connect, control, ticks):
    async with connect() as client:
        for left in (4, 3, 2, 1, 0):
            answer = await page_login(client, password="guess")
            assert answer.status_code == 401
            assert (f"{left} tr" in answer.text) or left == 0
        checks = control.access.checks
        answer = await page_login(client)
        assert answer.status_code == 429
        assert "60 s" in answer.text
        answer = await client.post(
            "/api/v1/session", json={"name": "admin", "password": "right horse"}
        )
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "60"
        assert control.access.checks == checks, "a paused login costs no password check"
        assert (await page_login(client, "mel", "member pass")).status_code == 303
        ticks[0] += 61
        assert (await page_login(client)).status_code == 303


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8080", 200),
        ("localhost:8080", 200),
        ("[::1]:8080", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example:8080", 421),
        ("10.1.2.3", 421),
        ("", 421),
        ("a b", 421),
        ("[::1", 421),
    ],
)
async def test_only_our_own_names_are_answered(connect, host, status):
    async with connect() as client:
        assert (await client.get("/healthz", headers={"Host": host})).status_code == status


async def test_the_address_the_connection_came_in_on_is_a_name_of_ours(web):
    transport = httpx.ASGITransport(app=web)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://192.168.1.31:8080"
    ) as client:
        assert (await client.get("/healthz")).status_code == 200
    async with httpx.AsyncClient(
        transport=transport, base_url="http://podwarden.evil:8080"
    ) as client:
        assert (await client.get("/healthz")).status_code == 421


@pytest.mark.parametrize(
    "path", ["/", "/login", "/static/live.js", "/api/v1/gpus", "/healthz", "/nothing"]
)
async def test_every_answer_carries_the_security_headers(connect, path):
    async with connect() as client:
        answer = await client.get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    if not path.startswith("/static"):
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/static/%2e%2e%2f%2e%2e%2fpyproject.toml",
        "/static/",
    ],
)
async def test_static_gives_nothing_but_its_own_files(connect, control, path):
    async with connect(control.token()) as client:
        answer = await client.get(path)
    assert answer.status_code in (404, 405)
    assert "root:" not in answer.text
    assert "import" not in answer.text


async def test_a_viewer_changes_nothing_and_a_member_only_what_is_theirs(connect, control):
    async with connect(control.token("mel")) as mel:
        assert (await mel.post("/api/v1/workloads", json={"template": "web"})).status_code == 201
    async with connect(control.token("vic")) as vic:
        answer = await vic.post("/api/v1/workloads", json={"template": "ollama"})
        assert (answer.status_code, answer.json()["code"]) == (403, "FORBIDDEN")
        assert (await vic.post("/api/v1/workloads/web/stop")).status_code == 403
        assert (await vic.get("/api/v1/workloads/web")).status_code == 200
