"""Logins of private registries: the test of one, and the form in which nodes are given it.

The same two steps that a node's container runtime takes: the registry's `/v2/` says how it wants to be asked, by name
and password itself (Basic) or by a token that its own server gives for them (Bearer).
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import ssl
from urllib.parse import urlsplit

import httpx

from podwarden.errors import Invalid

WITHIN = 10.0  # seconds for the whole test
MOST = 64 * 1024  # bytes of an answer that are read
HUB = "docker.io"
_HUB_API, _HUB_KEY = "registry-1.docker.io", "https://index.docker.io/v1/"
FIX = "a registry such as ghcr.io or registry.home:5000"

_HOST = re.compile(
    r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?|\[[0-9a-f:]{2,39}\])(?::\d{1,5})?", re.ASCII
)
_PARAMETER = re.compile(r'([a-zA-Z]+)="([^"]{0,2000})"')


def registry_of(text: str) -> tuple[str, str]:
    """`registry.home:5000` -> (`https`, `registry.home:5000`); `http://…` says that it has no certificate.

    Invalid names the field `registry`.
    """
    scheme, host = "https", text.strip().lower().rstrip("/")
    for each in ("https", "http"):
        if host.startswith(f"{each}://"):
            scheme, host = each, host.removeprefix(f"{each}://")
    if not _HOST.fullmatch(host):
        raise Invalid.of("registry", text, f"{FIX}, without the name of an image")
    hub = host in (HUB, "index.docker.io", _HUB_API)
    return scheme, HUB if hub else host


def docker_config(host: str, user: str, password: str) -> str:
    """As `docker login` leaves it: what a node's container runtime reads."""
    key = _HUB_KEY if host == HUB else host
    login = {"username": user, "password": password, "auth": _basic(user, password)}
    return json.dumps({"auths": {key: login}})


def _basic(user: str, password: str) -> str:
    return base64.b64encode(f"{user}:{password}".encode()).decode()


async def check_login(
    registry: str,
    user: str,
    password: str,
    *,
    transport: httpx.AsyncBaseTransport | None = None,
    within: float = WITHIN,
) -> str:
    """The registry's host, once it took the login. Nothing is sent to it before it asked.

    Invalid names `registry` (no answer in time, or no registry) or `user` (the login is refused), with the cause.
    """
    scheme, host = registry_of(registry)
    client = httpx.AsyncClient(
        transport=transport,
        timeout=within,
        verify=ssl.create_default_context(),
        follow_redirects=False,
        trust_env=False,
    )
    try:
        async with asyncio.timeout(within), client:
            await _Login(client, scheme, host, user, password).run()
    except TimeoutError as error:
        raise _away(host, f"no answer within {within:g} s") from error
    except httpx.HTTPError as error:
        raise _away(host, _cause(error)) from error
    except (httpx.InvalidURL, ValueError, RecursionError) as error:
        raise _away(host, "its answer could not be understood") from error
    return host


class _Login:
    def __init__(
        self, client: httpx.AsyncClient, scheme: str, host: str, user: str, password: str
    ) -> None:
        self._client = client
        self._host = host
        self._root = f"{scheme}://{_HUB_API if host == HUB else host}/v2/"
        self._user = user
        self._basic = f"Basic {_basic(user, password)}"

    async def run(self) -> None:
        status, headers, _ = await self._get(self._root)
        if status != httpx.codes.UNAUTHORIZED:
            if status == httpx.codes.OK:
                return  # it lets everybody in: a login does no harm
            raise _away(self._host, f"it answers {status}, which no registry does")
        way, _, rest = headers.get("WWW-Authenticate", "").partition(" ")
        if way.lower() == "basic":
            status, _, _ = await self._get(self._root, self._basic)
        elif way.lower() == "bearer":
            status = await self._by_token(dict(_PARAMETER.findall(rest)))
        else:
            raise _away(self._host, "it does not say how to log in")
        if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            raise Invalid.of(
                "user", self._user, f"{self._host} refuses this name with this password or token"
            )
        if status != httpx.codes.OK:
            raise _away(self._host, f"it answers {status} to the login")

    async def _by_token(self, asked: dict[str, str]) -> int:
        realm = asked.get("realm", "")
        if not self._may_ask(realm):
            raise _away(self._host, "it sends the login to an address that is not encrypted")
        query = {"service": asked["service"]} if "service" in asked else {}
        url = httpx.URL(realm, params={**query, "account": self._user})
        status, _, body = await self._get(url, self._basic)
        if status != httpx.codes.OK:
            return status
        answer = json.loads(body)
        token = (answer.get("token") or answer.get("access_token")) if isinstance(answer, dict) else ""  # fmt: skip
        if (
            not token
            or not isinstance(token, str)
            or not token.isascii()
            or not token.isprintable()
        ):
            raise _away(self._host, "it gives no token for the login")
        status, _, _ = await self._get(self._root, f"Bearer {token}")
        return status

    def _may_ask(self, realm: str) -> bool:
        """A password goes over an encrypted line, or to the very registry that has none."""
        parts = urlsplit(realm)
        plain = self._root.startswith("http://") and parts.netloc == self._host
        return bool(parts.netloc) and (parts.scheme == "https" or (parts.scheme == "http" and plain))  # fmt: skip

    async def _get(
        self, url: httpx.URL | str, authorization: str = ""
    ) -> tuple[int, httpx.Headers, bytes]:
        body = b""
        headers = {"Authorization": authorization} if authorization else {}
        async with self._client.stream("GET", url, headers=headers) as answer:
            async for part in answer.aiter_bytes():
                body += part
                if len(body) > MOST:
                    break
        return answer.status_code, answer.headers, body[:MOST]


def _away(host: str, cause: str) -> Invalid:
    return Invalid.of("registry", host, f"a registry that answers and can be logged in to; {cause}")


def _cause(error: httpx.HTTPError) -> str:
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted here ({inner.verify_message})"
        if isinstance(inner, ssl.SSLError):
            return (
                "it does not speak TLS on this port; http:// in front of it says that it has none"
            )
        inner = inner.__cause__ or inner.__context__
    return str(error) or type(error).__name__
