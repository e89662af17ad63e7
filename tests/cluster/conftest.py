"""One real engine for all cluster tests: a Kubernetes control plane with simulated nodes, on a temporary folder."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rawapi import Json
from running import RunningEngine, pod_meta, pod_spec


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    running = RunningEngine.start(tmp_path_factory.mktemp("engine"))
    yield running
    running.stop()


@pytest.fixture
def namespace(engine: RunningEngine) -> Iterator[str]:
    name = engine.add_namespace()
    yield name
    engine.api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def node(engine: RunningEngine) -> Iterator[str]:
    """A node of the test's own; pods get there by `on_node`."""
    yield from _own_node(engine)


@pytest.fixture
def other_node(engine: RunningEngine) -> Iterator[str]:
    """A second one. Kubernetes evicts nobody while all nodes are silent, or most of three or more: it then believes that
    it is cut off itself.
    """
    yield from _own_node(engine)


def _own_node(engine: RunningEngine) -> Iterator[str]:
    name = engine.add_node(f"n-{uuid.uuid4().hex[:8]}")
    yield name
    engine.api.delete(f"/api/v1/nodes/{name}")


@pytest.fixture
def on_node(engine: RunningEngine, namespace: str, node: str) -> Callable[..., str]:
    """Makes a pod on the test's node and returns its path. Annotations are given without their prefix, with _ for -."""

    def make(name: str, *, spec: Json | None = None, **annotations: Any) -> str:
        pods = f"/api/v1/namespaces/{namespace}/pods"
        engine.api.create(
            pods, {"metadata": pod_meta(name, annotations), "spec": pod_spec(node, spec)}
        )
        return f"{pods}/{name}"

    return make
