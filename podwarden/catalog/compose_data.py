"""Ports and volumes of a Compose service, in the words of a workload file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from podwarden.catalog.compose_remarks import Place
from podwarden.catalog.compose_values import child, flag, size
from podwarden.domain.check import as_text

_PORT = re.compile(
    r"(?:(?:(?P<ip>\[[0-9a-fA-F:]+\]|[0-9]+(?:\.[0-9]+){3}):)?(?P<host>[0-9]*(?:-[0-9]+)?):)?"
    r"(?P<own>[0-9]{1,5}(?:-[0-9]{1,5})?)(?:/(?P<protocol>tcp|udp))?",
    re.ASCII,
)
_CLOCKS = ("/etc/localtime", "/etc/timezone")
_SOCKETS = ("/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock")
# A target that ends so is a file, not a folder.
_ENDINGS = frozenset(
    {
        ".conf", ".cfg", ".cnf", ".ini", ".json", ".js", ".yaml", ".yml", ".toml", ".xml", ".env",
        ".txt", ".sh", ".py", ".sql", ".pem", ".crt", ".key", ".html", ".db", ".lua",
    }
)  # fmt: skip
MOST_PORTS = 32
DISK = "20Gi"


@dataclass(slots=True)
class Ports:
    """What was found so far, and which ports of the local network other services took."""

    taken: dict[tuple[int, str], str] = field(default_factory=dict)

    def read(self, service: str, published: Place, exposed: Place) -> list[dict[str, Any]]:
        """The `ports` of a workload file; `expose` ports are for other workloads only."""
        found: dict[tuple[int, str], dict[str, Any]] = {}
        for entry in published.entries():
            self._published(service, entry, found)
        for entry in exposed.entries():
            self._exposed(entry, found)
        return list(found.values())

    def _published(
        self, service: str, entry: Place, found: dict[tuple[int, str], dict[str, Any]]
    ) -> None:
        short = _long_port(entry) if isinstance(entry.value, dict) else as_text(entry.value) or ""
        match = _PORT.fullmatch(short)
        if not match:
            entry.fault("a port such as 8080, 8080:80 or 8080:80/udp")
            return
        protocol = (match["protocol"] or "tcp").upper()
        local = match["ip"] in ("127.0.0.1", "[::1]")
        if local:
            entry.note("was open on that machine alone; here it is for other workloads only")
        elif match["ip"] not in (None, "0.0.0.0", "[::]"):  # noqa: S104 - read, not bound
            entry.note("is open on every node's address, not on that one alone")
        own, host = _range(match["own"]), _range(match["host"] or match["own"])
        if not own:
            entry.fault("a range of ports whose first is not above its last")
            return
        if len(found) + len(own) > MOST_PORTS:
            entry.leave_out(f"more than {MOST_PORTS} ports: expose only those that are needed")
            return
        for place, number in enumerate(own):
            outside = host[place] if place < len(host) else number
            if outside != number and not local:
                entry.note(f"answers on port {number}, its own, not on {outside}")
            expose = "cluster" if local else self._expose(service, entry, number, protocol)
            found[number, protocol] = _port(number, protocol, expose)

    def _expose(self, service: str, entry: Place, number: int, protocol: str) -> str:
        holder = self.taken.setdefault((number, protocol), service)
        if holder == service:
            return "lan"
        entry.leave_out(
            f"port {number} goes to {holder}; here {service} is reached by other workloads only. "
            "Tell its program another port to open it too"
        )
        return "cluster"

    def _exposed(self, entry: Place, found: dict[tuple[int, str], dict[str, Any]]) -> None:
        match = _PORT.fullmatch(as_text(entry.value) or "")
        if not match or match["host"] is not None:
            entry.fault("a port such as 3000")
            return
        protocol = (match["protocol"] or "tcp").upper()
        for number in _range(match["own"])[:MOST_PORTS]:
            found.setdefault((number, protocol), _port(number, protocol, "cluster"))


def _port(number: int, protocol: str, expose: str) -> dict[str, Any]:
    name = f"port-{number}" + ("-udp" if protocol == "UDP" else "")
    return {"name": name, "port": number, "expose": expose, "protocol": protocol}


def _range(text: str) -> list[int]:
    first, _, last = text.partition("-")
    if not first:
        return []
    most = min(int(last or first), int(first) + 2 * MOST_PORTS)
    return list(range(int(first), most + 1))


def _long_port(entry: Place) -> str:
    """The long form of a port in its short form."""
    parts = {key: child(entry, key) for key in ("target", "published", "host_ip", "protocol")}
    texts = {key: as_text(part.value) or "" for key, part in parts.items() if part is not None}
    for other in entry.items():
        if other.key not in (*parts, "mode", "name", "app_protocol"):
            other.leave_out("is no key of a port that PodWarden knows", other.value)
    published = texts.get("published", "")
    host = f"{texts['host_ip']}:" if "host_ip" in texts else ""
    front = f"{host}{published}:" if published or host else ""
    return f"{front}{texts.get('target', '')}/{texts.get('protocol', 'tcp')}"


@dataclass(slots=True)
class Volumes:
    """places: what stands for a source: `./media` or `media-data` -> STORAGE or STORAGE:FOLDER.
    shared: named volumes that several services use. declared: the file's own `volumes`.
    """

    places: Mapping[str, str]
    declared: frozenset[str]
    shared: Mapping[str, tuple[str, ...]]
    used: set[str] = field(default_factory=set)  # sources of `places` that the file has

    def read(self, place: Place) -> tuple[list[dict[str, Any]], str]:
        """The `volumes` of a workload file, and the size of shared memory that one of them gave."""
        found: list[dict[str, Any]] = []
        shm = ""
        for entry in place.entries():
            source, target, read_only, kind = self._parts(entry)
            if not target:
                continue
            if kind == "tmpfs":
                memory = child(entry, "tmpfs", "size")
                limit = size(memory) if memory is not None else ""
                if target == "/dev/shm":  # noqa: S108 - shared memory has its own key
                    shm = limit
                    if not limit:
                        entry.note("is shared memory of its usual size; give shm_size for more")
                else:
                    _append(
                        found, target, {"kind": "scratch", **({"size": limit} if limit else {})}
                    )
                continue
            volume = self._volume(entry, source, target, read_only=read_only)
            if volume:
                _append(found, target, volume)
        return found, shm

    def _parts(self, entry: Place) -> tuple[str, str, bool, str]:
        """source, target, read only, type; target "" after a fault."""
        if isinstance(entry.value, dict):
            texts = {}
            for key in ("type", "source", "target"):
                part = child(entry, key)
                texts[key] = as_text(part.value) or "" if part is not None else ""
            if not texts["target"]:
                entry.fault("a volume needs a target, the folder inside")
            only = child(entry, "read_only")
            _other_keys(entry)
            kind = texts["type"] or "volume"
            return texts["source"], texts["target"], only is not None and flag(only), kind
        text = as_text(entry.value) or ""
        parts = text.split(":")
        if not 1 <= len(parts) <= 3 or not parts[0]:
            entry.fault("a volume such as data:/data or ./folder:/data:ro")
            return "", "", False, ""
        options = parts[2].split(",") if len(parts) == 3 else []
        source, target = (parts[0], parts[1]) if len(parts) > 1 else ("", parts[0])
        return source, target, "ro" in options, "bind" if _is_path(source) else "volume"

    def _volume(
        self, entry: Place, source: str, target: str, *, read_only: bool
    ) -> dict[str, Any] | None:
        if source in self.places:
            self.used.add(source)
            name, _, folder = self.places[source].partition(":")
            volume: dict[str, Any] = {"kind": "storage", "storage": name, "subpath": folder}
            return {**volume, "read_only": read_only}
        if _is_path(source):
            return _from_host(entry, source, target)
        others = self.shared.get(source, ())
        if source and others:
            entry.leave_out(
                f"is shared by {' and '.join(others)}; here each gets an empty disk of its own. "
                f"Put the data into a storage and name it: --set {source}=STORAGE:FOLDER",
                source,
            )
        elif source and source not in self.declared:
            entry.fault(
                "no volume of that name stands under volumes at the end of the file", source
            )
        else:
            entry.note(f"becomes an empty disk of {DISK} on one node, and the workload stays there")
        return {"kind": "disk", "size": DISK}


def _from_host(entry: Place, source: str, target: str) -> dict[str, Any] | None:
    """A folder of the machine that the file was written for: no workload may name one."""
    if target in _CLOCKS:
        entry.leave_out(
            "the machine's clock settings are not mounted: set TZ in environment", source
        )
        return None
    if source in _SOCKETS or target in _SOCKETS:
        entry.leave_out("there is no Docker here for a program to steer", source)
        return None
    if source.startswith(("/dev/", "/proc", "/sys")):
        entry.leave_out("devices and system folders of the host are not mounted", source)
        return None
    place = f"--set {source}=STORAGE:FOLDER"
    if PurePosixPath(target).suffix.lower() in _ENDINGS:
        entry.leave_out(
            f"a single file cannot be mounted: put its folder into a storage, {place}", source
        )
        return None
    entry.note(
        f"becomes an empty disk of {DISK} on one node; for the files of that folder, put them into a "
        f"storage and name it: {place}",
        source,
    )
    return {"kind": "disk", "size": DISK}


def _other_keys(entry: Place) -> None:
    for other in entry.items():
        if other.key not in ("type", "source", "target", "read_only", "tmpfs"):
            other.leave_out("this option of a volume is not carried over")


def _is_path(source: str) -> bool:
    return source.startswith(("/", ".", "~")) or "/" in source or "\\" in source


def _append(found: list[dict[str, Any]], target: str, volume: dict[str, Any]) -> None:
    """Adds the volume with a name made from its folder: /var/lib/data -> lib-data."""
    words = re.sub(r"[^a-z0-9]+", "-", target.lower()).strip("-").split("-")
    name = "-".join(words[-2:])[-18:].strip("-")
    if not name or not name[0].isalpha():
        name = f"v-{name}".strip("-")[:18]
    names = {one["name"] for one in found}
    number = 2
    unique = name
    while unique in names:
        unique, number = f"{name[:17]}-{number}", number + 1
    found.append({"name": unique, "path": target.rstrip("/"), **volume})
