"""A named place for data: an NFS export, or a folder of one node. What it may be, and what it may not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from podwarden.errors import Invalid

NFS_FIX = "a server and the folder it exports, such as nas:/media"
HOST_FIX = "a node and a folder on it, such as gpu1:/srv/renders"
SYSTEM = (
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/usr",
    "/var/lib/containerd", "/var/lib/docker", "/var/lib/etcd", "/var/lib/kubelet", "/var/lib/podwarden",
    "/var/lib/rancher", "/var/log", "/var/run",
)  # fmt: skip
LONGEST = 1024

_LABELS = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?"
_SERVER = re.compile(rf"{_LABELS}|\[[0-9A-Fa-f:.]{{2,45}}\]", re.ASCII)
_NODE = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Storage:
    """Either `server` is set (NFS, for every cluster), or `cluster` and `node` are (a folder there).

    path: absolute, without `..`. checked: an NFS server is looked for before a workload that needs it is taken.
    """

    name: str
    path: str
    added_at: datetime
    added_by: str
    server: str = ""  # as it is mounted: an IPv6 address without brackets
    cluster: str = ""
    node: str = ""
    checked: bool = True

    @property
    def nfs(self) -> bool:
        return bool(self.server)

    @property
    def place(self) -> str:
        """As it was typed: `nas:/media`, `gpu1:/srv/renders`."""
        host = f"[{self.server}]" if ":" in self.server else self.server or self.node
        return f"{host}:{self.path}"


def parse_nfs(text: str) -> tuple[str, str]:
    """`nas:/media` -> (server, path). Invalid names the field `nfs`."""
    found = _SERVER.match(text)
    if found is None or not text.startswith(":", found.end()):
        raise Invalid.of("nfs", text, NFS_FIX)
    return found[0].strip("[]"), _path("nfs", text, text[found.end() + 1 :], NFS_FIX)


def parse_host(text: str) -> tuple[str, str]:
    """`gpu1:/srv/renders` -> (node, path). Invalid names the field `host`; folders of the system are refused."""
    node, colon, rest = text.partition(":")
    if not colon or not _NODE.fullmatch(node):
        raise Invalid.of("host", text, HOST_FIX)
    path = _path("host", text, rest, HOST_FIX)
    if path == "/" or any(path == own or path.startswith(own + "/") for own in SYSTEM):
        raise Invalid.of(
            "host", text, "a folder for data such as /srv/renders; this one belongs to the system"
        )
    return node, path


def _path(field: str, text: str, path: str, fix: str) -> str:
    """Canonical: no slash at the end."""
    if not path.startswith("/"):
        raise Invalid.of(field, text, fix)
    if len(path) > LONGEST:
        raise Invalid.of(field, text, f"a path of at most {LONGEST:,} characters")
    if not path.isprintable() or "\\" in path:
        raise Invalid.of(field, text, "a path without control characters and backslashes")
    short = path.rstrip("/") or "/"
    parts = short.split("/")[1:]
    if ".." in parts or "." in parts:
        raise Invalid.of(field, text, "a path without . and ..")
    if "" in parts and short != "/":
        raise Invalid.of(field, text, "a path without empty parts")
    return short
