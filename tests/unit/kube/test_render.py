"""A workload as objects: fields that matter, one by one. What the API server says of the whole is in tests/cluster.

Covers services, jobs, arrays, gangs, strategy, names, pruning, classic clusters, secrets, storages. Pods' insides are
in test_render_pod.py, the record in test_record.py.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from kubemaking import GIB, NOW, only, placed, pod_of, rendered, spec_of, workload_of

from podwarden.domain.inventory import Capabilities
from podwarden.domain.placement import Slot
from podwarden.domain.request import Request
from podwarden.domain.workload import (
    Expose,
    HealthCheck,
    JobSpec,
    Kind,
    Port,
    Revision,
    Spec,
    Volume,
    VolumeKind,
)
from podwarden.errors import Invalid
from podwarden.kube.record import MOST_INLINE, carried_record
from podwarden.kube.render import Strategy, array_pods, lan_service_name

DISK = Volume("data", "/data", VolumeKind.DISK, size_mib=100)
SLOT = Slot("n3", ("gpu-a",))
NO_CLAIMS = Capabilities(shared=False, hold=False, steer_device=False, driver="")


def test_objects_come_in_the_order_in_which_they_are_needed() -> None:
    spec = spec_of(
        gpu=Request(), secrets=(("TOKEN", "hf"),), volumes=(DISK,), ports=(Port("http", 80),)
    )
    kinds = [obj["kind"] for obj in rendered(spec, placed(SLOT), secrets={"hf": "x"}).objects]
    assert kinds == [
        "Secret", "PersistentVolumeClaim", "ResourceClaimTemplate", "Service", "Deployment",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "kinds"),
    [
        (spec_of(kind=Kind.JOB), ["Job"]),
        (spec_of(kind=Kind.JOB, gpu=Request()), ["ResourceClaimTemplate", "Job"]),
        (
            spec_of(gpu=Request(), ports=(Port("http", 80),)),
            ["ResourceClaimTemplate", "Service", "Deployment"],
        ),
    ],
)
def test_a_start_is_few_writes(spec: Spec, kinds: list[str]) -> None:
    result = rendered(spec, placed(SLOT) if spec.gpu else None)
    assert [obj["kind"] for obj in result.objects] == kinds


def test_every_object_says_whose_it_is() -> None:
    spec = spec_of(
        gpu=Request(), secrets=(("T", "hf"),), volumes=(DISK,), ports=(Port("http", 80, Expose.LAN),)
    )  # fmt: skip
    workload = workload_of(spec, revision=4)
    result = rendered(spec, placed(SLOT), workload=workload, secrets={"hf": "x"})
    for obj in [*result.objects, result.objects[-1]["spec"]["template"]]:
        labels = obj["metadata"]["labels"]
        assert labels["podwarden.io/workload"] == "id-web"
        assert labels["podwarden.io/name"] == "web"
        assert labels["podwarden.io/revision"] == "4"
    for obj in result.objects:
        assert obj["metadata"]["namespace"] == "podwarden"
        assert obj["metadata"]["annotations"]["podwarden.io/owner"] == "ann"
    template = only(result, "ResourceClaimTemplate")
    assert template["spec"]["metadata"]["labels"]["podwarden.io/workload"] == "id-web"
    assert (
        only(result, "PersistentVolumeClaim")["metadata"]["labels"]["podwarden.io/volume"] == "data"
    )


def test_the_same_input_gives_the_same_objects() -> None:
    spec = spec_of(gpu=Request(1, 8 * GIB), ports=(Port("http", 80),))
    first, second = (rendered(spec, placed(SLOT, bands=(8192,))) for _ in range(2))
    assert json.dumps(first.objects) == json.dumps(second.objects)


def test_the_claim_template_gets_a_new_name_with_a_new_content() -> None:
    """Its content can never be changed under one name."""
    spec = spec_of(gpu=Request())

    def name(*slots: Slot, revision: int = 1) -> str:
        result = rendered(spec, placed(*slots), workload=workload_of(spec, revision=revision))
        template = only(result, "ResourceClaimTemplate")["metadata"]["name"]
        assert pod_of(result)["resourceClaims"] == [
            {"name": "gpu", "resourceClaimTemplateName": template}
        ]
        return template

    assert name(SLOT).startswith("web-r1-")
    assert name(SLOT) == name(SLOT)
    assert name(SLOT) != name(Slot("n3", ("gpu-b",)))
    assert name(SLOT, revision=2).startswith("web-r2-")


def test_work_without_gpu_has_no_claim() -> None:
    result = rendered(spec_of())
    assert "resourceClaims" not in pod_of(result)
    assert [obj["kind"] for obj in result.objects] == ["Deployment"]


# --- services ------------------------------------------------------------------------------------


def test_replicas_are_those_of_the_spec() -> None:
    spec = spec_of(replicas=3)
    for slots in ((), (SLOT,), (SLOT,) * 5):
        assert only(rendered(spec, placed(*slots)), "Deployment")["spec"]["replicas"] == 3


@pytest.mark.parametrize(
    ("strategy", "replicas", "rollout"),
    [
        (Strategy.SURGE, 1, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}),
        (Strategy.RECREATE, 1, {"type": "Recreate"}),
        (Strategy.RECREATE, 2, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}),
        ("surge", 2, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}),
    ],
)  # fmt: skip
def test_the_caller_chooses_the_rollout(
    strategy: Strategy | str, replicas: int, rollout: dict[str, Any]
) -> None:
    """P-40: with the only GPU held by the old one, surge would never end."""
    result = rendered(spec_of(replicas=replicas), strategy=strategy)
    assert only(result, "Deployment")["spec"]["strategy"] == rollout


def test_a_rollout_has_time_for_the_image_and_the_model() -> None:
    patient = spec_of(health=HealthCheck(80, startup_s=1200))
    assert only(rendered(patient), "Deployment")["spec"]["progressDeadlineSeconds"] == 2100
    assert only(rendered(spec_of()), "Deployment")["spec"]["progressDeadlineSeconds"] == 900


def test_service_pods_are_never_gated() -> None:
    for spec in (spec_of(gpu=Request()), spec_of(kind=Kind.JOB, gpu=Request())):
        assert "schedulingGates" not in pod_of(rendered(spec, placed(SLOT)))


def test_ports_are_inside_and_only_some_in_the_local_network() -> None:
    spec = spec_of(ports=(Port("http", 80, Expose.LAN), Port("rtp", 5004, protocol="UDP")))
    services = {
        obj["metadata"]["name"]: obj["spec"]
        for obj in rendered(spec).objects
        if obj["kind"] == "Service"
    }
    inside, lan = services["web"], services[lan_service_name(workload_of(spec))]
    assert (inside["type"], lan["type"]) == ("ClusterIP", "LoadBalancer")
    assert [(p["name"], p["port"], p["protocol"]) for p in inside["ports"]] == [
        ("http", 80, "TCP"),
        ("rtp", 5004, "UDP"),
    ]
    assert [p["port"] for p in lan["ports"]] == [80]
    assert inside["selector"] == lan["selector"] == {"podwarden.io/workload": "id-web"}


def test_the_names_of_two_workloads_never_meet() -> None:
    """`a` with volume `b-c` and `a-b` with volume `c`; a pull secret and a workload of that name."""

    def names(name: str, volume: str) -> set[tuple[str, str]]:
        spec = spec_of(
            name,
            gpu=Request(),
            secrets=(("T", "hf"),),
            image_pull_secret="reg",
            volumes=(Volume(volume, "/d", VolumeKind.DISK, size_mib=1),),
            ports=(Port("http", 80, Expose.LAN),),
        )
        result = rendered(spec, placed(SLOT), secrets={"hf": "x", "reg": '{"auths":{}}'})
        return {(obj["kind"], obj["metadata"]["name"]) for obj in result.objects}

    pairs = [("a", "b-c"), ("a-b", "c"), ("a-pull", "x"), ("a-record", "x"), ("a-lan", "x")]
    found = [pair for name, volume in pairs for pair in names(name, volume)]
    assert len(found) == len(set(found))


# --- jobs ----------------------------------------------------------------------------------------


def job_of(job: JobSpec, *slots: Slot, **more: Any) -> dict[str, Any]:
    spec = spec_of(kind=Kind.JOB, job=job, gpu=Request())
    return only(rendered(spec, placed(*slots), **more), "Job")["spec"]


def test_a_plain_job_survives_lost_nodes_beyond_its_own_retries() -> None:
    job = job_of(JobSpec(retries=3, time_limit_s=7200), SLOT)
    assert job["backoffLimit"] == 23
    assert job["podReplacementPolicy"] == "TerminatingOrFailed"
    assert "podFailurePolicy" not in job, "the API refuses it together with that policy"
    assert (job["completions"], job["parallelism"], job["suspend"]) == (1, 1, False)
    assert job["template"]["spec"]["restartPolicy"] == "Never"
    assert job["template"]["spec"]["activeDeadlineSeconds"] == 7200, (
        "per pod: a restart has it anew"
    )
    assert "activeDeadlineSeconds" not in job


def test_an_array_waits_behind_gates_with_a_small_stock() -> None:
    job = job_of(JobSpec(array=(1, 10_000), retries=1), *[SLOT] * 4)
    assert (job["completionMode"], job["completions"]) == ("Indexed", 10_000)
    assert job["parallelism"] == 20, "4 that may run and 16 that wait"
    assert job["backoffLimitPerIndex"] == 21
    assert job["template"]["spec"]["schedulingGates"] == [{"name": "podwarden.io/room"}]
    assert job["template"]["metadata"]["annotations"]["podwarden.io/first-index"] == "1"


@pytest.mark.parametrize(
    ("job", "running", "wanted", "pods"),
    [
        (JobSpec(array=(1, 5)), 2, None, 5),
        (JobSpec(array=(1, 100), parallelism=3), 2, None, 3),
        (JobSpec(array=(1, 100)), 0, None, 16),
        (JobSpec(array=(1, 100)), 2, 40, 40),
        (JobSpec(array=(1, 100)), 2, 400, 100),
        (JobSpec(array=(0, 99), gang=True), 2, None, 100),
    ],
)
def test_how_many_pods_of_an_array_exist(
    job: JobSpec, running: int, wanted: int | None, pods: int
) -> None:
    assert array_pods(job, running, wanted) == pods


def test_an_array_is_not_tied_to_the_gpus_of_its_first_tasks() -> None:
    spec = spec_of(kind=Kind.JOB, job=JobSpec(array=(1, 9)), gpu=Request(1, 8 * GIB))
    template = only(rendered(spec, placed(SLOT, bands=(8192, 24576))), "ResourceClaimTemplate")
    (asked,) = template["spec"]["spec"]["devices"]["requests"]
    assert [wish["name"] for wish in asked["firstAvailable"]] == ["any-0", "any-1"]


def test_a_gang_has_all_its_members_at_once_and_they_find_each_other() -> None:
    spec = spec_of(kind=Kind.JOB, job=JobSpec(array=(0, 3), gang=True))
    result = rendered(spec)
    job = only(result, "Job")["spec"]
    assert (job["parallelism"], job["completions"]) == (4, 4)
    assert job["template"]["spec"]["subdomain"] == "web"
    service = only(result, "Service")["spec"]
    assert (service["clusterIP"], service["ports"]) == ("None", [])
    assert service["publishNotReadyAddresses"] is True


def test_a_job_without_a_section_has_the_defaults() -> None:
    spec = Spec(name="web", kind=Kind.JOB, image="x")
    assert only(rendered(spec), "Job")["spec"]["backoffLimit"] == JobSpec().retries + 20


# --- secrets, volumes, other clusters --------------------------------------------------------------


def test_secrets_are_in_a_secret_and_nowhere_else() -> None:
    spec = spec_of(secrets=(("HF_TOKEN", "my-hf"),))
    result = rendered(spec, secrets={"my-hf": "s3cr3t-ü", "other": "nope"})
    data = only(result, "Secret")["data"]
    assert {k: base64.b64decode(v).decode() for k, v in data.items()} == {"HF_TOKEN": "s3cr3t-ü"}
    rest = json.dumps([obj for obj in result.objects if obj["kind"] != "Secret"])
    assert "s3cr3t" not in rest
    assert "my-hf" in carried_record(result.objects[-1])


def test_a_pull_secret_is_a_docker_login() -> None:
    spec = spec_of(image_pull_secret="reg")
    result = rendered(spec, secrets={"reg": '{"auths": {"example.org": {}}}'})
    assert only(result, "Secret")["type"] == "kubernetes.io/dockerconfigjson"
    assert pod_of(result)["imagePullSecrets"] == [
        {"name": only(result, "Secret")["metadata"]["name"]}
    ]


@pytest.mark.parametrize("login", ["user:hunter2", "[]", '{"auths": "hunter2"}', "{}"])
def test_a_pull_secret_that_is_no_login_is_refused_without_quoting_it(login: str) -> None:
    with pytest.raises(Invalid, match=r"docker/config\.json") as caught:
        rendered(spec_of(image_pull_secret="reg"), secrets={"reg": login})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (spec_of(secrets=(("T", "absent"),)), "secrets.T"),
        (spec_of(image_pull_secret="absent"), "image_pull_secret"),
        (spec_of(volumes=(Volume("m", "/m", VolumeKind.STORAGE, storage="absent"),)), "volumes[0].storage"),
    ],
)  # fmt: skip
def test_what_the_spec_names_must_be_there(spec: Spec, field: str) -> None:
    with pytest.raises(Invalid) as caught:
        rendered(spec)
    assert [(p.field, p.value) for p in caught.value.problems] == [(field, "absent")]


def test_a_disk_is_claimed_of_the_default_storage_class() -> None:
    claim = only(rendered(spec_of(volumes=(DISK,))), "PersistentVolumeClaim")
    assert claim["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "100Mi"}},
    }


def test_a_classic_cluster_counts_whole_gpus() -> None:
    spec = spec_of(gpu=Request(2, 16 * GIB))
    result = rendered(spec, placed(SLOT), capabilities=NO_CLAIMS)
    assert "ResourceClaimTemplate" not in {obj["kind"] for obj in result.objects}
    pod = pod_of(result)
    assert pod["runtimeClassName"] == "nvidia"
    assert pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "2"
    assert "claims" not in pod["containers"][0]["resources"]
    required = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (expression,) = required["nodeSelectorTerms"][0]["matchExpressions"]
    assert (expression["key"], expression["operator"]) == ("nvidia.com/gpu.memory", "Gt")


def test_a_classic_cluster_without_sizes_asks_for_none() -> None:
    blind = Capabilities(vram_floor=False, driver="")
    pod = pod_of(rendered(spec_of(gpu=Request(1, 16 * GIB)), capabilities=blind))
    assert "affinity" not in pod


def test_another_driver_is_asked_by_its_own_class() -> None:
    result = rendered(spec_of(gpu=Request()), capabilities=Capabilities(driver="gpu.nvidia.com"))
    (asked,) = only(result, "ResourceClaimTemplate")["spec"]["spec"]["devices"]["requests"]
    assert asked["firstAvailable"][0]["deviceClassName"] == "gpu.nvidia.com"


# --- pruning ---------------------------------------------------------------------------------------


def left_over(kind: str, name: str, revision: str = "1", **metadata: Any) -> dict[str, Any]:
    labels = {"podwarden.io/revision": revision}
    return {"kind": kind, "metadata": {"name": name, "labels": labels, **metadata}}


def test_what_the_new_revision_lacks_is_dropped() -> None:
    spec = spec_of(gpu=Request())
    prune = rendered(spec, placed(SLOT), workload=workload_of(spec, revision=5)).prune
    assert prune.selector == "podwarden.io/workload=id-web"
    assert ("v1", "persistentvolumeclaims") not in prune.kinds, "data is never pruned"
    assert prune.drops(left_over("Service", "web"))
    assert prune.drops(left_over("Job", "web"))
    assert not prune.drops(left_over("Deployment", "web"))
    assert prune.drops(left_over("ConfigMap", "web-record")), "the record is short again"
    assert not prune.drops(left_over("Service", "web", deletionTimestamp="2026-11-30T00:00:00Z"))


def test_claim_templates_of_the_previous_revision_stay_for_its_replicas() -> None:
    spec = spec_of(gpu=Request())
    prune = rendered(spec, placed(SLOT), workload=workload_of(spec, revision=5)).prune
    kept = {n: not prune.drops(left_over("ResourceClaimTemplate", f"web-r{n}-x", n)) for n in "345"}
    assert kept == {"3": False, "4": True, "5": False}, "of its own revision only the current one"
    assert prune.drops(left_over("ResourceClaimTemplate", "odd", "x"))


def test_the_record_carries_the_history() -> None:
    spec = spec_of()
    revision = Revision("id-web", 1, spec, NOW, "ann", "first")
    (main,) = rendered(spec, revisions=(revision,)).objects
    assert json.loads(carried_record(main))["revisions"][0]["note"] == "first"
    assert "podwarden.io/record" not in main["spec"]["template"]["metadata"].get("annotations", {})


def test_a_long_record_is_an_object_of_its_own() -> None:
    spec = spec_of()
    long = Revision("id-web", 1, spec, NOW, "ann", "x" * MOST_INLINE)
    result = rendered(spec, revisions=(long,))
    record, main = result.objects
    assert (record["kind"], record["metadata"]["name"]) == ("ConfigMap", "web-record")
    assert json.loads(carried_record(record))["revisions"][0]["note"] == long.note
    assert carried_record(main) is None
    assert not result.prune.drops(left_over("ConfigMap", "web-record"))
