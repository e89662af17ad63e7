"""The inside of a pod: environment, resources, volumes, shared memory, probes, where it may run."""

from __future__ import annotations

from typing import Any

import pytest
from kubemaking import (
    GIB,
    container_of,
    env_of,
    placed,
    pod_of,
    rendered,
    spec_of,
    workload_of,
)

from podwarden.domain.placement import Slot
from podwarden.domain.request import Request
from podwarden.domain.workload import (
    HealthCheck,
    JobSpec,
    Kind,
    Port,
    Priority,
    Spec,
    Volume,
    VolumeKind,
)
from podwarden.kube.render_pod import StorageSource


def affinity_of(spec: Spec, ranking: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    pod = pod_of(rendered(spec, placed(ranking=ranking), **more))
    return pod.get("affinity", {}).get("nodeAffinity", {})


def required_of(spec: Spec, **more: Any) -> list[tuple[str, str]]:
    """(operator, node) of everything that must hold."""
    affinity = affinity_of(spec, **more)
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    for field in term["matchFields"]:
        assert field["key"] == "metadata.name"
    return [(field["operator"], *field["values"]) for field in term["matchFields"]]


# --- environment -----------------------------------------------------------------------------------


def test_work_without_gpu_sees_none() -> None:
    """P-29: an image that asks for all GPUs, or a user's own setting, does not get them."""
    spec = spec_of(env=(("NVIDIA_VISIBLE_DEVICES", "all"), ("A", "1")))
    assert env_of(rendered(spec)) == {"NVIDIA_VISIBLE_DEVICES": "void", "A": "1"}
    assert "NVIDIA_VISIBLE_DEVICES" not in env_of(rendered(spec_of(gpu=Request())))


def test_values_are_literal_and_commands_may_refer() -> None:
    spec = spec_of(env=(("P", "$(HOME) $5"),), command=("run",), args=("$(P)",))
    result = rendered(spec)
    assert env_of(result)["P"] == "$$(HOME) $5"
    assert container_of(result)["command"] == ["run"]
    assert container_of(result)["args"] == ["$(P)"]


def test_a_secret_variable_is_a_reference_and_wins() -> None:
    spec = spec_of(env=(("TOKEN", "plain"),), secrets=(("TOKEN", "hf"),))
    reference = {"secretKeyRef": {"name": "web", "key": "TOKEN"}}
    assert env_of(rendered(spec, secrets={"hf": "x"}))["TOKEN"] == reference


def test_an_array_knows_its_frame() -> None:
    spec = spec_of(kind=Kind.JOB, job=JobSpec(array=(5, 14)), env=(("PW_INDEX_VALUE", "7"),))
    env = env_of(rendered(spec))
    field = "metadata.annotations['podwarden.io/index-value']"
    assert env["PW_INDEX_VALUE"] == {"fieldRef": {"fieldPath": field}}
    assert env["PW_TASKS"] == "10"
    assert "PW_GANG_FIRST" not in env
    gang = spec_of(kind=Kind.JOB, job=JobSpec(array=(0, 3), gang=True))
    assert env_of(rendered(gang))["PW_GANG_FIRST"] == "web-0.web"
    assert set(env_of(rendered(spec_of(kind=Kind.JOB)))) == {"NVIDIA_VISIBLE_DEVICES"}


# --- resources and shared memory ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpu", "given", "size"),
    [
        (None, None, 0),
        (None, 512, 512),
        (Request(), None, 2048),
        (Request(2), None, 4096),
        (Request(2), 1024, 1024),
        (Request(), 0, 0),
    ],
)  # fmt: skip
def test_shared_memory_is_sized_mounted_and_charged(
    gpu: Request | None, given: int | None, size: int
) -> None:
    """P-58: the container's own 64 MB break multi-GPU work."""
    spec = spec_of(gpu=gpu, shm_mib=given, memory_mib=1000)
    result = rendered(spec)
    resources = container_of(result)["resources"]
    assert resources["requests"]["memory"] == resources["limits"]["memory"] == f"{1000 + size}Mi"
    volume = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{size}Mi"}}
    mount = {"name": "shm", "mountPath": "/dev/shm"}
    assert (volume in pod_of(result).get("volumes", [])) is bool(size)
    assert (mount in container_of(result).get("volumeMounts", [])) is bool(size)


