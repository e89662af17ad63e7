"""Hostile and mistaken input against the whole: the real command line, the real API, the real cluster.

Each is answered with an exit code or a 4xx, the field, the value and the fix; nothing is stored, nothing is applied.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from deadline import eventually
from marks import versions
from plant import Desk, Plant, plant, service
from proxy import free_port
from shell import Shell

BROKEN_TEMPLATE = """
template: broken
title: Broken
purpose: It names a parameter that it does not have.
homepage: https://example.org
parameters: []
workload:
  kind: service
  image: example.org/app:1
  env: {SIZE: "${missing}"}
"""


class Place:
    """The plant, its desk, a user's shell; `unchanged` says whether anything was stored or applied."""

    def __init__(self, yard: Plant, desk: Desk, home: Path) -> None:
        self.yard, self.desk = yard, desk
        self.shell = Shell(home, PODWARDEN_SERVER=desk.warden.url, PODWARDEN_TOKEN=desk.token)
        self.before = self._state()

    def _state(self) -> tuple[Any, ...]:
        kept = [(w["id"], w["name"], w["state"], w["revision"]) for w in self.desk.workloads()]
        events = self.desk.get("workloads/taken/events", limit=500)["items"]
        clusters = [c["name"] for c in self.desk.get("clusters")]
        return kept, len(events), clusters, versions(self.yard)

    def unchanged(self) -> None:
        assert self._state() == self.before, "something was stored or applied"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("b")
    own = folder / "templates"
    own.mkdir()
    (own / "broken.yaml").write_text(BROKEN_TEMPLATE)
    with plant(folder) as yard:
        warden = yard.warden("w", PODWARDEN_TEMPLATES=str(own))
        warden.start()
        desk = yard.desk(warden)
        yard.adopt(desk)
        desk.deploy(service("taken", "vram: 8GB"))
        eventually(lambda: desk.state("taken") == "running", "something runs")
        eventually(lambda: (desk.workload("taken") or {})["nodes"], "it says where")
        home = folder / "home"
        home.mkdir()
        yield Place(yard, desk, home)


# --- the command line: what is typed, the exit code, and the words of the answer -----------------------

TYPED: dict[str, tuple[list[str], list[str]]] = {
    "unknown template": (["deploy", "ollamma"], ["ollamma", "ollama"]),
    "16 gigs": (["deploy", "vllm", "--vram", "16 gigs"], ["--vram", "16 gigs", "16GB"]),
    "minus one": (["deploy", "vllm", "--vram=-1GB"], ["--vram", "-1GB", "16GB"]),
    "1e30": (["deploy", "vllm", "--vram", "1e30GB"], ["--vram", "1e30GB", "16GB"]),
    "unknown unit": (["deploy", "vllm", "--vram", "16XB"], ["--vram", "16XB", "16GB"]),
    "no GPUs": (["deploy", "vllm", "--gpus", "0"], ["--gpus", "0"]),
    "fewer than none": (["deploy", "vllm", "--gpus=-2"], ["--gpus", "-2"]),
    "more than a node has": (["deploy", "vllm", "--gpus", "3"], ["COUNT_TOO_LARGE", "3", "2"]),
    "no such card": (
        ["deploy", "vllm", "--vram", "80GB"],
        ["NO_DEVICE_LARGE_ENOUGH", "80GB", "24 GB", "n3", "RTX 3090"],
    ),
    "a budget above a GPU": (
        ["deploy", "ollama", "--shared", "--vram", "40GB"],
        ["NO_DEVICE_LARGE_ENOUGH", "40"],
    ),
    "no such model": (["deploy", "vllm", "--model", "H200"], ["NO_SUCH_MODEL", "H200"]),
    "name taken": (["deploy", "web", "--name", "taken"], ["NAME_TAKEN", "taken"]),
    "no DNS label": (["deploy", "web", "--name", "My_Web"], ["--name", "My_Web", "lower"]),
    "unknown priority": (
        ["deploy", "web", "--priority", "urgent"],
        ["--priority", "urgent", "high"],
    ),
    "frames backwards": (
        ["deploy", "blender-render", "--set", "frames=10-1"],
        ["frames", "10-1"],
    ),
    "a milliard of frames": (
        ["deploy", "blender-render", "--set", "frames=1-1000000000"],
        ["frames", "1-1000000000"],
    ),
    "unknown parameter": (["deploy", "web", "--set", "colour=red"], ["colour"]),
    "a template that names a missing parameter": (["deploy", "broken"], ["broken", "missing"]),
    "no such workload": (["workload", "stop", "nobody"], ["nobody"]),
    "a kubeconfig that is no kubeconfig": (
        ["cluster", "adopt", "other", "--kubeconfig", "/etc/hostname"],
        ["kubeconfig", "kubectl config view"],
    ),
}


