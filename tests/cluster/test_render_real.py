"""What render makes, given to the real API server, scheduler and controllers (design.md, section 4).

Covers: every rendered kind (dry run and for real); planned device honoured, fallback, whole and shared GPUs, several
GPUs, models and compute capability, encoder sessions, foreign nvidia.com/gpu on the same books, holds, arrays and
their frame numbers, lost devices. The fence is in test_fence_real.py. Not here: what kubelet does with a claim (lab).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from deadline import eventually, holds
from rendering import (
    CLAIMS,
    PODS,
    apply_all,
    gpu,
    held_by,
    placed,
    pods_of,
    publish,
    rendered,
    running,
    spec_of,
    try_apply,
    unschedulable,
    workload_of,
)  # fmt: skip
from running import RunningEngine

from podwarden.domain.inventory import DeviceHealth
from podwarden.domain.placement import Hold, Slot
from podwarden.domain.request import Request, Sharing
from podwarden.domain.workload import (
    Expose,
    HealthCheck,
    JobSpec,
    Kind,
    Port,
    Spec,
    Volume,
    VolumeKind,
    Workload,
)  # fmt: skip
from podwarden.kube.fence import fence_map
from podwarden.kube.gates import opening
from podwarden.kube.holds import hold_object
from podwarden.kube.render import Strategy
from podwarden.kube.render_pod import StorageSource
from podwarden.kube.standing import bootstrap_objects, namespace

GIB = 1024
RESOURCE = "/apis/resource.k8s.io/v1"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    """An engine of its own: its GPUs must not attract other tests' pods."""
    engine = RunningEngine.start(tmp_path_factory.mktemp("render"))
    try:
        apply_all(engine.api, [namespace(), fence_map(1), *bootstrap_objects()])
        yield engine
    finally:
        engine.stop()


@pytest.fixture
def pair(cluster: RunningEngine) -> Iterator[str]:
    """A node with an RTX 3060 (12 GB) and an RTX 3090 (24 GB); everything of PodWarden is gone afterwards."""
    name = f"n-{uuid.uuid4().hex[:6]}"
    cluster.add_node(name)
    publish(cluster, name, cards(name))
    yield name
    clear(cluster)
    cluster.api.delete(f"/api/v1/nodes/{name}")
    cluster.api.delete(f"{RESOURCE}/resourceslices/{name}-gpu.podwarden.io")


def cards(node: str):
    return [gpu(node, 1, "RTX 3090", 24 * GIB), gpu(node, 0, "RTX 3060", 12 * GIB)]


def small(node: str) -> str:
    return f"gpu-{node}-0"


def large(node: str) -> str:
    return f"gpu-{node}-1"


def clear(cluster: RunningEngine) -> None:
    space = "namespaces/podwarden"
    for path in (
        f"/apis/apps/v1/{space}/deployments", f"/apis/batch/v1/{space}/jobs",
        f"{RESOURCE}/{space}/resourceclaimtemplates", f"{RESOURCE}/devicetaintrules",
    ):  # fmt: skip
        cluster.api.delete(path, propagationPolicy="Background")
    cluster.api.delete(PODS)
    eventually(lambda: not cluster.api.items(PODS), "no pods left")
    eventually(lambda: not cluster.api.items(CLAIMS), "no claims left")


def start(cluster: RunningEngine, spec: Spec, *slots: Slot, **more) -> Workload:
    workload = workload_of(spec)
    bands = more.pop("bands", (12 * GIB, 24 * GIB))
    apply_all(
        cluster.api, rendered(workload, placed(workload, *slots, bands=bands), **more).objects
    )
    return workload


