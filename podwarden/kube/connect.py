"""A kubeconfig becomes an `Access`: where the cluster is and how to prove who we are.

Only what lies in the text itself is accepted. Programs to run (exec, auth provider) and paths to files are
refused: they would make PodWarden run or read what somebody else wrote down. The text is read by a bounded
loader: no aliases, no tags, 1 MB, 20 levels.

Nothing of a kubeconfig is repeated in a message but the names of its contexts, clusters and users, and the host it
points to: whoever pastes the wrong text, or the right one into the wrong place, has pasted a secret.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from podwarden.errors import Invalid

MOST_BYTES = 1 << 20
MOST_DEPTH = 20
MOST_PARTS = 50_000
# The C parser is faster by two orders of magnitude; both give the same events.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_HOST = re.compile(
    r"(?=.{1,253}$)[a-z0-9_*-]{1,63}(\.[a-z0-9_*-]{1,63})*\.?", re.ASCII | re.IGNORECASE
)

EMBED = "a kubeconfig with everything inside it: `kubectl config view --minify --flatten --raw` prints one"


@dataclass(frozen=True, slots=True)
class Access:
    """server: https URL without a trailing slash. ca, certificate, key: PEM, "" when absent.

    expires, valid_from: of the client certificate, None with a token.
    """

    server: str
    ca: str = field(repr=False)
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    tls_server_name: str = ""
    valid_from: datetime | None = None
    expires: datetime | None = None


def read_kubeconfig(text: str, *, now: datetime | None = None) -> Access:
    """Raises Invalid. With `now` a client certificate that is not valid at that moment is refused too."""
    config = _load(text)
    context = _named(config, "contexts", _current(config), "current-context")
    cluster = _named(config, "clusters", _text(context, "cluster", "context.cluster"), "cluster")
    user = _named(config, "users", _text(context, "user", "context.user"), "user")
    server = _server(cluster)
    _refuse_indirect(cluster, user)
    ca = _pem(cluster, "certificate-authority-data", "cluster")
    certificate = _pem(user, "client-certificate-data", "user")
    key = _pem(user, "client-key-data", "user")
    token = str(user.get("token") or "")
    first, last = _dates(certificate, key, token)
    if ca:
        _check_ca(ca)
    access = Access(
        server=server,
        ca=ca,
        certificate=certificate,
        key=key,
        token=token,
        tls_server_name=_server_name(cluster),
        valid_from=first,
        expires=last,
    )
    if now is not None:
        check_dates(access, now)
    return access


def check_dates(access: Access, now: datetime) -> None:
    """Raises Invalid when the client certificate is not valid at `now`: said before any connection."""
    if access.expires is not None and now >= access.expires:
        raise Invalid.of(
            "kubeconfig.user.client-certificate-data",
            f"expired on {access.expires:%Y-%m-%d %H:%M} UTC",
            f"the client certificate for {access.server} has expired; give a kubeconfig with a new one",
        )
    if access.valid_from is not None and now < access.valid_from:
        raise Invalid.of(
            "kubeconfig.user.client-certificate-data",
            f"valid from {access.valid_from:%Y-%m-%d %H:%M} UTC",
            f"the client certificate for {access.server} is not valid yet; compare the clocks of both hosts",
        )


def tls_context(access: Access) -> ssl.SSLContext:
    """Verifies the server by the kubeconfig's CA (else by the system's). The client key never touches a disk."""
    context = ssl.create_default_context(cadata=access.ca or None)
    if access.certificate:
        handle = os.memfd_create("podwarden-client", os.MFD_CLOEXEC)
        try:
            os.write(handle, f"{access.certificate.rstrip()}\n{access.key}".encode())
            context.load_cert_chain(f"/proc/self/fd/{handle}")
        finally:
            os.close(handle)
    return context


def _load(text: str) -> Mapping[str, Any]:
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise Invalid.of("kubeconfig", f"{len(text)} characters", "a kubeconfig of at most 1 MB")
    if not text.strip():
        raise Invalid.of("kubeconfig", "empty", EMBED)
    try:
        _bound(text)
        document = yaml.load(text, Loader=_LOADER)  # noqa: S506 - safe, in C where there is C
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark is not None else "the text"
        raise Invalid.of(
            "kubeconfig", where, "valid YAML or JSON; this part cannot be read"
        ) from error
    except (ValueError, RecursionError) as error:
        raise Invalid.of("kubeconfig", "", "valid YAML with plain values only") from error
    if not isinstance(document, dict):
        raise Invalid.of("kubeconfig", "not a section", EMBED)
    return document


def _bound(text: str) -> None:
    """Counts parts and levels without building anything."""
    depth = documents = 0
    for count, event in enumerate(yaml.parse(text, Loader=_LOADER)):
        if isinstance(event, yaml.AliasEvent):
            raise Invalid.of("kubeconfig", "an alias", "YAML without aliases (`*name`)")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
        if depth > MOST_DEPTH or count > MOST_PARTS or documents > 1:
            raise Invalid.of(
                "kubeconfig",
                "",
                f"one document of at most {MOST_DEPTH} levels and {MOST_PARTS} parts",
            )


def _current(config: Mapping[str, Any]) -> str:
    name = config.get("current-context")
    if not isinstance(name, str) or not name:
        raise Invalid.of("kubeconfig.current-context", "missing", "the name of the context to use")
    return name


def _text(context: Mapping[str, Any], key: str, where: str) -> str:
    value = context.get(key)
    if not isinstance(value, str) or not value:
        raise Invalid.of(f"kubeconfig.{where}", "missing", "a name that the same file defines")
    return value


def _named(config: Mapping[str, Any], group: str, name: str, asked_by: str) -> Mapping[str, Any]:
    entries = config.get(group)
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("name") == name:
            found = entry.get(group.removesuffix("s"))
            if isinstance(found, dict):
                return found
    raise Invalid.of(f"kubeconfig.{asked_by}", name, f"a name that the list `{group}` defines")


def _server(cluster: Mapping[str, Any]) -> str:
    raw = cluster.get("server")
    if not isinstance(raw, str) or not raw:
        raise Invalid.of(
            "kubeconfig.cluster.server", "missing", "an address such as https://10.0.0.1:6443"
        )
    try:
        parts = urlsplit(raw)
        host = parts.hostname or ""
        good = (
            parts.scheme == "https"
            and _is_host(host)
            and (parts.port is None or parts.port > 0)
            and not (parts.username or parts.password or parts.query or parts.fragment)
            and all("!" <= c <= "~" for c in raw)
        )
    except ValueError:
        good, host = False, ""
    if not good:
        raise Invalid.of(
            "kubeconfig.cluster.server", host, "an https address such as https://10.0.0.1:6443"
        )
    return raw.rstrip("/")


def _is_host(name: str) -> bool:
    """An address, or a name that a resolver takes."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return _HOST.fullmatch(name) is not None
    return True