@pytest.mark.parametrize("name", TYPED)
def test_the_command_line_says_what_is_wrong(place: Place, name: str) -> None:
    typed, words = TYPED[name]
    said = place.shell.refused(*typed)
    for word in words:
        assert word in said, f"{word!r} is not in: {said}"
    assert len(said) < 3000
    place.unchanged()


FILES: dict[str, tuple[str, list[str]]] = {
    "unknown field": (service("x", "vrma: 8GB"), ["gpu.vrma", "vram"]),
    "a field in the wrong place": (service("x") + "vram: 8GB\n", ["vram", "gpu.vram"]),
    "several faults at once": (
        "name: Bad_Name\nkind: daemon\nimage: a b\ngpu: {count: 0, vram: 16 gigs}\n",
        ["name", "kind", "image", "gpu.count", "gpu.vram", "line 4"],
    ),
    "zero": (service("x", "count: 0"), ["gpu.count", "0"]),
    "negative": (service("x", "count: -3"), ["gpu.count", "-3"]),
    "an image with spaces": (
        service("x").replace("example.org/app:1", "my app:1"),
        ["image", "my app:1"],
    ),
    "a bad array": (
        "name: x\nkind: job\nimage: example.org/app:1\njob: {array: 10-1}\n",
        ["job.array", "10-1"],
    ),
    "a milliard of tasks": (
        "name: x\nkind: job\nimage: example.org/app:1\njob: {array: 1-1000000000}\n",
        ["job.array", "1-1000000000"],
    ),
    "tabs": ("name: x\n\tkind: service\n", ["line 2"]),
    "an anchor loop": ("name: &a [*a]\nkind: service\nimage: x:1\n", ["line 1"]),
    "a bomb": (
        "a: &a [x,x,x,x,x,x,x,x]\n"
        + "\n".join(
            f"{n}: &{n} [{','.join('*' + p for _ in range(8))}]"
            for p, n in zip("abcdefgh", "bcdefghi", strict=True)
        ),
        ["alias"],
    ),
    "a list": ("- name: x\n", ["name"]),
    "nothing": ("", ["empty"]),
    "deep": ("name: " + "[" * 5000, ["line 1", "nesting depth"]),
    "another service's port": (
        service("x", more="ports: [{port: 99999}]\n"),
        ["ports[0].port", "99999"],
    ),
    "a raw path of the host": (
        service("x", more="volumes: [{name: v, path: /v, kind: host, storage: /etc}]\n"),
        ["volumes[0].kind", "host"],
    ),
    "an unknown secret": (
        service("x", more="secrets: {TOKEN: nowhere}\n"),
        ["secrets.TOKEN", "nowhere"],
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_bad_file_is_told_apart_by_both_faces(place: Place, name: str) -> None:
    text, words = FILES[name]
    answer = place.desk.ask("POST", "workloads", json={"file": text, "source": "bad.yaml"})
    assert 400 <= answer.status_code < 500, answer.text
    problem = answer.json()
    assert problem["status"] == answer.status_code
    assert problem["code"]
    assert problem["problems"], problem
    for fault in problem["problems"]:
        assert fault["field"]
        assert fault["fix"]
    file = place.shell.home / "bad.yaml"
    file.write_text(text)
    said = place.shell.refused("deploy", str(file))
    for word in words:
        assert word.lower() in problem["detail"].lower(), f"{word!r} is not in: {answer.text}"
        assert word.lower() in said.lower(), f"{word!r} is not in: {said}"
    place.unchanged()


# --- clusters -------------------------------------------------------------------------------------------


def _kubeconfig(place: Place, **changes: Any) -> str:
    config = yaml.safe_load(place.yard.engine.kubeconfig.read_text())
    config["clusters"][0]["cluster"].update(changes.get("cluster", {}))
    if "user" in changes:
        config["users"][0]["user"] = changes["user"]
    return yaml.safe_dump(config)


def _expired() -> dict[str, str]:
    import base64  # noqa: PLC0415 - only here

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "old")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=400))
        .not_valid_after(now - timedelta(days=35))
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return {
        "client-certificate-data": base64.b64encode(
            made.public_bytes(serialization.Encoding.PEM)
        ).decode(),
        "client-key-data": base64.b64encode(pem).decode(),
    }


