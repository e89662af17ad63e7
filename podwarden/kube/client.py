"""Requests to one API server, as plain dicts, with the retries that are always safe.

No limit of our own on the rate. Every request that this room makes may be repeated: reads, server-side applies,
merge patches to a stated value, deletes with a precondition. So 429 (after its Retry-After), 5xx, time-outs and
lost connections are tried again, a bounded number of times, with a fixed back-off. An apply is forced: what PodWarden
renders, PodWarden owns, so 409 on an apply can only be a race with another writer of the same object; it is repeated.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import httpx

from podwarden.errors import Conflict, PodWardenError, Refused, Unavailable
from podwarden.kube.connect import Access, tls_context
from podwarden.kube.errors import from_answer
from podwarden.kube.kinds import kind_of, path_of
from podwarden.kube.labels import MANAGER
from podwarden.kube.transport import Direct

Json = dict[str, Any]

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
PAGE = 500
# At once. Streams stay, so that they have a pool of their own.
CONNECTIONS = 32
STREAMS = 128


@dataclass(frozen=True, slots=True)
class Retry:
    """attempts: in all. first, most: seconds before the second and at most before any. timeout: one request.

    connect: seconds for DNS, TCP and TLS together. sleep: the clock's, so that tests do not wait.
    """

    attempts: int = 5
    first: float = 0.1
    most: float = 2.0
    timeout: float = 15.0
    connect: float = 5.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def delay(self, attempt: int) -> float:
        return float(min(self.first * 2**attempt, self.most))


ONCE = Retry(attempts=1, timeout=5.0)


class Client:
    """One server. transport: the seam for tests."""

    def __init__(
        self,
        access: Access,
        *,
        retry: Retry | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.server = access.server
        self.retry = retry or Retry()
        self._headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Connection": "keep-alive",
            "User-Agent": "podwarden",
        }
        if access.token:
            self._headers["Authorization"] = f"Bearer {access.token}"
        self._extensions = (
            {"sni_hostname": access.tls_server_name} if access.tls_server_name else {}
        )
        self._sending: set[asyncio.Future[Any]] = set()
        tls = tls_context(access)

        def pool(connections: int) -> httpx.AsyncClient:
            return httpx.AsyncClient(
                trust_env=False, transport=transport or Direct(tls, connections)
            )

        self._http = pool(CONNECTIONS)
        self._streams = pool(STREAMS)

    async def close(self) -> None:
        """Waits a moment for requests whose caller has gone."""
        if self._sending:
            _, late = await asyncio.wait(set(self._sending), timeout=2.0)
            for sending in late:
                sending.cancel()
            await asyncio.gather(*self._sending, return_exceptions=True)
        await self._http.aclose()
        await self._streams.aclose()

    async def _send(self, request: httpx.Request, *, stream: bool) -> httpx.Response:
        """A connection must not be dropped half made: its socket would be left open. So a caller that is cancelled
        leaves alone, and what it asked for is put away when it comes.
        """
        http = self._streams if stream else self._http
        sending = asyncio.ensure_future(http.send(request, stream=stream))
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            leaving = asyncio.ensure_future(_put_away(sending))
            self._sending.add(leaving)
            leaving.add_done_callback(self._sending.discard)
            raise

    def _request(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str],
        *,
        seconds: float,
        content: bytes | None = None,
    ) -> httpx.Request:
        """Built here and not by httpx's client, which takes the URL apart four times on its way."""
        query = f"?{urlencode(params, quote_via=quote)}" if params else ""
        return httpx.Request(
            method,
            f"{self.server.rstrip('/')}{path}{query}",
            headers={**self._headers, **headers},
            content=content,
            extensions={**self._extensions, "timeout": self._timeout(seconds).as_dict()},
        )

    async def request(
        self,
        method: str,
        path: str,
        doing: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "",
        retry: Retry | None = None,
        repeat_conflict: bool = False,
    ) -> Json:
        """The decoded answer. Raises podwarden errors only, after the retries."""
        policy = retry or self.retry
        headers = {"Content-Type": content_type} if body is not None else {}
        if accept:
            headers["Accept"] = accept
        content = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        attempt = 0
        while True:
            delay = policy.delay(attempt)
            attempt += 1
            try:
                request = self._request(
                    method, path, params, headers, seconds=policy.timeout, content=content
                )
                answer = await self._send(request, stream=False)
            except httpx.HTTPError as error:
                failure: PodWardenError = unreachable(self.server, error)
                again = isinstance(failure, Unavailable)
            else:
                if answer.is_success:
                    return _decoded(self.server, doing, answer.content)
                failure = from_answer(self.server, doing, answer.status_code, answer.content)
                again = isinstance(failure, Unavailable) and answer.status_code != 410
                again = again or (repeat_conflict and isinstance(failure, Conflict))
                delay = max(delay, _retry_after(answer))
            if not again or attempt >= policy.attempts:
                raise failure
            await policy.sleep(delay)

    async def get(
        self, path: str, *, params: Mapping[str, str] | None = None, retry: Retry | None = None
    ) -> Json:
        return await self.request("GET", path, f"read {path}", params=params, retry=retry)

    async def pages(
        self, path: str, *, params: Mapping[str, str] | None = None, accept: str = ""
    ) -> AsyncIterator[Json]:
        """A whole list, page by page. Expired when it took so long that its point in time is gone."""
        asked = {**(params or {}), "limit": str(PAGE)}
        while True:
            page = await self.request("GET", path, f"list {path}", params=asked, accept=accept)
            yield page
            token = page.get("metadata", {}).get("continue")
            if not token:
                return
            asked["continue"] = token

    async def list(
        self, path: str, *, params: Mapping[str, str] | None = None, accept: str = ""
    ) -> list[Json]:
        return [
            item
            async for page in self.pages(path, params=params, accept=accept)
            for item in page.get("items") or ()
        ]

    async def apply(self, obj: Json) -> Json:
        """Server-side apply, forced. Conflict (code STILL_REMOVING) when the object is on its way out."""
        doing = f"apply {obj['kind']} {obj['metadata']['name']}"
        answer = await self.request(
            "PATCH",
            path_of(obj),
            doing,
            params={"fieldManager": MANAGER, "force": "true"},
            body=obj,
            content_type=APPLY,
            repeat_conflict=True,
        )
        if answer.get("metadata", {}).get("deletionTimestamp"):
            name = f"{kind_of(obj).name} {obj['metadata']['name']}"
            raise Conflict(
                f"{self.server} is still removing the earlier {name}.", code="STILL_REMOVING"
            )
        return answer

    async def patch(self, path: str, body: Json, *, content_type: str = MERGE) -> Json:
        return await self.request(
            "PATCH",
            path,
            f"change {path}",
            params={"fieldManager": MANAGER},
            body=body,
            content_type=content_type,
        )

    @asynccontextmanager
    async def stream(
        self, path: str, doing: str, *, params: Mapping[str, str], accept: str = "", silence: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Raw chunks of a long answer. silence: seconds without a byte after which it counts as dead."""
        headers = {"Accept": accept} if accept else {}
        request = self._request("GET", path, params, headers, seconds=silence)
        try:
            answer = await self._send(request, stream=True)
        except httpx.HTTPError as error:
            raise unreachable(self.server, error) from error
        try:
            if not answer.is_success:
                body = await answer.aread()
                raise from_answer(self.server, doing, answer.status_code, body)
            yield answer.aiter_raw()
        except httpx.HTTPError as error:
            raise unreachable(self.server, error) from error
        finally:
            await answer.aclose()

    def _timeout(self, seconds: float) -> httpx.Timeout:
        return httpx.Timeout(seconds, connect=min(self.retry.connect, seconds), pool=60.0)


async def _put_away(sending: asyncio.Future[httpx.Response]) -> None:
    with suppress(httpx.HTTPError):
        answer = await sending
        await answer.aclose()


def unreachable(server: str, error: Exception) -> PodWardenError:
    """The sentence for a request that got no answer. Refused when asking again cannot help."""
    for cause in _causes(error):
        known = _known_cause(server, cause)
        if known is not None:
            return known
    if isinstance(error, httpx.ConnectTimeout):
        text = f"{server} does not answer. Check the address, the network and the firewall."
    elif isinstance(error, httpx.TimeoutException):
        text = f"{server} did not answer in time."
    else:
        text = f"The connection to {server} broke. PodWarden tries again."
    return Unavailable(text)


def _known_cause(server: str, cause: BaseException) -> PodWardenError | None:
    if isinstance(cause, ssl.SSLCertVerificationError):
        text = f"{server} shows a certificate that this kubeconfig does not vouch for ({_reason(cause)})."
        return Refused(f"{text} Give the kubeconfig of this cluster.", code="CLUSTER_CERTIFICATE")
    if isinstance(cause, ssl.SSLError):
        text = f"{server} does not speak TLS as expected ({_reason(cause)})."
        return Unavailable(f"{text} Check the address and port.")
    if isinstance(cause, socket.gaierror):
        host = urlsplit(server).hostname or server
        return Unavailable(
            f"{server}: the name {host} cannot be resolved. Check the address, or the DNS."
        )
    if isinstance(cause, ConnectionRefusedError):
        text = f"{server} refuses connections. Check that the cluster runs, and the port."
        return Unavailable(text)
    return None


def _reason(cause: ssl.SSLError) -> str:
    said = getattr(cause, "verify_message", "") or getattr(cause, "reason", "")
    return str(said or "no reason given")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Each once: a connection that breaks while it is being closed chains errors in a circle."""
    left: list[BaseException | None] = [error]
    seen: set[int] = set()
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        left.append(one.__cause__ or one.__context__)
        if isinstance(one, BaseExceptionGroup):
            left.extend(reversed(one.exceptions))


def _decoded(server: str, doing: str, content: bytes) -> Json:
    try:
        answer = json.loads(content) if content else {}
    except ValueError as error:
        raise Unavailable(f"{server} answered with something that is no JSON: {doing}.") from error
    if not isinstance(answer, dict):
        raise Unavailable(f"{server} answered with something unexpected: {doing}.")
    return answer


def _retry_after(answer: httpx.Response) -> float:
    raw = answer.headers.get("Retry-After", "")
    return min(float(raw), 10.0) if raw.isascii() and raw.isdigit() else 0.0
