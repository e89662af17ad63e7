"""URLs of workloads: every port that answers, at the number it has, with what opens it."""

from __future__ import annotations

import pytest
from controlmaking import NOW, service
from controlmaking import row as made

from podwarden.control.addresses import urls
from podwarden.domain.inventory import Node
from podwarden.domain.observation import Instance, LanPort, Observation, Presence
from podwarden.domain.workload import Expose, Port

WEB, API, FIND = Port("web", 8096, Expose.LAN), Port("api", 9000), Port("find", 1900, Expose.LAN, "UDP")  # fmt: skip


def seen(row, *lan: LanPort, **more) -> Observation:
    presence = Presence(row.id, row.name, 1, lan=lan)
    return Observation("home", NOW, 1, presences={row.id: presence}, **more)


def with_ports(*ports: Port, **more):
    return made(service(ports=ports, **more))


def test_each_exposed_port_once_it_answers() -> None:
    row = with_ports(API, WEB, FIND)
    assert urls(row, Observation("home", NOW, 1)) == ()
    assert urls(row, seen(row)) == ()
    web, find = LanPort(8096, "TCP", "192.0.2.7", 30123), LanPort(1900, "UDP", "2001:db8::1", 1900)
    assert urls(row, seen(row, find, web)) == (
        "http://192.0.2.7:30123",
        "udp://[2001:db8::1]:1900",
    )
    assert urls(row, seen(row, LanPort(9000, "TCP", "192.0.2.7", 9000))) == ()


@pytest.mark.parametrize(
    ("port", "scheme"),
    [
        (Port("http", 80, Expose.LAN), "http"),
        (Port("server", 8080, Expose.LAN), "http"),
        (Port("https-ui", 9443, Expose.LAN), "https"),
        (Port("web", 443, Expose.LAN), "https"),
        (Port("mqtt", 1883, Expose.LAN), "tcp"),
        (Port("webrtc-tcp", 8555, Expose.LAN), "tcp"),
        (Port("postgres", 5432, Expose.LAN), "tcp"),
    ],
)
def test_what_opens_it(port: Port, scheme: str) -> None:
    row = with_ports(port)
    assert urls(row, seen(row, LanPort(port.port, "TCP", "n1", 7))) == (f"{scheme}://n1:7",)


def test_with_its_nodes_network_it_answers_where_it_runs() -> None:
    row = with_ports(WEB, API, host_network=True)
    nodes = (Node("n1", 1, 1, address="192.0.2.1"), Node("n2", 1, 1, address="192.0.2.2"))
    running = Instance(row.id, "a", "u", 1, "running", node="n2")
    waiting = Instance(row.id, "b", "v", 1, "pending", node="n1")
    look = seen(row, nodes=nodes, instances={row.id: (waiting, running)})
    assert urls(row, look) == ("http://192.0.2.2:8096",)
