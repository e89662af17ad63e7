"""Ports on the local network and the node's own network, on a real API server: accepted, numbered, seen.

The simulated cluster has no load balancer: where one gives an address, the test writes it as a balancer would.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from linking import linked, seen, unique
from rendering import placed, rendered, spec_of, workload_of
from running import RunningEngine

from podwarden.control.addresses import urls
from podwarden.domain.inventory import Capabilities
from podwarden.domain.placement import Slot
from podwarden.domain.workload import Expose, Port

PORTS = (Port("web", 8096, Expose.LAN), Port("find", 1900, Expose.LAN, "UDP"), Port("api", 9000))
STATUS = {"loadBalancer": {"ingress": [{"ip": "192.0.2.77"}]}}


def give_address(engine: RunningEngine, path: str) -> None:
    answer = engine.api.http.patch(
        f"{path}/status",
        content=json.dumps({"status": STATUS}),
        headers={"Content-Type": "application/merge-patch+json"},
    )
    assert answer.status_code == 200, answer.text


@pytest.fixture
def foreign(engine: RunningEngine, namespace: str) -> Iterator[str]:
    """A service of somebody else that a load balancer gave an address: TCP 80."""
    services = f"/api/v1/namespaces/{namespace}/services"
    spec = {"type": "LoadBalancer", "selector": {"a": "b"}, "ports": [{"name": "http", "port": 80}]}
    engine.api.create(services, {"metadata": {"name": "ingress"}, "spec": spec})
    give_address(engine, f"{services}/ingress")
    yield f"{namespace}/ingress"
    engine.api.delete(f"{services}/ingress")


async def test_without_a_balancer_a_port_gets_a_number_of_the_clusters(
    engine: RunningEngine, node: str
) -> None:
    workload = workload_of(replace(spec_of(unique("lan")), ports=PORTS))
    async with linked(engine) as (link, fence):
        able = replace(link.observe().capabilities, lan_ports=False)
        await link.apply(rendered(workload, placed(workload, Slot(node)), capabilities=able), fence)
        presence = await seen(
            link,
            lambda o: next((p for k, p in o.presences.items() if k == workload.id and p.lan), None),
            "its ports have numbers",
        )
        web, find = presence.lan
        assert (web.port, web.protocol, find.port, find.protocol) == (8096, "TCP", 1900, "UDP")
        assert 30000 <= web.number <= 32767
        services = engine.api.items("/api/v1/namespaces/podwarden/services")
        given = {
            (s["spec"]["type"], port["port"], port.get("nodePort"))
            for s in services
            if s["metadata"]["labels"]["podwarden.io/workload"] == workload.id
            for port in s["spec"]["ports"]
        }
        assert ("NodePort", 8096, web.number) in given
        assert ("ClusterIP", 9000, None) in given
        shown = urls(workload, link.observe())
        assert shown == (f"http://{web.host}:{web.number}", f"udp://{find.host}:{find.number}")
        await link.remove(workload.id, keep_volumes=False, fence=fence)


async def test_with_a_balancer_a_port_keeps_its_number_and_other_peoples_are_taken(
    engine: RunningEngine, node: str, foreign: str
) -> None:
    workload = workload_of(replace(spec_of(unique("lan")), ports=PORTS))
    async with linked(engine) as (link, fence):
        look = await seen(link, lambda o: o if o.lan_taken else None, "the ports of others")
        assert look.lan_taken == {("TCP", 80): foreign}
        assert look.capabilities.lan_ports
        await link.apply(
            rendered(workload, placed(workload, Slot(node)), capabilities=look.capabilities), fence
        )
        services = engine.api.items("/api/v1/namespaces/podwarden/services")
        (lan,) = [
            s["metadata"]["name"]
            for s in services
            if s["metadata"]["labels"]["podwarden.io/workload"] == workload.id
            and s["spec"]["type"] == "LoadBalancer"
        ]
        give_address(engine, f"/api/v1/namespaces/podwarden/services/{lan}")
        shown = await seen(
            link,
            lambda o: [url for url in urls(workload, o) if "192.0.2.77" in url],
            "its own address",
        )
        assert shown == ["http://192.0.2.77:8096", "udp://192.0.2.77:1900"]
        assert link.observe().lan_taken == {("TCP", 80): foreign}, "its own ports are not foreign"
        await link.remove(workload.id, keep_volumes=False, fence=fence)


async def test_with_the_nodes_network_it_runs_and_answers_at_its_node(
    engine: RunningEngine, node: str
) -> None:
    workload = workload_of(
        replace(spec_of(unique("host")), ports=PORTS, host_network=True, node=node)
    )
    async with linked(engine) as (link, fence):
        result = rendered(workload, placed(workload, Slot(node)), capabilities=Capabilities())
        await link.apply(result, fence)
        await seen(
            link,
            lambda o: [i for i in o.instances.get(workload.id, ()) if i.ready],
            "it runs",
        )
        look = link.observe()
        (address,) = [n.address for n in look.nodes if n.name == node]
        assert urls(workload, look) == (f"http://{address}:8096", f"udp://{address}:1900")
        await link.remove(workload.id, keep_volumes=False, fence=fence)
