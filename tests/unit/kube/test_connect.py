"""kubeconfigs: what is accepted, and every kind that is refused with field, value and fix."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from podwarden.errors import Invalid
from podwarden.kube.connect import check_dates, read_kubeconfig, tls_context

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def pair(first: datetime, last: datetime) -> tuple[str, str]:
    """(certificate, key) as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "admin")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(first)
        .not_valid_after(last)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode(), pem.decode()


CERTIFICATE, KEY = pair(NOW - timedelta(days=30), NOW + timedelta(days=30))


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def config(**change: Any) -> dict[str, Any]:
    """A good kubeconfig; `cluster__x` and `user__x` set or (None) remove a key."""
    cluster = {"server": "https://10.0.0.1:6443", "certificate-authority-data": b64(CERTIFICATE)}
    user = {"client-certificate-data": b64(CERTIFICATE), "client-key-data": b64(KEY)}
    for where, mapping in (("cluster", cluster), ("user", user)):
        for name, value in change.pop(where, {}).items():
            mapping[name] = value
            if value is None:
                del mapping[name]
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "home",
        "contexts": [{"name": "home", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        **change,
    }


def read(value: Any) -> Any:
    return read_kubeconfig(value if isinstance(value, str) else yaml.safe_dump(value), now=NOW)


def test_a_certificate_and_a_token_are_read() -> None:
    access = read(config())
    assert access.server == "https://10.0.0.1:6443"
    assert access.certificate == CERTIFICATE
    assert access.expires == NOW + timedelta(days=30)
    assert tls_context(access).get_ca_certs() is not None
    token = read(
        config(user={"client-certificate-data": None, "client-key-data": None, "token": "abc"})
    )
    assert (token.token, token.certificate, token.expires) == ("abc", "", None)


def test_json_is_read_too_and_a_trailing_slash_goes() -> None:
    text = yaml.safe_dump(config(cluster={"server": "https://k.test/"}), default_flow_style=True)
    assert read(text).server == "https://k.test"


def test_secrets_are_in_no_repr() -> None:
    access = read(config(user={"token": "very-secret"}))
    assert "very-secret" not in repr(access)
    assert "PRIVATE" not in repr(access)


OTHER_KEY = pair(NOW, NOW + timedelta(days=1))[1]

REFUSED: dict[str, tuple[Any, str]] = {
    "empty": ("", "kubeconfig"),
    "only spaces": (" \n", "kubeconfig"),
    "not YAML": ("{a: [", "kubeconfig"),
    "a tab": ("a:\n\t- b", "kubeconfig"),
    "a NUL": ("a: \x00", "kubeconfig"),
    "a list": ("[1, 2]", "kubeconfig"),
    "a text": ("hello", "kubeconfig"),
    "two documents": ("a: 1\n---\nb: 2\n", "kubeconfig"),
    "an alias": ("a: &x [1]\nb: *x\n", "kubeconfig"),
    "an anchor loop": ("a: &x [*x]\n", "kubeconfig"),
    "a bomb": ("a: &a [1]\nb: &b [*a,*a]\nc: [*b,*b]\n", "kubeconfig"),
    "a tag that runs things": ("!!python/object/apply:os.system [ls]", "kubeconfig"),
    "deep": ("[" * 500 + "]" * 500, "kubeconfig"),
    "very deep": ("[" * 50_000, "kubeconfig"),
    "large": ("a" * (1 << 20) + "a", "kubeconfig"),
    "many parts": ("\n".join(f"a{i}: 1" for i in range(40_000)), "kubeconfig"),
    "a date that is none": ("a: 2026-99-99", "kubeconfig"),
    "no current context": (config(**{"current-context": ""}), "kubeconfig.current-context"),
    "context of another type": (config(**{"current-context": 5}), "kubeconfig.current-context"),
    "unknown context": (config(**{"current-context": "x"}), "kubeconfig.current-context"),
    "no contexts": (config(contexts=None), "kubeconfig.current-context"),
    "contexts are a text": (config(contexts="home"), "kubeconfig.current-context"),
    "unknown cluster": (config(clusters=[]), "kubeconfig.cluster"),
    "unknown user": (config(users=[{"name": "v", "user": {}}]), "kubeconfig.user"),
    "user that is null": (config(users=[{"name": "u", "user": None}]), "kubeconfig.user"),
    "context without cluster": (
        config(contexts=[{"name": "home", "context": {"user": "u"}}]),
        "kubeconfig.context.cluster",
    ),
    "http": (config(cluster={"server": "http://10.0.0.1:8080"}), "kubeconfig.cluster.server"),
    "no server": (config(cluster={"server": None}), "kubeconfig.cluster.server"),
    "no host": (config(cluster={"server": "https://"}), "kubeconfig.cluster.server"),
    "no port number": (config(cluster={"server": "https://a:b"}), "kubeconfig.cluster.server"),
    "port too large": (config(cluster={"server": "https://a:99999"}), "kubeconfig.cluster.server"),
    "spaces": (config(cluster={"server": "https://a b"}), "kubeconfig.cluster.server"),
    "credentials in the address": (
        config(cluster={"server": "https://me:pw@a"}),
        "kubeconfig.cluster.server",
    ),
    "CA file": (
        config(cluster={"certificate-authority": "/etc/ca.crt"}),
        "kubeconfig.cluster.certificate-authority",
    ),
    "no verification": (
        config(cluster={"insecure-skip-tls-verify": True}),
        "kubeconfig.cluster.insecure-skip-tls-verify",
    ),
    "proxy": (config(cluster={"proxy-url": "http://p"}), "kubeconfig.cluster.proxy-url"),
    "CA that is no base64": (
        config(cluster={"certificate-authority-data": "%%"}),
        "kubeconfig.cluster.certificate-authority-data",
    ),
    "CA that is no PEM": (
        config(cluster={"certificate-authority-data": b64("x")}),
        "kubeconfig.cluster.certificate-authority-data",
    ),
    "CA that is broken": (
        config(
            cluster={
                "certificate-authority-data": b64(
                    "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"
                )
            }
        ),
        "kubeconfig.cluster.certificate-authority-data",
    ),
    "exec plugin": (config(user={"exec": {"command": "aws"}}), "kubeconfig.user.exec"),
    "auth provider": (
        config(user={"auth-provider": {"name": "gcp"}}),
        "kubeconfig.user.auth-provider",
    ),
    "token file": (config(user={"tokenFile": "/run/token"}), "kubeconfig.user.tokenFile"),
    "certificate file": (
        config(user={"client-certificate": "a.crt"}),
        "kubeconfig.user.client-certificate",
    ),
    "key file": (config(user={"client-key": "a.key"}), "kubeconfig.user.client-key"),
    "password": (config(user={"username": "me", "password": "pw"}), "kubeconfig.user.username"),
    "somebody else": (config(user={"as": "root"}), "kubeconfig.user.as"),
    "no credentials": (
        config(user={"client-certificate-data": None, "client-key-data": None}),
        "kubeconfig.user",
    ),
    "token with a line end": (
        config(user={"client-certificate-data": None, "token": "a\nb"}),
        "kubeconfig.user",
    ),
    "certificate without key": (
        config(user={"client-key-data": None}),
        "kubeconfig.user.client-key-data",
    ),
    "another key": (
        config(user={"client-key-data": b64(OTHER_KEY)}),
        "kubeconfig.user.client-key-data",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_field_and_fix(name: str) -> None:
    value, field = REFUSED[name]
    with pytest.raises(Invalid) as caught:
        read(value)
    (problem,) = caught.value.problems
    assert problem.field == field
    assert problem.fix
    assert len(str(caught.value)) < 400
    assert "pw" not in problem.value


def test_an_expired_certificate_is_said_with_its_date() -> None:
    old, key = pair(NOW - timedelta(days=400), datetime(2026, 1, 15, 8, 30, tzinfo=UTC))
    text = yaml.safe_dump(
        config(user={"client-certificate-data": b64(old), "client-key-data": b64(key)})
    )
    with pytest.raises(Invalid, match=r"expired on 2026-01-15 08:30 UTC.*https://10\.0\.0\.1:6443"):
        read_kubeconfig(text, now=NOW)
    access = read_kubeconfig(text)  # without a clock nothing is said about it
    with pytest.raises(Invalid, match="expired on 2026-01-15"):
        check_dates(access, NOW)


def test_a_certificate_of_tomorrow_is_not_valid_yet() -> None:
    new, key = pair(NOW + timedelta(days=1), NOW + timedelta(days=2))
    text = yaml.safe_dump(
        config(user={"client-certificate-data": b64(new), "client-key-data": b64(key)})
    )
    with pytest.raises(Invalid, match=r"valid from 2026-12-01.*clocks"):
        read_kubeconfig(text, now=NOW)


SECRET = "eyJhbGciOiJSUzI1NiIsImtpZCI6IlNFQ1JFVCJ9"
TOKEN_ONLY = {"client-certificate-data": None, "client-key-data": None}


@pytest.mark.parametrize(
    "given",
    [
        SECRET,
        f"- {SECRET}",
        f"? [{SECRET}]\n: x",
        f"token: {SECRET}",
        f"{SECRET}: [",
        f"a: &{SECRET} 1\nb: *{SECRET}",
        f"a: *{SECRET}",
        f"!{SECRET} x",
        config(user={"client-key": SECRET}),
        config(user={"client-certificate": SECRET}),
        config(user={"tokenFile": SECRET}),
        config(user={"password": SECRET}),
        config(user={"exec": {"command": SECRET}}),
        config(user={"client-key-data": SECRET}),
        config(user={"client-certificate-data": SECRET}),
        config(user={**TOKEN_ONLY, "token": f"{SECRET} {SECRET}"}),
        config(cluster={"certificate-authority": SECRET}),
        config(cluster={"certificate-authority-data": SECRET}),
        config(cluster={"server": f"https://h/?token={SECRET}"}),
        config(cluster={"server": f"https://user:{SECRET}@h"}),
        config(cluster={"server": f"https://h/#{SECRET}"}),
        config(cluster={"server": f"http://h/{SECRET}"}),
        config(cluster={"proxy-url": f"http://user:{SECRET}@p"}),
        config(cluster={"tls-server-name": f"{SECRET} x"}),
    ],
)
def test_no_secret_comes_back_in_a_message(given: Any) -> None:
    with pytest.raises(Invalid) as refused:
        read(given)
    assert SECRET.lower() not in str(refused.value).lower()


@pytest.mark.parametrize(
    "server",
    [
        "https://\u202eevil:6443",
        "https://a..b:6443",
        f"https://{'a' * 300}:6443",
        "https://\N{GRINNING FACE}.example",
        "https://h\x00:1",
        "https://h:1/\u202e",
        "https://:6443",
    ],
)
def test_a_host_that_no_resolver_takes_is_refused(server: str) -> None:
    with pytest.raises(Invalid) as refused:
        read(config(cluster={"server": server}))
    assert refused.value.problems[0].field == "kubeconfig.cluster.server"


@pytest.mark.parametrize("server", ["https://10.0.0.1", "https://[fd00::1]:6443", "https://nas_1"])
def test_addresses_and_names_are_taken(server: str) -> None:
    assert read(config(cluster={"server": server})).server == server


@pytest.mark.parametrize("name", ["a\x00b", "\u202e", "a" * 300, "a b"])
def test_a_server_name_that_tls_does_not_take_is_refused(name: str) -> None:
    with pytest.raises(Invalid) as refused:
        read(config(cluster={"tls-server-name": name}))
    assert refused.value.problems[0].field == "kubeconfig.cluster.tls-server-name"


@pytest.mark.parametrize("token", ["SECRÉT", "a\u200bb", "a\x7f", "tok en"])
def test_a_token_that_no_header_takes_is_refused(token: str) -> None:
    with pytest.raises(Invalid) as refused:
        read(config(user={**TOKEN_ONLY, "token": token}))
    assert refused.value.problems[0].field == "kubeconfig.user"
