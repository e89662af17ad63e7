"""An engine as cluster tests see it, and the pods they make there."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deadline import eventually
from rawapi import Json, RawApi

from podwarden.simulator.engine import Engine, EngineOptions

# Short, so that a test need not wait 50 s for a node that was switched off.
NODE_GRACE = 8.0
POWER = "simulator.podwarden.io/power"


@dataclass
class RunningEngine:
    """An engine that is ready, and its API without any code of PodWarden's in between."""

    engine: Engine
    api: RawApi

    @classmethod
    def start(cls, folder: Path, options: EngineOptions | None = None) -> RunningEngine:
        engine = Engine(folder)
        engine.start(options or EngineOptions(node_grace=NODE_GRACE))
        engine.wait_ready()
        return cls(engine, RawApi(engine.kubeconfig))

    def stop(self) -> None:
        self.api.close()
        self.engine.stop()

    @property
    def kubeconfig(self) -> Path:
        return self.engine.kubeconfig

    @property
    def server(self) -> str:
        return self.api.server

    @property
    def data_dir(self) -> Path:
        return self.engine.data_dir

    def add_node(self, name: str, cpu: int = 8, memory: str = "32Gi") -> str:
        """A simulated node that is on; returns once it is ready."""
        size = {"cpu": str(cpu), "memory": memory, "pods": "110"}
        self.api.create(
            "/api/v1/nodes",
            {
                "metadata": {"name": name, "labels": {POWER: "on", "kubernetes.io/hostname": name}},
                "status": {
                    "capacity": size,
                    "allocatable": size,
                    "addresses": [{"type": "InternalIP", "address": "192.0.2.7"}],
                },
            },
        )
        eventually(lambda: self.node_condition(name) == "True", f"node {name} ready")
        return name

    def power(self, name: str, on: bool) -> None:
        """Switches a simulated node: off, it falls silent and its pods stay as they are."""
        self.api.merge(
            f"/api/v1/nodes/{name}", {"metadata": {"labels": {POWER: "on" if on else "off"}}}
        )

    def node_condition(self, name: str) -> str:
        conditions = self.api.get(f"/api/v1/nodes/{name}")["status"].get("conditions", [])
        return next((c["status"] for c in conditions if c["type"] == "Ready"), "")

    def add_namespace(self) -> str:
        """A namespace in which pods can be made."""
        name = f"t-{uuid.uuid4().hex[:8]}"
        self.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        eventually(lambda: self.api.find(account), f"service account of {name}")
        return name


def pod_meta(name: str, annotations: dict[str, Any]) -> Json:
    prefix = "simulator.podwarden.io/"
    return {
        "name": name,
        "annotations": {prefix + k.replace("_", "-"): str(v) for k, v in annotations.items()},
    }


def pod_spec(node: str, more: Json | None = None) -> Json:
    return {
        "containers": [{"name": "main", "image": "example.org/app:1"}],
        "nodeSelector": {"kubernetes.io/hostname": node},
        "terminationGracePeriodSeconds": 5,
        **(more or {}),
    }