def everything(kind: Kind, job: JobSpec | None = None) -> Spec:
    return spec_of(
        f"all-{kind}{'-array' if job and job.array else ''}{'-gang' if job and job.gang else ''}",
        Request(2, 12 * GIB, model=("RTX 3090", "A10"), compute=">=8.0", encoder_sessions=2),
        kind=kind,
        job=job,
        image_pull_secret="registry",
        command=("sh",), args=("-c", "echo $(PW_INDEX_VALUE)"),
        env=(("A", "1"), ("PRICE", "$(5)")),
        secrets=(("TOKEN", "hf"),),
        ports=(Port("http", 8080, Expose.LAN), Port("metrics", 9100), Port("dns", 53, protocol="UDP")),
        volumes=(
            Volume("data", "/data", VolumeKind.DISK, size_mib=100),
            Volume("models", "/models", VolumeKind.CACHE, size_mib=1000),
            Volume("tmp", "/scratch", VolumeKind.SCRATCH, size_mib=100),
            Volume("media", "/media", VolumeKind.STORAGE, storage="nas", subpath="films", read_only=True),
            Volume("local", "/local", VolumeKind.STORAGE, storage="ssd"),
        ),
        devices=("/dev/dri",),
        health=HealthCheck(8080, "/health", startup_s=600) if kind is Kind.SERVICE else None,
        node="", avoid=("n9", "n8"),
        annotations=(("simulator.podwarden.io/ready-after", "1"),),
    )  # fmt: skip


EVERYTHING = {
    "service": everything(Kind.SERVICE),
    "job": everything(Kind.JOB, JobSpec(retries=3, time_limit_s=7200)),
    "array": everything(Kind.JOB, JobSpec(array=(5, 10_004), retries=1)),
    "gang": everything(Kind.JOB, JobSpec(array=(0, 3), gang=True)),
}


@pytest.mark.parametrize("strategy", list(Strategy))
@pytest.mark.parametrize("which", EVERYTHING)
def test_every_rendered_kind_is_accepted(
    cluster: RunningEngine, which: str, strategy: Strategy
) -> None:
    """Strictly: a field that the API does not know is an error, nothing is dropped unseen."""
    workload = workload_of(EVERYTHING[which])
    storages = {
        "nas": StorageSource("/media", server="nas"),
        "ssd": StorageSource("/srv", node="n1"),
    }
    slots = [Slot("n1", ("gpu-n1-0", "gpu-n1-1")), Slot("n2", ("gpu-n2-0", "gpu-n2-1"))]
    result = rendered(
        workload, placed(workload, *slots, bands=(12 * GIB, 24 * GIB, 48 * GIB)),
        secrets={"hf": "s3cret", "registry": '{"auths": {}}'}, storages=storages, strategy=strategy,
    )  # fmt: skip
    kinds = [obj["kind"] for obj in result.objects]
    assert {
        "Secret",
        "PersistentVolumeClaim",
        "ResourceClaimTemplate",
        "Service",
    } < set(kinds)
    for obj in result.objects:
        status, answer = try_apply(cluster.api, obj, dry_run=True)
        assert status in {200, 201}, answer
        spec = obj.get("spec", {})
        assert strip(spec, answer.get("spec", {})) == spec, f"{obj['kind']}: something was dropped"


def strip(asked, answered):
    """The answer, cut down to what was asked for (the server adds defaults)."""
    if isinstance(asked, dict) and isinstance(answered, dict):
        return {key: strip(value, answered.get(key)) for key, value in asked.items()}
    if isinstance(asked, list) and isinstance(answered, list) and len(asked) == len(answered):
        return [strip(a, b) for a, b in zip(asked, answered, strict=True)]
    if (
        isinstance(asked, str)
        and isinstance(answered, str)
        and mib(asked) == mib(answered) is not None
    ):
        return asked  # the server writes 8192Mi as 8Gi
    return answered


def mib(text: str) -> int | None:
    units = {"Mi": 1, "Gi": 1024}
    return int(text[:-2]) * units[text[-2:]] if text[-2:] in units and text[:-2].isdigit() else None


def test_the_planned_gpu_is_taken(cluster: RunningEngine, pair: str) -> None:
    """Although the smaller one would do and comes first in the slice."""
    start(cluster, spec_of("planned", Request(1, 8 * GIB)), Slot(pair, (large(pair),)))
    eventually(lambda: running(cluster.api, "planned"), "running")
    device, used = held_by(cluster.api, "planned")[0]
    assert device == large(pair)
    assert used["shares"] == "64"


