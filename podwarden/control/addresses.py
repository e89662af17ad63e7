"""Where a workload answers on the local network, as URLs. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from podwarden.domain.observation import Observation
from podwarden.domain.workload import Expose, Port, Workload

# Names of ports, as templates and people give them, of what no browser opens.
_OTHER = ("mqtt", "postgres", "redis", "mysql", "rtsp", "smb", "nfs", "ssh", "ftp", "webrtc", "grpc", "dns")  # fmt: skip
_ENCRYPTED = (443, 8443)


def urls(row: Workload, seen: Observation) -> tuple[str, ...]:
    """One for each port that answers, in the order of the spec: `http://192.168.1.33:11434`. Empty until then."""
    return tuple(dict.fromkeys(_urls(row, seen)))


def _urls(row: Workload, seen: Observation) -> Iterator[str]:
    exposed = [port for port in row.spec.ports if port.expose is Expose.LAN]
    if row.spec.host_network:
        nodes = {node.name: node.address for node in seen.nodes}
        here = [i.node for i in seen.instances.get(row.id, ()) if i.phase == "running"]
        for port in exposed:
            for host in dict.fromkeys(nodes.get(name, "") for name in here):
                if host:
                    yield _url(port, host, port.port)
        return
    presence = seen.presences.get(row.id)
    answering = {(p.protocol, p.port): p for p in presence.lan} if presence is not None else {}
    for port in exposed:
        found = answering.get((port.protocol, port.port))
        if found is not None:
            yield _url(port, found.host, found.number)


def _url(port: Port, host: str, number: int) -> str:
    return f"{_scheme(port)}://{f'[{host}]' if ':' in host else host}:{number}"


def _scheme(port: Port) -> str:
    if port.protocol != "TCP":
        return port.protocol.lower()
    if port.name.startswith("https") or port.port in _ENCRYPTED:
        return "https"
    if port.name.split("-")[0] in _OTHER:
        return "tcp"
    return "http"