def _server_name(cluster: Mapping[str, Any]) -> str:
    name = str(cluster.get("tls-server-name") or "")
    if name and not _is_host(name):
        raise Invalid.of(
            "kubeconfig.cluster.tls-server-name", "", "the host name in the server's certificate"
        )
    return name


_CLUSTER_REFUSED = {
    "certificate-authority": "file",
    "proxy-url": "a cluster that is reached directly, without a proxy",
}
_USER_REFUSED = {
    "exec": "embedded credentials: PodWarden runs no program that a kubeconfig names",
    "auth-provider": "embedded credentials: auth providers are not supported",
    "tokenFile": "file",
    "client-certificate": "file",
    "client-key": "file",
    "username": "a client certificate or a token: clusters no longer accept passwords",
    "password": "a client certificate or a token: clusters no longer accept passwords",
    "as": "credentials of its own: acting as somebody else is not supported",
}


def _refuse_indirect(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> None:
    for where, mapping, refused in (
        ("cluster", cluster, _CLUSTER_REFUSED),
        ("user", user, _USER_REFUSED),
    ):
        for key, fix in refused.items():
            if mapping.get(key):
                text = f"embedded data instead of a file: {EMBED}" if fix == "file" else fix
                raise Invalid.of(f"kubeconfig.{where}.{key}", "set", text)
    if cluster.get("insecure-skip-tls-verify"):
        raise Invalid.of(
            "kubeconfig.cluster.insecure-skip-tls-verify",
            "true",
            "certificate-authority-data, so that the cluster can prove who it is",
        )


def _pem(mapping: Mapping[str, Any], key: str, where: str) -> str:
    raw = mapping.get(key)
    if not raw:
        return ""
    try:
        text = base64.b64decode(str(raw), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError, ValueError) as error:
        raise Invalid.of(
            f"kubeconfig.{where}.{key}", "not base64", "the base64 text of a PEM block"
        ) from error
    if "-----BEGIN " not in text:
        raise Invalid.of(
            f"kubeconfig.{where}.{key}", "no PEM block", "the base64 text of a PEM block"
        )
    return text


def _dates(certificate: str, key: str, token: str) -> tuple[datetime | None, datetime | None]:
    if not certificate:
        if not token or any(not "!" <= c <= "~" for c in token):
            raise Invalid.of(
                "kubeconfig.user",
                "no usable credentials",
                "client-certificate-data with client-key-data, or a token",
            )
        return None, None
    where = "kubeconfig.user.client-certificate-data"
    try:
        parsed = x509.load_pem_x509_certificate(certificate.encode())
    except ValueError as error:
        raise Invalid.of(
            where, "not a certificate", "the base64 text of a PEM certificate"
        ) from error
    try:
        private = load_pem_private_key(key.encode(), password=None)
    except (ValueError, TypeError) as error:
        raise Invalid.of(
            "kubeconfig.user.client-key-data",
            "no usable key",
            "the certificate's key, without a password",
        ) from error
    if private.public_key() != parsed.public_key():
        raise Invalid.of(
            "kubeconfig.user.client-key-data",
            "another key",
            "the key that belongs to the certificate",
        )
    return parsed.not_valid_before_utc, parsed.not_valid_after_utc


def _check_ca(ca: str) -> None:
    where = "kubeconfig.cluster.certificate-authority-data"
    try:
        x509.load_pem_x509_certificates(ca.encode())
    except ValueError as error:
        raise Invalid.of(
            where, "not a certificate", "the base64 text of PEM certificates"
        ) from error
