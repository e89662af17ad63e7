"""What is left out of a stored spec means its default, in the store and in the records inside clusters. A default
that changes would change every revision ever stored: whoever changes one of these also writes out the old value in a
migration of the store, and raises the format of records.
"""

from __future__ import annotations

import pytest

from podwarden.domain.document import from_document
from podwarden.domain.request import Request
from podwarden.domain.workload import HealthCheck, JobSpec, Port, Spec, Volume, VolumeKind

SERVICE = {
    "name": "a", "kind": "service", "cluster": "", "image": "i", "image_pull_secret": "", "command": (), "args": (),
    "gpu": None, "cpu_milli": 1000, "memory_mib": 1024, "replicas": 1, "min_replicas": 1, "env": (), "secrets": (),
    "ports": (), "volumes": (), "devices": (), "host_network": False, "health": None, "shm_mib": None, "priority": 500,
    "preemptible": False, "hours": "", "node": "", "avoid": (), "update": "auto", "surge_wait_s": 600,
    "idle_stop_s": None, "notify": (), "job": None, "template": "", "annotations": (),
}  # fmt: skip
JOB = {"array": None, "parallelism": None, "gang": False, "retries": 2, "time_limit_s": None}
REQUEST = {
    "count": 1, "vram_mib": None, "sharing": "dedicated", "model": (), "compute": "", "encoder_sessions": 0,
    "over_budget": "restart",
}  # fmt: skip
HEALTH = {"port": 80, "http_path": "", "command": (), "startup_s": 600, "period_s": 10}
PORT = {"name": "port-80", "port": 80, "expose": "cluster", "protocol": "TCP"}
VOLUME = {
    "name": "v", "path": "/v", "kind": "scratch", "size_mib": None, "storage": "", "subpath": "", "read_only": False,
}  # fmt: skip


def shown(noun: object) -> dict[str, object]:
    return {name: getattr(noun, name) for name in type(noun).__dataclass_fields__}


def spec(**more: object) -> Spec:
    return from_document({"name": "a", "image": "i", **more})


def test_a_service() -> None:
    assert shown(spec()) == SERVICE


@pytest.mark.parametrize(
    ("noun", "kept"),
    [
        (spec(kind="job").job or JobSpec(), JOB),
        (spec(gpu={}).gpu, REQUEST),
        (spec(health={"tcp": {"port": 80}}).health, HEALTH),
        (spec(ports=[{"port": 80}]).ports[0], PORT),
        (spec(volumes=[{"name": "v", "path": "/v", "kind": "scratch"}]).volumes[0], VOLUME),
    ],
    ids=["job", "gpu", "health", "port", "volume"],
)
def test_a_part(noun: object, kept: dict[str, object]) -> None:
    assert shown(noun) == kept


@pytest.mark.parametrize(
    ("noun", "kept"),
    [
        (JobSpec(), JOB),
        (Request(), REQUEST),
        (HealthCheck(port=80), HEALTH),
        (Port("port-80", 80), PORT),
        (Volume("v", "/v", VolumeKind.SCRATCH), VOLUME),
    ],
    ids=["job", "gpu", "health", "port", "volume"],
)
def test_the_nouns_themselves_say_the_same(noun: object, kept: dict[str, object]) -> None:
    assert shown(noun) == kept