def test_what_is_planned_is_taken_falls_back_to_the_smallest(
    cluster: RunningEngine, pair: str
) -> None:
    start(cluster, spec_of("first", Request(1, 20 * GIB)), Slot(pair, (large(pair),)))
    eventually(lambda: running(cluster.api, "first"), "first runs")
    start(cluster, spec_of("second", Request(1, 8 * GIB)), Slot(pair, (large(pair),)))
    eventually(lambda: running(cluster.api, "second"), "second runs")
    assert [device for device, _ in held_by(cluster.api, "second")] == [small(pair)]
    start(cluster, spec_of("third", Request(1, 8 * GIB)), Slot(pair, (small(pair),)))
    eventually(lambda: unschedulable(cluster.api, "third"), "third waits")
    cluster.api.delete("/apis/apps/v1/namespaces/podwarden/deployments/first")
    eventually(lambda: running(cluster.api, "third"), "third runs once the GPU is released")
    assert [device for device, _ in held_by(cluster.api, "third")] == [large(pair)]


def test_a_card_that_is_too_small_or_used_outside_is_not_taken(
    cluster: RunningEngine, pair: str
) -> None:
    outside = [
        gpu(pair, 0, "RTX 3060", 12 * GIB),
        gpu(pair, 1, "RTX 3090", 24 * GIB, memory_mib=12 * GIB),
    ]
    publish(cluster, pair, outside, generation=2)
    start(cluster, spec_of("big", Request(1, 16 * GIB)), Slot(pair, (large(pair),)))
    eventually(lambda: unschedulable(cluster.api, "big"), "waits")
    publish(cluster, pair, cards(pair), generation=3)
    eventually(lambda: running(cluster.api, "big"), "runs once the outside use has ended")


def test_shared_budgets_add_up_and_keep_whole_work_off(cluster: RunningEngine, pair: str) -> None:
    shared = Request(1, 5 * GIB, Sharing.SHARED)
    for name in ("one", "two"):
        start(cluster, spec_of(name, shared), Slot(pair, (small(pair),)))
        eventually(lambda name=name: running(cluster.api, name), f"{name} runs")
        assert [d for d, _ in held_by(cluster.api, name)] == [small(pair)]
    start(cluster, spec_of("three", shared), Slot(pair, (small(pair),)))
    eventually(lambda: running(cluster.api, "three"), "the third budget goes to the other card")
    device, used = held_by(cluster.api, "three")[0]
    assert (device, used["shares"]) == (large(pair), "1")
    start(cluster, spec_of("whole", Request(1, 8 * GIB)), Slot(pair, (small(pair),)))
    eventually(lambda: unschedulable(cluster.api, "whole"), "no card is whole any more")


def test_two_gpus_are_two_different_ones(cluster: RunningEngine, pair: str) -> None:
    start(cluster, spec_of("both", Request(2, 10 * GIB)), Slot(pair, (small(pair), large(pair))))
    eventually(lambda: running(cluster.api, "both"), "runs")
    assert sorted(d for d, _ in held_by(cluster.api, "both")) == [small(pair), large(pair)]
    start(cluster, spec_of("three", Request(3)))
    eventually(lambda: unschedulable(cluster.api, "three"), "three there are not")


def test_replicas_get_one_planned_gpu_each(cluster: RunningEngine, pair: str) -> None:
    spec = spec_of("twins", Request(1, 8 * GIB), replicas=2)
    start(cluster, spec, Slot(pair, (small(pair),)), Slot(pair, (large(pair),)))
    eventually(lambda: running(cluster.api, "twins", 2), "both run")
    assert sorted(d for d, _ in held_by(cluster.api, "twins")) == [small(pair), large(pair)]


@pytest.mark.parametrize(
    ("request_", "taken"),
    [
        (Request(1, model=("rtx 3090",)), 1),
        (Request(1, model=("GTX 1070",)), None),
        (Request(1, compute=">=8.9"), 1),
        (Request(1, compute=">=10.0"), None),
        (Request(1, compute="8.6"), 0),
        (Request(1, 2 * GIB, Sharing.SHARED, encoder_sessions=4), 1),
        (Request(1, encoder_sessions=4), 1),
        (Request(1, 2 * GIB, Sharing.SHARED, encoder_sessions=3), 0),
    ],
)
def test_model_compute_and_encoders_choose_the_card(
    cluster: RunningEngine, pair: str, request_: Request, taken: int | None
) -> None:
    """The 3060 counts 3 encoder sessions and has 8.6, the 3090 here has 9.0 and no count ("8.10" > "8.9" by number)."""
    three = gpu(pair, 0, "NVIDIA GeForce RTX 3060", 12 * GIB, encoders=3)
    nine = gpu(pair, 1, "NVIDIA GeForce RTX 3090", 24 * GIB, compute_capability="8.10")
    publish(cluster, pair, [three, nine], generation=2)
    start(cluster, spec_of("choosy", request_))
    if taken is None:
        eventually(lambda: unschedulable(cluster.api, "choosy"), "waits")
        return
    eventually(lambda: running(cluster.api, "choosy"), "runs")
    assert [d for d, _ in held_by(cluster.api, "choosy")] == [f"gpu-{pair}-{taken}"]