CLUSTERS: dict[str, tuple[dict[str, Any], int, list[str]]] = {
    "an exec plugin": ({"user": {"exec": {"command": "/bin/touch"}}}, 1, ["exec"]),
    "an auth provider": ({"user": {"auth-provider": {"name": "gcp"}}}, 1, ["auth-provider"]),
    "a file reference": (
        {"user": {"client-certificate": "/root/c.pem", "client-key": "/root/k.pem"}},
        1,
        ["client-certificate", "--flatten"],
    ),
    "a token file": ({"user": {"tokenFile": "/etc/passwd"}}, 1, ["tokenFile"]),
    "plain http": ({"cluster": {"server": "http://127.0.0.1:1"}}, 1, ["server", "https"]),
    "wrong credentials": ({"user": {"token": "wrong"}}, 1, ["credentials"]),
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_bad_kubeconfig_is_refused(place: Place, name: str) -> None:
    changes, code, words = CLUSTERS[name]
    _adopt(place, _kubeconfig(place, **changes), code, words)


def test_an_expired_certificate_is_refused_with_its_date(place: Place) -> None:
    day = f"{datetime.now(UTC) - timedelta(days=35):%Y-%m-%d}"
    _adopt(place, _kubeconfig(place, user=_expired()), 1, ["expired", day])


def test_a_cluster_that_is_not_there(place: Place) -> None:
    server = f"https://127.0.0.1:{free_port()}"
    _adopt(
        place, _kubeconfig(place, cluster={"server": server}), 3, [server, "refuses connections"]
    )


def _adopt(place: Place, text: str, code: int, words: list[str]) -> None:
    said = place.shell.refused(
        "cluster", "adopt", "other", "--kubeconfig", "-", code=code, stdin=text
    )
    for word in words:
        assert word in said, f"{word!r} is not in: {said}"
    secret = yaml.safe_load(text)["users"][0]["user"].get("client-key-data")
    assert secret is None or secret not in said
    place.unchanged()


# --- the API ---------------------------------------------------------------------------------------------


def test_a_body_of_a_hundred_megabytes_is_cut_off(place: Place) -> None:
    """Answered before it was sent; the process goes on with others."""
    url = httpx.URL(place.desk.warden.url)
    head = (
        f"POST /api/v1/workloads HTTP/1.1\r\nHost: {url.netloc.decode()}\r\n"
        f"Authorization: Bearer {place.desk.token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {100 << 20}\r\n\r\n"
    )
    with socket.create_connection((url.host, url.port), timeout=10) as link:
        link.sendall(head.encode() + b'{"file": "')
        answer = link.recv(4096).decode()
    assert answer.startswith("HTTP/1.1 413"), answer
    said = place.shell.refused("deploy", "-", stdin="name: x\nargs: [" + "a, " * 300_000 + "]\n")
    assert "524" in said or "512" in said or "large" in said, said
    place.unchanged()


def test_who_has_no_token_learns_nothing(place: Place) -> None:
    for token in ("", "wrong", "pw_" + "a" * 40, place.desk.token[:-1]):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = httpx.post(
            f"{place.desk.warden.url}/api/v1/workloads",
            json={"file": service("x")},
            headers=headers,
            trust_env=False,
        )
        assert answer.status_code == 401, answer.text
        assert "taken" not in answer.text
    shell = Shell(place.shell.home, PODWARDEN_SERVER=place.desk.warden.url, PODWARDEN_TOKEN="wrong")
    assert "podwarden login" in shell.refused("deploy", "web")
    place.unchanged()


def test_nobody_there_is_exit_code_three(place: Place) -> None:
    shell = Shell(place.shell.home, PODWARDEN_SERVER=f"http://127.0.0.1:{free_port()}")
    assert "podwarden up" in shell.refused("gpus", code=3)


def test_what_is_typed_wrong_is_exit_code_two(place: Place) -> None:
    for typed in (["deploy"], ["deploy", "web", "--colour"], ["nonsense"]):
        place.shell.refused(*typed, code=2)


def test_the_same_key_twice_is_one_workload(place: Place) -> None:
    """Last: it stores one on purpose."""
    headers = {"Idempotency-Key": "only-once"}
    body = {"file": service("once")}
    first, second = (
        place.desk.ask("POST", "workloads", json=body, headers=headers) for _ in range(2)
    )
    assert first.status_code == second.status_code == 201
    assert first.json()["workload"]["id"] == second.json()["workload"]["id"]
    other = place.desk.ask("POST", "workloads", json={"file": service("twice")}, headers=headers)
    assert other.status_code == 409, other.text
    assert "key" in json.loads(other.text)["detail"].lower()
    names = sorted(w["name"] for w in place.desk.workloads())
    assert names == ["once", "taken"]
