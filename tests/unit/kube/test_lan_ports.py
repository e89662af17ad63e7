"""Ports on the local network: who serves them, at which number they answer, whose they are already."""

from __future__ import annotations

from typing import Any

import pytest
from kubemaking import pod_of, rendered, spec_of
from objects import deployment, node, own_meta

from podwarden.domain.inventory import Capabilities
from podwarden.domain.observation import LanPort, Observation
from podwarden.domain.workload import Expose, Port
from podwarden.kube import kinds
from podwarden.kube.index import Index
from podwarden.kube.view import Health, View

PORTS = (Port("web", 8096, Expose.LAN), Port("find", 1900, Expose.LAN, "UDP"), Port("api", 9000))


class World:
    def __init__(self) -> None:
        self.index = Index("home")
        self._view = View(self.index)

    def look(self) -> Observation:
        health = Health(True, True, "", (1, 37), frozenset())
        return self._view.observation(health, None)  # type: ignore[arg-type]  # no test reads the time


def service(name: str, space: str, ip: str = "", **spec: Any) -> dict[str, Any]:
    ingress = [{"ip": ip}] if ip else []
    return {
        "metadata": {"name": name, "namespace": space},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}, {"port": 443}], **spec},
        "status": {"loadBalancer": {"ingress": ingress}},
    }


def k3s(name: str) -> dict[str, Any]:
    return node(name, nodeInfo={"kubeletVersion": "v1.37.2+k3s1"})


def test_k3s_serves_lan_ports_and_a_plain_cluster_does_not() -> None:
    world = World()
    world.index.put(kinds.NODE, node("n1", nodeInfo={"kubeletVersion": "v1.37.2"}))
    assert world.look().capabilities.lan_ports is False
    world.index.put(kinds.NODE, k3s("n2"))
    assert world.look().capabilities.lan_ports is True
    world.index.drop(kinds.NODE, ("", "n2"))
    assert world.look().capabilities.lan_ports is False


def test_a_balancer_shows_by_an_address_it_gave_to_anybody() -> None:
    world = World()
    waiting = service("web", "shop")
    world.index.put(kinds.SERVICE, waiting)
    assert world.look().capabilities.lan_ports is False
    world.index.put(kinds.SERVICE, service("web", "shop", "192.0.2.7"))
    assert world.look().capabilities.lan_ports is True
    world.index.put(kinds.SERVICE, service("web", "shop", "192.0.2.7", type="ClusterIP"))
    assert world.look().capabilities.lan_ports is False


def test_other_peoples_ports_are_taken_and_only_once_they_are_served() -> None:
    world = World()
    traefik = service("traefik", "kube-system", "192.0.2.7", ports=[{"port": 80}, {"port": 53, "protocol": "UDP"}])  # fmt: skip
    world.index.put(kinds.SERVICE, traefik)
    world.index.put(kinds.SERVICE, service("waits", "shop"))
    own = service("a-lan", "podwarden", "192.0.2.7", ports=[{"port": 7}])
    own["metadata"] = own_meta("id-a", name="a-lan")
    world.index.put(kinds.SERVICE, own)
    assert world.look().lan_taken == {
        ("TCP", 80): "kube-system/traefik",
        ("UDP", 53): "kube-system/traefik",
    }
    before = world.look().revision
    world.index.put(kinds.SERVICE, traefik | {"status": traefik["status"] | {"conditions": []}})
    assert world.look().revision == before, "nothing that matters changed"
    world.index.drop(kinds.SERVICE, ("kube-system", "traefik"))
    assert world.look().lan_taken == {}


def test_a_label_of_ours_in_another_namespace_makes_no_part_of_a_workload() -> None:
    world = World()
    world.index.put(kinds.DEPLOYMENT, deployment("id-a"))
    stranger = service("evil", "shop", "203.0.113.9")
    stranger["metadata"]["labels"] = own_meta("id-a")["labels"]
    world.index.put(kinds.SERVICE, stranger)
    presence = world.look().presences["id-a"]
    assert presence.lan == ()
    assert [kind for kind, _ in presence.objects] == ["Deployment"]
    assert world.look().lan_taken[("TCP", 80)] == "shop/evil"


def test_every_port_answers_somewhere() -> None:
    world = World()
    world.index.put(kinds.NODE, node("n1"))
    world.index.put(kinds.DEPLOYMENT, deployment("id-a"))
    lan = service("a-lan", "podwarden", ports=[
        {"port": 8096, "nodePort": 30001}, {"port": 1900, "protocol": "UDP", "nodePort": 30002}, {"port": 5},
    ])  # fmt: skip
    lan["metadata"] = own_meta("id-a", name="a-lan")
    world.index.put(kinds.SERVICE, lan)
    assert world.look().presences["id-a"].lan == (
        LanPort(8096, "TCP", "192.0.2.1", 30001),
        LanPort(1900, "UDP", "192.0.2.1", 30002),
    )
    world.index.put(kinds.SERVICE, lan | {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}]}}})  # fmt: skip
    assert {(p.host, p.number) for p in world.look().presences["id-a"].lan} == {
        ("192.0.2.9", 8096),
        ("192.0.2.9", 1900),
        ("192.0.2.9", 5),
    }


@pytest.mark.parametrize(("served", "way"), [(True, "LoadBalancer"), (False, "NodePort")])
def test_the_service_is_of_the_kind_that_the_cluster_serves(served: bool, way: str) -> None:
    result = rendered(spec_of(ports=PORTS), capabilities=Capabilities(lan_ports=served))
    inside, outside = (obj["spec"] for obj in result.objects if obj["kind"] == "Service")
    assert inside["type"] == "ClusterIP"
    assert [port["port"] for port in inside["ports"]] == [8096, 1900, 9000]
    assert outside["type"] == way
    assert [(p["port"], p["protocol"]) for p in outside["ports"]] == [(8096, "TCP"), (1900, "UDP")]


def test_with_the_nodes_network_its_ports_need_no_service_on_the_lan() -> None:
    result = rendered(spec_of(ports=PORTS, host_network=True))
    (inside,) = (obj["spec"] for obj in result.objects if obj["kind"] == "Service")
    assert inside["type"] == "ClusterIP"
    pod = pod_of(result)
    assert (pod["hostNetwork"], pod["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert "hostNetwork" not in pod_of(rendered(spec_of(ports=PORTS)))