def test_encoder_sessions_are_charged(cluster: RunningEngine, pair: str) -> None:
    publish(cluster, pair, [gpu(pair, 0, "RTX 3060", 12 * GIB, encoders=3)], generation=2)
    two = Request(1, 2 * GIB, Sharing.SHARED, encoder_sessions=2)
    start(cluster, spec_of("plex", two))
    eventually(lambda: running(cluster.api, "plex"), "runs")
    assert held_by(cluster.api, "plex")[0][1]["encoders"] == "2"
    start(cluster, spec_of("more", two))
    eventually(lambda: unschedulable(cluster.api, "more"), "only one session is left")
    start(cluster, spec_of("none", Request(1, 2 * GIB, Sharing.SHARED)))
    eventually(lambda: running(cluster.api, "none"), "without sessions there is room")


def foreign(cluster: RunningEngine, name: str, count: int = 1) -> str:
    limits = {"nvidia.com/gpu": str(count)}
    container = {"name": "c", "image": "example.org/x:1", "resources": {"limits": limits}}
    pods = "/api/v1/namespaces/default/pods"
    eventually(
        lambda: cluster.api.find("/api/v1/namespaces/default/serviceaccounts/default"), "account"
    )
    cluster.api.create(pods, {"metadata": {"name": name}, "spec": {"containers": [container]}})
    return f"{pods}/{name}"


def phase(cluster: RunningEngine, path: str) -> str:
    return cluster.api.get(path)["status"]["phase"]


def test_foreign_work_is_on_the_same_books(cluster: RunningEngine, pair: str) -> None:
    path = foreign(cluster, "chart")
    try:
        eventually(lambda: phase(cluster, path) == "Running", "the chart's pod runs")
        start(cluster, spec_of("ours", Request(1, 8 * GIB)), Slot(pair, (small(pair),)))
        eventually(lambda: running(cluster.api, "ours"), "ours runs beside it")
        assert [d for d, _ in held_by(cluster.api, "ours")] == [large(pair)]
        start(cluster, spec_of("late", Request(1)), Slot(pair, (small(pair),)))
        eventually(lambda: unschedulable(cluster.api, "late"), "nothing is left")
    finally:
        cluster.api.delete(path, gracePeriodSeconds="0")


def test_a_hold_keeps_others_off_and_lets_the_head_in(cluster: RunningEngine, pair: str) -> None:
    both = [Hold(small(pair), pair, "id-head"), Hold(large(pair), pair, "id-head")]
    apply_all(cluster.api, [hold_object(hold) for hold in both])
    path = foreign(cluster, "greedy")
    try:
        start(cluster, spec_of("other", Request(1, 8 * GIB)), Slot(pair, (small(pair),)))
        eventually(lambda: unschedulable(cluster.api, "other"), "another workload waits")
        start(cluster, spec_of("head", Request(1, 16 * GIB)), Slot(pair, (large(pair),)))
        eventually(lambda: running(cluster.api, "head"), "the head runs")
        holds(lambda: phase(cluster, path) == "Pending", "foreign work stays off", 1)
        cluster.api.delete(
            f"{RESOURCE}/devicetaintrules/{hold_object(both[0])['metadata']['name']}"
        )
        cluster.api.delete(
            f"{RESOURCE}/devicetaintrules/{hold_object(both[1])['metadata']['name']}"
        )
        eventually(
            lambda: phase(cluster, path) == "Running" or running(cluster.api, "other"), "free again"
        )
        assert running(cluster.api, "head"), "it keeps its GPU"
    finally:
        cluster.api.delete(path, gracePeriodSeconds="0")


