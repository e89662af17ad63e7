"""Logins of registries: both ways to ask, every way to fail, and that a password goes nowhere it should not."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable

import httpx
import pytest

from podwarden.errors import Invalid
from podwarden.kube.registry import check_login, docker_config, registry_of

PASSWORD = "hunter2 ü"
BASIC = "Basic " + base64.b64encode(f"ann:{PASSWORD}".encode()).decode()
Handler = Callable[[httpx.Request], httpx.Response]


class Registry:
    """A registry with a token server, as the distribution specification describes them."""

    def __init__(self, *, way: str = "bearer", realm: str = "https://auth.home/token") -> None:
        self.way, self.realm = way, realm
        self.asked: list[tuple[str, str]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        login = request.headers.get("Authorization", "")
        self.asked.append((str(request.url.copy_with(query=None)), login))
        if request.url.path == "/token":
            assert request.url.params["account"] == "ann"
            assert request.url.params["service"] == "home registry"
            return httpx.Response(200, json={"token": "t0k"}) if login == BASIC else httpx.Response(401)  # fmt: skip
        if login in (BASIC if self.way == "basic" else "", "Bearer t0k") and login:
            return httpx.Response(200)
        says = {
            "basic": 'Basic realm="home"',
            "bearer": f'Bearer realm="{self.realm}",service="home registry"',
        }
        return httpx.Response(401, headers={"WWW-Authenticate": says.get(self.way, self.way)})


async def login(handler: Handler, registry: str = "r.home:5000", password: str = PASSWORD) -> str:
    return await check_login(registry, "ann", password, transport=httpx.MockTransport(handler))


async def refused(handler: Handler, **more: str) -> tuple[str, str, str]:
    with pytest.raises(Invalid) as caught:
        await login(handler, **more)
    (problem,) = caught.value.problems
    assert PASSWORD not in str(caught.value)
    return problem.field, problem.value, problem.fix


async def test_a_token_is_fetched_and_tried() -> None:
    registry = Registry()
    assert await login(registry) == "r.home:5000"
    assert registry.asked == [
        ("https://r.home:5000/v2/", ""),
        ("https://auth.home/token", BASIC),
        ("https://r.home:5000/v2/", "Bearer t0k"),
    ]


async def test_name_and_password_where_the_registry_asks_for_them_itself() -> None:
    registry = Registry(way="basic")
    await login(registry)
    assert [said for _, said in registry.asked] == ["", BASIC]


async def test_the_hub_is_asked_under_its_own_name() -> None:
    registry = Registry()
    assert await login(registry, "https://index.docker.io/") == "docker.io"
    assert registry.asked[0] == ("https://registry-1.docker.io/v2/", "")


@pytest.mark.parametrize("way", ["basic", "bearer"])
async def test_a_wrong_password_is_refused(way: str) -> None:
    field, value, fix = await refused(Registry(way=way), password="wrong")
    assert (field, value) == ("user", "ann")
    assert "r.home:5000 refuses" in fix


@pytest.mark.parametrize("realm", ["http://auth.home/token", "ftp://auth.home/token", "/token", ""])
async def test_no_password_goes_over_an_open_line(realm: str) -> None:
    registry = Registry(realm=realm)
    field, _, fix = await refused(registry)
    assert field == "registry"
    assert "not encrypted" in fix
    assert [said for _, said in registry.asked] == [""]


async def test_a_registry_without_certificate_has_to_be_called_so() -> None:
    registry = Registry(realm="http://r.home:5000/token")
    await login(registry, "http://r.home:5000")
    other = Registry(realm="http://elsewhere/token")
    assert "not encrypted" in (await refused(other, registry="http://r.home:5000"))[2]


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (httpx.Response(404), "answers 404"),
        (httpx.Response(302, headers={"Location": "https://evil/"}), "answers 302"),
        (httpx.Response(401), "does not say how to log in"),
        (httpx.Response(401, headers={"WWW-Authenticate": "Negotiate"}), "does not say how"),
        (httpx.Response(503), "answers 503"),
    ],
)
async def test_what_is_no_registry(answer: httpx.Response, cause: str) -> None:
    assert cause in (await refused(lambda _: answer))[2]


@pytest.mark.parametrize("body", ["[]", "{}", '{"token": 5}', '{"token": "a\\nb"}', "no json", "[" * 100_000])  # fmt: skip
async def test_a_token_server_that_talks_nonsense(body: str) -> None:
    registry = Registry()

    def handler(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/token":
            return httpx.Response(200, text=body)
        return registry(request)

    field, _, fix = await refused(handler)
    assert field == "registry"
    assert "token" in fix or "understood" in fix


async def test_silence_ends_in_time() -> None:
    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(never, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        with pytest.raises(Invalid, match=r"no answer within 0\.3 s"):
            await check_login(f"http://127.0.0.1:{port}", "ann", PASSWORD, within=0.3)
    with pytest.raises(Invalid, match=r"registry 127\.0\.0\.1:\d+: "):
        await check_login(f"http://127.0.0.1:{port}", "ann", PASSWORD)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ghcr.io", ("https", "ghcr.io")),
        ("https://Registry.Home:5000/", ("https", "registry.home:5000")),
        ("http://10.0.0.7:5000", ("http", "10.0.0.7:5000")),
        ("[fd00::1]:5000", ("https", "[fd00::1]:5000")),
        ("registry-1.docker.io", ("https", "docker.io")),
    ],
)
def test_registries_as_people_type_them(text: str, found: tuple[str, str]) -> None:
    assert registry_of(text) == found


@pytest.mark.parametrize("text", ["", "ghcr.io/team", "ann@ghcr.io", "ftp://x", "a b", "x:port", "ü"])  # fmt: skip
def test_what_cannot_be_a_registry(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        registry_of(text)
    assert caught.value.problems[0].field == "registry"


def test_the_login_as_a_node_reads_it() -> None:
    config = json.loads(docker_config("r.home:5000", "ann", PASSWORD))
    assert config == {
        "auths": {"r.home:5000": {"username": "ann", "password": PASSWORD, "auth": BASIC[6:]}}
    }
    assert list(json.loads(docker_config("docker.io", "a", "b"))["auths"]) == [
        "https://index.docker.io/v1/"
    ]
