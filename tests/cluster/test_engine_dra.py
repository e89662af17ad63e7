"""GPUs on the engine: the real scheduler allocates hand-written slices with consumable capacity (design.md, section 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from deadline import eventually
from rawapi import Json
from running import RunningEngine

RESOURCE = "/apis/resource.k8s.io/v1"
MIB = 1 << 20


@pytest.fixture
def gpu(engine: RunningEngine, node: str) -> Iterator[str]:
    """One GPU of 23 GiB with 64 shares on the test's node, in a device class of its own. Returns the class's name."""
    driver = f"{node}.example.org"
    engine.api.create(
        f"{RESOURCE}/deviceclasses",
        {
            "metadata": {"name": driver},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]},
        },
    )
    memory = {
        "value": f"{23 * 1024}Mi",
        "requestPolicy": {
            "default": f"{23 * 1024}Mi",
            "validRange": {"min": "128Mi", "step": "128Mi"},
        },
    }
    shares = {"value": "64", "requestPolicy": {"default": "64", "validRange": {"min": "1"}}}
    engine.api.create(
        f"{RESOURCE}/resourceslices",
        {
            "metadata": {"name": driver},
            "spec": {
                "driver": driver,
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": [
                    {
                        "name": "gpu-0",
                        "allowMultipleAllocations": True,
                        "capacity": {"memory": memory, "shares": shares},
                        "attributes": {"model": {"string": "RTX 3090"}},
                    }
                ],
            },
        },
    )
    yield driver
    engine.api.delete(f"{RESOURCE}/resourceslices/{driver}")
    engine.api.delete(f"{RESOURCE}/deviceclasses/{driver}")


@pytest.fixture
def claim(
    engine: RunningEngine, namespace: str, gpu: str, on_node: Callable[..., str]
) -> Callable[..., tuple[str, str]]:
    """Makes a claim and a pod that uses it; returns both paths."""

    def make(name: str, requests: Json | None) -> tuple[str, str]:
        exactly: Json = {"deviceClassName": gpu}
        if requests:
            exactly["capacity"] = {"requests": requests}
        claims = f"{RESOURCE}/namespaces/{namespace}/resourceclaims"
        engine.api.create(
            claims,
            {
                "metadata": {"name": name},
                "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
            },
        )
        containers = [
            {
                "name": "main",
                "image": "example.org/app:1",
                "resources": {"claims": [{"name": "gpu"}]},
            }
        ]
        pod = on_node(
            name,
            spec={
                "containers": containers,
                "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
            },
        )
        return f"{claims}/{name}", pod

    return make


def consumed(engine: RunningEngine, claim: str) -> dict[str, str]:
    allocation = engine.api.get(claim).get("status", {}).get("allocation")
    return allocation["devices"]["results"][0]["consumedCapacity"] if allocation else {}


def waits(engine: RunningEngine, pod: str) -> bool:
    conditions = engine.api.get(pod)["status"].get("conditions", [])
    return any(
        c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable" for c in conditions
    )


def test_shared_claims_add_up_and_a_dedicated_one_waits(
    engine: RunningEngine, claim: Callable[..., tuple[str, str]]
) -> None:
    first, _ = claim("first", {"memory": "6Gi", "shares": "1"})
    second, second_pod = claim("second", {"memory": "6Gi", "shares": "1"})
    assert eventually(lambda: consumed(engine, first), "first allocated") == {
        "memory": "6Gi",
        "shares": "1",
    }
    assert eventually(lambda: consumed(engine, second), "second allocated") == {
        "memory": "6Gi",
        "shares": "1",
    }
    _, too_much = claim("third", {"memory": "12Gi", "shares": "1"})
    _, whole = claim("whole", None)
    eventually(lambda: waits(engine, too_much), "12 GiB do not fit beside 12 of 23")
    eventually(lambda: waits(engine, whole), "a whole GPU is not to be had")
    engine.api.delete(second_pod)
    eventually(lambda: not waits(engine, too_much), "fits once the second is gone")


def test_a_dedicated_claim_takes_all_shares(
    engine: RunningEngine, claim: Callable[..., tuple[str, str]]
) -> None:
    whole, _ = claim("whole", None)
    assert eventually(lambda: consumed(engine, whole), "allocated") == {
        "memory": "23Gi",
        "shares": "64",
    }
    _, pod = claim("late", {"memory": "1Gi", "shares": "1"})
    eventually(lambda: waits(engine, pod), "nothing is left")
