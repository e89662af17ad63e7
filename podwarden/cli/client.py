"""The API as the commands call it: JSON in and out, problems as failures with the right exit code."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx

from podwarden.cli import credentials
from podwarden.cli.failure import NOT_REACHABLE, REFUSED, Failure, Gone

TIMEOUT = httpx.Timeout(30.0, connect=5.0)  # seconds; a plan over many nodes may take some


class Api:
    """One server. Use it as a context manager. transport: for tests."""

    def __init__(
        self, target: credentials.Target | None = None, transport: httpx.BaseTransport | None = None
    ) -> None:
        self.target = target or credentials.target()
        headers = {"Accept": "application/json"}
        if self.target.token:
            headers["Authorization"] = f"Bearer {self.target.token}"
        address = urlsplit(self.target.server)
        self._http = httpx.Client(
            base_url=f"{self.target.server}/api/v1",
            headers=headers,
            timeout=TIMEOUT,
            transport=transport,
            # A proxy of the environment never stands between this machine and itself.
            trust_env=address.hostname not in ("127.0.0.1", "localhost", "::1"),
            verify=_trust(address.scheme),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()

    def get(self, *path: str, **params: Any) -> Any:
        return self._json("GET", path, params)

    def text(self, *path: str, **params: Any) -> str:
        return self._ask("GET", path, params).text

    def post(self, *path: str, body: Any = None, key: str = "", **params: Any) -> Any:
        """key: the same one makes one workload however often it is sent."""
        headers = {"Idempotency-Key": key} if key else None
        return self._json("POST", path, params, body, headers)

    def put(self, *path: str, body: Any, **params: Any) -> Any:
        return self._json("PUT", path, params, body)

    def delete(self, *path: str, **params: Any) -> Any:
        return self._json("DELETE", path, params)

    @contextmanager
    def lines(
        self, *path: str, read: float | None = None, **params: Any
    ) -> Iterator[Iterator[str]]:
        """A streamed answer line by line; read: seconds without a line until httpx.ReadTimeout."""
        timeout = httpx.Timeout(30.0, connect=5.0, read=read)
        with (
            self._reachable(),
            self._http.stream("GET", _path(path), params=_given(params), timeout=timeout) as answer,
        ):
            if answer.is_error:
                answer.read()
                raise _failure(answer)
            yield answer.iter_lines()

    def _json(
        self,
        method: str,
        path: tuple[str, ...],
        params: dict[str, Any],
        body: Any = None,
        headers: dict[str, str] | None = None,
    ) -> Any:
        answer = self._ask(method, path, params, body, headers)
        if answer.status_code == 204 or not answer.content:
            return None
        try:
            return answer.json()
        except ValueError as error:
            raise self._no_podwarden() from error

    def _ask(
        self,
        method: str,
        path: tuple[str, ...],
        params: dict[str, Any],
        body: Any = None,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        try:
            with self._reachable():
                answer = self._http.request(
                    method, _path(path), params=_given(params), json=body, headers=headers
                )
        except httpx.ReadTimeout as error:
            raise Failure(
                f"PodWarden at {self.target.server} took longer than {TIMEOUT.read:.0f} s to answer. "
                "What was asked for may still be done: look before asking again.",
                NOT_REACHABLE,
            ) from error
        if answer.is_error:
            raise _failure(answer)
        if answer.is_redirect:
            raise self._no_podwarden()
        return answer

    @contextmanager
    def _reachable(self) -> Iterator[None]:
        try:
            yield
        except httpx.ReadTimeout:
            raise
        except httpx.TransportError as error:
            raise Failure(
                f"PodWarden at {self.target.server} cannot be reached ({_cause(error)}). "
                "Start it with `podwarden up` or `podwarden demo`, or name another with PODWARDEN_SERVER.",
                NOT_REACHABLE,
            ) from error
        except (httpx.InvalidURL, UnicodeError) as error:
            raise Failure(f"{self.target.server} is no address: {error}.") from error

    def _no_podwarden(self) -> Failure:
        return Failure(f"{self.target.server} answers, but not as PodWarden does.", NOT_REACHABLE)


def _trust(scheme: str) -> ssl.SSLContext | bool:
    """Reading the system's certificates takes a while; without https none are needed, and none trusted."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if scheme == "http" else True


def _path(parts: tuple[str, ...]) -> str:
    return "/" + "/".join(quote(part, safe="") for part in parts)


def _given(params: dict[str, Any]) -> dict[str, Any]:
    return {
        name: ("true" if value is True else "false" if value is False else value)
        for name, value in params.items()
        if value is not None and value != ""
    }


def _cause(error: Exception) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    text = str(error).lower()
    if "refused" in text:
        return "nothing listens there"
    if "name or service" in text or "name resolution" in text:
        return "no computer of that name is known"
    return str(error) or type(error).__name__


def _failure(answer: httpx.Response) -> Failure:
    """The problem in one sentence, each faulty field in its own line."""
    try:
        body = answer.json()
        code, detail = str(body["code"]), str(body["detail"])
    except (ValueError, KeyError, TypeError):
        return Failure(f"The server answered {answer.status_code}, not as PodWarden does.")
    if answer.status_code == 503:
        return Failure(f"not now: {detail}", NOT_REACHABLE, details=body)
    if answer.status_code == 401:
        asked_for_login = answer.request.url.path.endswith("/session")
        return Failure(detail if asked_for_login else f"{detail} (`podwarden login`)", details=body)
    if answer.status_code == 404:
        return Gone(f"refused: {detail}", details=body)
    problems = body.get("problems") or []
    if len(problems) > 1:
        lines = "\n".join(f"  {_problem(problem)}" for problem in problems)
        return Failure(f"refused: {len(problems)} faults:\n{lines}", details=body)
    remedy = (body.get("reason") or {}).get("remedy", "")
    named = "" if code in ("REFUSED", "INVALID", "CONFLICT", "FORBIDDEN") else f"{code}: "
    text = f"refused: {named}{detail}" + (f" {remedy}" if remedy else "")
    return Failure(text, REFUSED, details=body)


def _problem(problem: dict[str, Any]) -> str:
    where = f"line {problem['line']}: " if problem.get("line") else ""
    value = f" {problem['value']}" if problem.get("value") else ""
    return f"{where}{problem['field']}{value}: {problem['fix']}"