def test_cpu_is_asked_for_and_never_throttled() -> None:
    resources = container_of(rendered(spec_of(cpu_milli=1500)))["resources"]
    assert resources["requests"]["cpu"] == "1500m"
    assert set(resources["limits"]) == {"memory"}


def test_the_container_uses_the_claim() -> None:
    assert container_of(rendered(spec_of(gpu=Request())))["resources"]["claims"] == [
        {"name": "gpu"}
    ]


# --- safety ------------------------------------------------------------------------------------------


def test_a_pod_has_no_more_rights_than_it_needs() -> None:
    pod = pod_of(rendered(spec_of()))
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def test_device_nodes_of_the_host_need_an_unconfined_container() -> None:
    result = rendered(spec_of(devices=("/dev/dri", "/dev/ttyUSB0")))
    assert container_of(result)["securityContext"] == {"privileged": True}
    assert pod_of(result)["volumes"] == [
        {"name": "dev-0", "hostPath": {"path": "/dev/dri"}},
        {"name": "dev-1", "hostPath": {"path": "/dev/ttyUSB0"}},
    ]
    paths = [mount["mountPath"] for mount in container_of(result)["volumeMounts"]]
    assert paths == ["/dev/dri", "/dev/ttyUSB0"]


def test_priority_orders_and_never_evicts() -> None:
    for priority in Priority:
        pod = pod_of(rendered(spec_of(priority=priority)))
        assert pod["priorityClassName"] == f"podwarden-{priority.word}"


def test_simulator_annotations_reach_the_pods() -> None:
    given = (("simulator.podwarden.io/ready-after", "3"),)
    template = rendered(spec_of(annotations=given)).objects[-1]["spec"]["template"]
    assert template["metadata"]["annotations"] == dict(given)
    bare = rendered(spec_of()).objects[-1]["spec"]["template"]
    assert "annotations" not in bare["metadata"]


# --- where ---------------------------------------------------------------------------------------------


def test_a_lost_node_is_left_after_ten_seconds() -> None:
    tolerations = pod_of(rendered(spec_of()))["tolerations"]
    assert tolerations == [
        {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10}
        for state in ("not-ready", "unreachable")
    ]  # fmt: skip


def test_only_gpu_work_feels_at_home_on_gpu_nodes() -> None:
    here = {"key": "podwarden.io/gpu", "operator": "Exists"}
    assert here in pod_of(rendered(spec_of(gpu=Request())))["tolerations"]
    assert here not in pod_of(rendered(spec_of()))["tolerations"]


def test_the_ranking_is_a_falling_preference_of_at_most_20_nodes() -> None:
    names = tuple(f"n{i}" for i in range(25))
    preferred = affinity_of(spec_of(), names)["preferredDuringSchedulingIgnoredDuringExecution"]
    assert [term["weight"] for term in preferred] == list(range(100, 0, -5))
    nodes = [term["preference"]["matchFields"][0]["values"] for term in preferred]
    assert nodes == [[name] for name in names[:20]]


def test_without_a_wish_there_is_no_affinity() -> None:
    assert affinity_of(spec_of()) == {}


def test_node_avoid_and_storage_must_hold_together() -> None:
    volumes = (
        Volume("a", "/a", VolumeKind.STORAGE, storage="ssd"),
        Volume("b", "/b", VolumeKind.STORAGE, storage="nas"),
        Volume("c", "/c", VolumeKind.STORAGE, storage="ssd"),
    )
    storages = {
        "ssd": StorageSource("/srv", node="n3"),
        "nas": StorageSource("/media", server="nas"),
    }
    free = spec_of(avoid=("n1", "n2"), volumes=volumes)
    assert required_of(free, storages=storages) == [("NotIn", "n1"), ("NotIn", "n2"), ("In", "n3")]
    fixed = spec_of(node="n3", volumes=volumes)
    assert required_of(fixed, storages=storages) == [("In", "n3")]
    assert required_of(spec_of(node="n5")) == [("In", "n5")]