def test_a_lost_gpu_loses_its_pod_and_takes_no_other(cluster: RunningEngine, pair: str) -> None:
    start(cluster, spec_of("unlucky", Request(1, 8 * GIB)), Slot(pair, (large(pair),)))
    eventually(lambda: running(cluster.api, "unlucky"), "runs")
    lost = [cards(pair)[1], gpu(pair, 1, "RTX 3090", 24 * GIB, health=DeviceHealth.LOST)]
    publish(cluster, pair, lost, generation=2)
    eventually(
        lambda: [d for d, _ in held_by(cluster.api, "unlucky")] == [small(pair)]
        and running(cluster.api, "unlucky"),
        "it moves to the other GPU by itself", 20,
    )  # fmt: skip
    unknown = [gpu(pair, 0, "RTX 3060", 12 * GIB, health=DeviceHealth.UNKNOWN), lost[1]]
    publish(cluster, pair, unknown, generation=3)
    start(cluster, spec_of("late", Request(1)))
    eventually(lambda: unschedulable(cluster.api, "late"), "nothing healthy is left")
    assert running(cluster.api, "unlucky"), "what runs on a GPU of unknown health stays"


def test_an_array_starts_gate_by_gate_with_its_frame_numbers(
    cluster: RunningEngine, pair: str
) -> None:
    spec = spec_of(
        "frames", Request(1, 8 * GIB), kind=Kind.JOB, job=JobSpec(array=(101, 104)), avoid=("n9",),
        annotations=(("simulator.podwarden.io/run-seconds", "0.5"),),
    )  # fmt: skip
    start(cluster, spec, Slot(pair, (small(pair),)))
    pods = eventually(
        lambda: (p := pods_of(cluster.api, "frames")) and len(p) == 4 and p, "4 gated pods"
    )
    assert {pod["status"]["phase"] for pod in pods} == {"Pending"}
    for pod in pods:
        assert pod["spec"]["schedulingGates"], "none starts by itself"
        path = f"{PODS}/{pod['metadata']['name']}"
        answer = cluster.api.merge(path, opening(cluster.api.get(path), pair, 1))
        assert not answer["spec"].get("schedulingGates")
        index = int(answer["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])
        assert answer["metadata"]["annotations"]["podwarden.io/index-value"] == str(101 + index)
    job = "/apis/batch/v1/namespaces/podwarden/jobs/frames"
    eventually(
        lambda: cluster.api.get(job)["status"].get("succeeded") == 4, "all four frames done", 30
    )
    assert {pod["spec"]["nodeName"] for pod in pods_of(cluster.api, "frames")} == {pair}


def test_applying_again_changes_nothing(cluster: RunningEngine, pair: str) -> None:
    workload = workload_of(spec_of("same", Request(1, 8 * GIB), ports=(Port("http", 80),)))
    result = rendered(workload, placed(workload, Slot(pair, (small(pair),))))
    apply_all(cluster.api, result.objects)
    eventually(lambda: running(cluster.api, "same"), "runs")
    path = "/apis/apps/v1/namespaces/podwarden/deployments/same"
    eventually(
        lambda: (
            (d := cluster.api.get(path))["status"].get("observedGeneration")
            == d["metadata"]["generation"]
        ),
        "settled",
    )
    before = cluster.api.get(path)["metadata"]["generation"]
    apply_all(cluster.api, rendered(workload, placed(workload, Slot(pair, (small(pair),)))).objects)
    assert cluster.api.get(path)["metadata"]["generation"] == before


def test_an_update_without_room_goes_one_after_the_other(cluster: RunningEngine, pair: str) -> None:
    """P-40: the only GPU that fits is held by the old revision."""
    request = Request(1, 20 * GIB)
    start(cluster, spec_of("only", request), Slot(pair, (large(pair),)))
    old = eventually(lambda: running(cluster.api, "only"), "runs")[0]["metadata"]["name"]
    newer = workload_of(spec_of("only", request, env=(("NEW", "1"),)), revision=2)
    result = rendered(newer, placed(newer, Slot(pair, (large(pair),))), strategy=Strategy.RECREATE)
    apply_all(cluster.api, result.objects)
    eventually(
        lambda: (pods := running(cluster.api, "only"))
        and pods[0]["metadata"]["labels"]["podwarden.io/revision"] == "2",
        "the new revision runs", 30,
    )  # fmt: skip
    assert cluster.api.find(f"{PODS}/{old}") is None
    listed = cluster.api.get(f"{RESOURCE}/namespaces/podwarden/resourceclaimtemplates")["items"]
    assert len(listed) == 2
