"""Requests: what is tried again, what is said, and that no secret leaves through an error."""

from __future__ import annotations

import json
import socket
import ssl

import httpx
import pytest
from doubles import SERVER, Naps, Script, client_of, listed, status

from podwarden.errors import Conflict, FenceLost, NotFound, PodWardenError, Refused, Unavailable
from podwarden.kube.client import Retry, unreachable
from podwarden.kube.errors import Expired, Immutable, NoAccess, from_event

OK = httpx.Response(200, json={"kind": "Pod", "metadata": {"name": "a"}})
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "a", "namespace": "podwarden"},
}
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "podwarden"}}


@pytest.mark.parametrize(
    "failure",
    [
        status(500, "etcd"),
        status(503),
        status(504),
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("closed"),
        httpx.ReadError("reset"),
    ],
)
async def test_what_may_pass_is_tried_again(failure: httpx.Response | Exception) -> None:
    naps, script = Naps(), Script(failure, failure, OK)
    client = client_of(script, naps)
    assert (await client.get("/api/v1/x"))["metadata"]["name"] == "a"
    assert naps.taken == [0.1, 0.2]
    await client.close()


async def test_tries_are_bounded_and_the_wait_grows_to_its_limit() -> None:
    naps = Naps()
    client = client_of(Script(status(500)), naps, attempts=8)
    with pytest.raises(Unavailable, match="overloaded or restarting"):
        await client.get("/api/v1/x")
    assert naps.taken == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    await client.close()


async def test_too_many_requests_waits_as_told() -> None:
    naps = Naps()
    patient = httpx.Response(429, headers={"Retry-After": "3"}, json={})
    odd = httpx.Response(429, headers={"Retry-After": "soon"}, json={})
    endless = httpx.Response(429, headers={"Retry-After": "86400"}, json={})
    client = client_of(Script(patient, odd, endless, OK), naps)
    await client.get("/api/v1/x")
    assert naps.taken == [3.0, 0.2, 10.0]
    await client.close()


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 410, 422])
async def test_an_answer_that_will_not_change_is_not_asked_again(code: int) -> None:
    script = Script(status(code, "no"))
    client = client_of(script)
    with pytest.raises(PodWardenError):
        await client.get("/api/v1/x")
    assert len(script.requests) == 1
    await client.close()


async def test_an_apply_is_forced_named_and_repeated_after_a_race() -> None:
    script = Script(status(409, "the object has been modified"), OK)
    client = client_of(script)
    await client.apply(MAP)
    assert len(script.requests) == 2
    request = script.requests[1]
    assert request.method == "PATCH"
    assert request.url.path == "/api/v1/namespaces/podwarden/configmaps/a"
    assert dict(request.url.params) == {"fieldManager": "podwarden", "force": "true"}
    assert request.headers["Content-Type"] == "application/apply-patch+yaml"
    assert request.headers["Authorization"] == "Bearer secret-token"
    assert json.loads(request.content) == MAP
    await client.close()