# --- volumes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("volume", "source"),
    [
        (Volume("v", "/v", VolumeKind.DISK, size_mib=5), {"persistentVolumeClaim": {"claimName": "web.v"}}),
        (Volume("v", "/v", VolumeKind.SCRATCH), {"emptyDir": {}}),
        (Volume("v", "/v", VolumeKind.SCRATCH, size_mib=5), {"emptyDir": {"sizeLimit": "5Mi"}}),
        (Volume("v", "/v", VolumeKind.STORAGE, storage="nas"), {"nfs": {"server": "nas", "path": "/media"}}),
        (Volume("v", "/v", VolumeKind.STORAGE, storage="ssd"), {"hostPath": {"path": "/srv", "type": "Directory"}}),
        (
            Volume("v", "/v", VolumeKind.CACHE, size_mib=5),
            {"hostPath": {"path": "/var/lib/podwarden/cache/ann/web/v", "type": "DirectoryOrCreate"}},
        ),
    ],
)  # fmt: skip
def test_each_kind_of_volume(volume: Volume, source: dict[str, Any]) -> None:
    storages = {
        "ssd": StorageSource("/srv", node="n3"),
        "nas": StorageSource("/media", server="nas"),
    }
    result = rendered(spec_of(volumes=(volume,)), storages=storages)
    assert pod_of(result)["volumes"] == [{"name": "vol-v", **source}]
    assert container_of(result)["volumeMounts"] == [{"name": "vol-v", "mountPath": "/v"}]


def test_a_mount_may_be_a_part_and_read_only() -> None:
    volume = Volume("v", "/v", VolumeKind.STORAGE, storage="nas", subpath="films", read_only=True)
    storages = {"nas": StorageSource("/media", server="nas")}
    (mount,) = container_of(rendered(spec_of(volumes=(volume,)), storages=storages))["volumeMounts"]
    assert mount == {"name": "vol-v", "mountPath": "/v", "subPath": "films", "readOnly": True}


@pytest.mark.parametrize("owner", ["../../etc", "a/b", "..", "", "ü", "x" * 100])
def test_a_cache_stays_in_its_folder_whatever_its_owner_is_called(owner: str) -> None:
    spec = spec_of(volumes=(Volume("v", "/v", VolumeKind.CACHE),))
    result = rendered(spec, workload=workload_of(spec, owner=owner))
    path = pod_of(result)["volumes"][0]["hostPath"]["path"]
    prefix, folder, *rest = path.rpartition("/cache/")[0], *path.rpartition("/cache/")[2].split("/")
    assert (prefix, rest) == ("/var/lib/podwarden", ["web", "v"])
    assert folder.startswith("owner-")
    assert len(folder) == 22


# --- health --------------------------------------------------------------------------------------------


def test_a_model_may_load_for_minutes_and_is_watched_then() -> None:
    spec = spec_of(ports=(Port("http", 8080),), health=HealthCheck(8080, "/health", startup_s=600))
    container = container_of(rendered(spec))
    startup = container["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] == 600
    assert startup["httpGet"] == {"path": "/health", "port": 8080}
    assert container["livenessProbe"]["periodSeconds"] == 10
    assert container["readinessProbe"]["failureThreshold"] == 3
    assert container["ports"] == [{"name": "http", "containerPort": 8080, "protocol": "TCP"}]


@pytest.mark.parametrize(
    ("health", "action"),
    [
        (HealthCheck(command=("ready",)), {"exec": {"command": ["ready"]}}),
        (HealthCheck(9000), {"tcpSocket": {"port": 9000}}),
    ],
)
def test_other_ways_to_ask(health: HealthCheck, action: dict[str, Any]) -> None:
    probe = container_of(rendered(spec_of(health=health)))["readinessProbe"]
    assert {key: probe[key] for key in action} == action


def test_a_short_startup_has_at_least_one_try() -> None:
    container = container_of(rendered(spec_of(health=HealthCheck(80, startup_s=1, period_s=2))))
    assert container["startupProbe"]["failureThreshold"] == 1
    assert container["startupProbe"]["periodSeconds"] == 2


def test_without_a_check_there_are_no_probes_and_jobs_have_none() -> None:
    job = spec_of(kind=Kind.JOB, health=HealthCheck(80))
    for spec in (spec_of(), job):
        assert not [key for key in container_of(rendered(spec)) if key.endswith("Probe")]


def test_the_last_words_of_a_crash_are_kept() -> None:
    container = container_of(rendered(spec_of(gpu=Request(1, GIB)), placed(Slot("n3", ("g",)))))
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"