async def test_an_apply_to_what_is_going_is_a_conflict() -> None:
    going = {"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    client = client_of(Script(httpx.Response(200, json=going)))
    with pytest.raises(Conflict) as caught:
        await client.apply(MAP)
    assert caught.value.code == "STILL_REMOVING"
    await client.close()


@pytest.mark.parametrize(
    ("code", "message", "kind", "word"),
    [
        (401, "Unauthorized", NoAccess, "credentials"),
        (403, "User x cannot get", NoAccess, "administrator"),
        (403, "exceeded quota: gpus", Refused, "exceeded quota"),
        (403, "admission webhook 'x' denied the request", Refused, "denied"),
        (404, "not found", NotFound, "does not exist"),
        (409, "changed", Conflict, "changed"),
        (410, "too old", Expired, "too old"),
        (422, "field is immutable", Immutable, "immutable"),
        (422, "spec: Required value", Refused, "Required value"),
        (403, "ValidatingAdmissionPolicy 'podwarden-fence' denied", FenceLost, "Another PodWarden"),
        (422, "ValidatingAdmissionPolicy 'podwarden-fence' denied", FenceLost, "Another PodWarden"),
        (400, "bad", Refused, "bad"),
    ],
)
async def test_each_answer_has_its_error(
    code: int, message: str, kind: type[PodWardenError], word: str
) -> None:
    client = client_of(Script(status(code, message)))
    with pytest.raises(kind) as caught:
        await client.apply(SERVICE)
    assert type(caught.value) is kind
    assert word in caught.value.message
    assert SERVER in caught.value.message
    await client.close()


@pytest.mark.parametrize(
    "answer",
    [
        status(422, 'Deployment.apps "a" is invalid: spec.env: Invalid value: "hunter2": too long'),
        status(422, "spec: Invalid value: {Name:x Value:hunter2}: must be empty"),
        status(
            400, 'Secret in version "v1" cannot be handled: hunter2', details={"kind": "secrets"}
        ),
        httpx.Response(400, text="<html>hunter2</html>"),
        httpx.Response(502, text="hunter2 " * 1000),
    ],
)
async def test_no_value_of_a_refused_object_gets_out(answer: httpx.Response) -> None:
    client = client_of(Script(answer), attempts=1)
    with pytest.raises(PodWardenError) as caught:
        await client.apply(SERVICE)
    assert "hunter2" not in str(caught.value)
    assert "secret-token" not in str(caught.value)
    assert len(str(caught.value)) < 600
    await client.close()


def test_an_error_inside_a_watch_is_the_same_error() -> None:
    assert isinstance(from_event(SERVER, "watch x", {"code": 410, "message": "old"}), Expired)
    assert isinstance(from_event(SERVER, "watch x", {"message": "?"}), Unavailable)


@pytest.mark.parametrize(
    ("cause", "words", "kind"),
    [
        (socket.gaierror(-2, "Name or service not known"), "cannot be resolved", Unavailable),
        (ConnectionRefusedError(111, "refused"), "refuses connections", Unavailable),
        (
            ExceptionGroup("all", [OSError("x"), ConnectionRefusedError(111, "r")]),
            "refuses",
            Unavailable,
        ),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong"), "TLS", Unavailable),
        (ssl.SSLCertVerificationError(1, "self-signed"), "does not vouch", Refused),
        (None, "broke", Unavailable),
    ],
)
def test_no_answer_says_server_cause_and_fix(
    cause: BaseException | None, words: str, kind: type[PodWardenError]
) -> None:
    error = httpx.ConnectError("failed")
    error.__cause__ = cause
    said = unreachable(SERVER, error)
    assert type(said) is kind
    assert words in said.message
    assert "cluster.test" in said.message


def test_time_outs_are_told_apart() -> None:
    assert "firewall" in unreachable(SERVER, httpx.ConnectTimeout("t")).message
    assert "in time" in unreachable(SERVER, httpx.ReadTimeout("t")).message


async def test_a_certificate_that_is_wrong_is_not_tried_again() -> None:
    error = httpx.ConnectError("tls")
    error.__cause__ = ssl.SSLCertVerificationError(1, "self-signed")
    script = Script(error)
    client = client_of(script)
    with pytest.raises(Refused):
        await client.get("/version")
    assert len(script.requests) == 1
    await client.close()


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b'"x"', b"\xff"])
async def test_an_answer_that_is_no_object_is_no_success(body: bytes) -> None:
    client = client_of(Script(httpx.Response(200, content=body)), attempts=1)
    with pytest.raises(Unavailable):
        await client.get("/version")
    await client.close()


async def test_a_list_is_read_page_by_page() -> None:
    script = Script(listed([{"a": 1}, {"a": 2}], "7", "next"), listed([{"a": 3}], "7"))
    client = client_of(script)
    assert [item["a"] for item in await client.list("/api/v1/pods")] == [1, 2, 3]
    assert script.requests[0].url.params["limit"] == "500"
    assert script.requests[1].url.params["continue"] == "next"
    await client.close()


async def test_connecting_ends_within_its_time() -> None:
    script = Script(OK)
    client = client_of(script, timeout=60.0)
    await client.get("/version")
    assert script.requests[0].extensions["timeout"]["connect"] == 5.0
    await client.close()
    assert Retry().delay(20) == 2.0


async def test_of_a_secret_only_the_short_reason_is_told() -> None:
    secret = {**SERVICE, "kind": "Secret"}
    client = client_of(Script(status(422, "data is wrong: hunter2", reason="Invalid")))
    with pytest.raises(Refused, match=r"refused to apply Secret a: Invalid\.$"):
        await client.apply(secret)
    await client.close()


@pytest.mark.timeout(10)
def test_errors_that_cause_each_other_come_to_an_end() -> None:
    first, second = httpx.ReadError("broken"), httpx.CloseError("while closing")
    first.__context__, second.__context__ = second, first
    assert "broke" in unreachable(SERVER, first).message
    inside = ExceptionGroup("both", [second, ConnectionRefusedError("refused")])
    first.__context__ = inside
    assert "refuses connections" in unreachable(SERVER, first).message
