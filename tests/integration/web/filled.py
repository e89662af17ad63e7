"""A control plane in memory with a house full of work: the moment the pages are judged by."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from controller_double import ControllerDouble, now

from podwarden.catalog import Overrides
from podwarden.control.answers import ClusterView, Gpu, SecretView, StorageView
from podwarden.domain.cluster import Cluster
from podwarden.domain.event import EventKind
from podwarden.domain.inventory import DEVICE_SHARES, Device, DeviceHealth, Holder, Holding, Node
from podwarden.domain.placement import Placement, Slot, Verdict
from podwarden.domain.reason import Code, Note, Reason
from podwarden.domain.request import Request, Sharing
from podwarden.domain.storage import Storage
from podwarden.domain.units import promisable
from podwarden.domain.workload import (
    Desire,
    JobSpec,
    Kind,
    Priority,
    Revision,
    Spec,
    State,
    Workload,
)


def gpu(node: str, index: int, model: str, gib: int, **more) -> Device:
    return Device(
        node, index, f"gpu-{node}-{index}", model, gib * 1024,
        promisable(gib * 1024, more.get("outside_mib", 0)), driver_version="580.126.09", **more,
    )  # fmt: skip


def house() -> tuple[Node, ...]:
    def node(name: str, cores: int, gib: int, address: str, *devices: Device, **more) -> Node:
        return Node(
            name, cores * 1000, gib * 1024, used_cpu_milli=cores * 380, used_memory_mib=gib * 610,
            address=address, devices=devices, simulated=True, **more,
        )  # fmt: skip

    return (
        node("n1", 8, 32, "192.168.1.31", server=True),
        node("n2", 8, 16, "192.168.1.32"),
        node("n3", 16, 64, "192.168.1.33", gpu("n3", 0, "RTX 3060", 12, outside_mib=512), gpu("n3", 1, "RTX 3090", 24)),
        node("n4", 12, 64, "192.168.1.34", gpu("n4", 0, "RTX A4000", 16), gpu("n4", 1, "RTX A4000", 16, health=DeviceHealth.LOST)),
        node("n5", 6, 16, "192.168.1.35", gpu("n5", 0, "GTX 1070", 8), gpu("n5", 1, "RTX 4060 Ti", 16)),
        node("n6", 12, 32, "192.168.1.36", gpu("n6", 0, "Tesla P40", 24, present=False), ready=False, agent_away=True),
    )  # fmt: skip


class Filled(ControllerDouble):
    """The double with nodes, holdings and rows of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.house = house()
        self.holdings: dict[str, list[Holding]] = {}
        self.kept: dict[str, str] = {}
        self.workloads.gpus = self._gpus
        self.clusters.nodes = self._nodes
        self.workloads._room = self._room
        self.workloads.lines = [
            'INFO:     192.168.1.20:51844 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
            "INFO     metrics: prompt 412.3 tokens/s, generation 58.1 tokens/s, running 3, waiting 0",
            "WARNING  request 8f2c: input 15,980 of 16,384 tokens",
            "ERROR    request 90aa: the client went away",
        ] * 6
        fill(self)

    async def _gpus(self, actor, cluster=""):
        return tuple(
            Gpu(
                "home",
                d,
                tuple(self.holdings.get(d.uuid, ())),
                self.kept.get(d.uuid, ""),
                simulated=True,
            )
            for n in self.house
            for d in n.devices
        )

    async def _nodes(self, actor, cluster=""):
        return tuple(("home", n) for n in self.house)

    def _free(self, device: Device) -> int:
        held = self.holdings.get(device.uuid, [])
        if device.health is not DeviceHealth.OK or not device.present or device.uuid in self.kept:
            return 0
        return (
            0
            if any(h.dedicated for h in held)
            else device.memory_mib - sum(h.memory_mib for h in held)
        )

    def _room(self, spec):
        """The smallest GPU with room; no decision worth testing."""
        if spec.gpu is None:
            return Placement("", (Slot("n2"),))
        want = spec.gpu.vram_mib or 0
        devices = sorted((d for n in self.house for d in n.devices), key=lambda d: d.vram_mib)
        if not any(d.vram_mib >= want for d in devices):
            return Reason(
                Code.NO_DEVICE_LARGE_ENOUGH,
                f"It asks for {want // 1024} GB; the largest GPU here has 24 GB (n3, RTX 3090).",
                "Ask for 24 GB or less.",
            )
        for device in devices:
            whole = not self.holdings.get(device.uuid) and device.vram_mib >= want
            if self._free(device) and (whole or (spec.gpu.shared and self._free(device) >= want)):
                return Placement("", (Slot(device.node, (device.uuid,)),))
        return Reason(
            Code.WAITS_FOR_SERVICE,
            f"Needs {want // 1024} GB. All GPUs of that size are held by services without an end.",
            "Stop vllm, or ask for 3 GB of a shared GPU.",
        )

    def hold(self, row: Workload, uuid: str, mib: int | None = None, **more) -> None:
        device = next(d for n in self.house for d in n.devices if d.uuid == uuid)
        holder = Holder(row.name, row.id, since=now() - timedelta(minutes=40), **more)
        shares = DEVICE_SHARES if mib is None else 1
        held = Holding(uuid, device.node, mib or device.memory_mib, shares, holder)
        self.holdings.setdefault(uuid, []).append(held)

    def add(self, name: str, state: State, spec: Spec, owner: str = "sam", **more) -> Workload:
        began = now() - timedelta(hours=3, minutes=41)
        row = Workload(
            id=f"id-{name}", name=name, owner=owner, cluster="home", spec=replace(spec, name=name),
            revision=1, state=state, desire=Desire.RUN, created_at=began, changed_at=now() - timedelta(minutes=7),
            **{"queued_at": began, **more},
        )  # fmt: skip
        self.workloads.rows[row.id] = row
        self.workloads.kept[row.id] = [Revision(row.id, 1, row.spec, began, owner)]
        self.workloads.event(row, EventKind.SUBMITTED, f"Submitted as {name}.", owner)
        return row


def whole(gib: int, **more) -> Request:
    return Request(vram_mib=gib * 1024, **more)


def part(gib: int) -> Request:
    return Request(vram_mib=gib * 1024, sharing=Sharing.SHARED)


def running(
    double: Filled, name: str, spec: Spec, uuid: str, mib: int | None = None, **more
) -> Workload:
    node = uuid.split("-")[1]
    row = double.add(
        name, State.RUNNING, spec, nodes=(node,), devices=(uuid,),
        started_at=now() - timedelta(hours=17), placement=Placement("", (Slot(node, (uuid,)),)),
    )  # fmt: skip
    double.hold(row, uuid, mib, **more)
    double.workloads.event(row, EventKind.ADMITTED, f"Admitted to {node}.")
    double.workloads.event(row, EventKind.STATE, "starting → running.")
    return row


def waiting(
    double: Filled, place: int, name: str, spec: Spec, reason: Reason, *, starts=None, owner="sam"
) -> Workload:
    row = double.add(name, State.QUEUED, spec, owner)
    double.workloads.verdicts[row.id] = Verdict(row.id, place, reason, starts)
    return row


def fill(double: Filled) -> None:
    cluster = Cluster(
        "home",
        "https://192.168.1.31:6443",
        now() - timedelta(days=40),
        "v1.37.2+k3s1",
        simulated=True,
    )
    double.clusters.views = {"home": ClusterView(cluster, 6, 7)}
    catalogue = double.catalogue
    ollama = catalogue.resolve("ollama", overrides=Overrides(sharing="shared", vram="4GB"))
    vllm = catalogue.resolve("vllm", overrides=Overrides(priority="high", vram="24GB"))
    blender = catalogue.resolve("blender-render")
    small = Spec("", Kind.SERVICE, "ghcr.io/blakeblackshear/frigate:0.16", gpu=part(2))
    running(double, "ollama", ollama, "gpu-n3-0", 4096)
    running(double, "frigate", small, "gpu-n3-0", 2048)
    running(double, "jellyfin", small, "gpu-n3-0", 2048)
    first = running(double, "vllm", vllm, "gpu-n3-1")
    newer = replace(first.spec, args=(*first.spec.args, "--max-num-seqs=64"))
    double.workloads.kept[first.id].append(
        Revision(first.id, 2, newer, now() - timedelta(hours=17), "sam")
    )
    double.workloads.rows[first.id] = replace(first, spec=newer, revision=2)
    double.workloads.event(
        first,
        EventKind.UPDATED,
        "Revision 2: Revision 1 ends, then revision 2 starts on n3, RTX 3090: a short downtime.",
        "sam",
    )
    soon = now() + timedelta(minutes=3)
    render = running(
        double,
        "blender-render",
        blender,
        "gpu-n4-0",
        None,
        endless=False,
        ends_by=soon,
        expected_end=True,
    )
    double.hold(
        render,
        "gpu-n5-0",
        None,
        endless=False,
        ends_by=now() + timedelta(minutes=6),
        expected_end=True,
    )
    counts = (("done", 117), ("running", 2), ("failed", 1), ("total", 250))
    double.workloads.rows[render.id] = replace(
        render, counts=counts, devices=("gpu-n4-0", "gpu-n5-0"), nodes=("n4", "n5")
    )
    double.kept["gpu-n4-0"] = "comfyui"
    queue_of(double, soon)
    others(double, small)
    stored(double)


def queue_of(double: Filled, soon) -> None:
    job = Spec(
        "", Kind.JOB, "pytorch/pytorch:2.8", gpu=whole(24), job=JobSpec(time_limit_s=6 * 3600)
    )
    comfy = Spec(
        "", Kind.SERVICE, "yanwk/comfyui-boot:cu128", gpu=whole(12), priority=Priority.HIGH
    )
    notes = (
        Note("n3", "gpu-n3-0", Code.DEVICES_IN_USE, "is shared by ollama, frigate and jellyfin"),
        Note("n3", "gpu-n3-1", Code.WAITS_FOR_SERVICE, "is held by vllm, a service without an end"),
        Note("n4", "gpu-n4-0", Code.DEVICES_IN_USE, "is held by blender-render until about 14:15"),
        Note("n4", "gpu-n4-1", Code.DEVICE_UNHEALTHY, "is lost"),
        Note("n5", "gpu-n5-0", Code.NO_DEVICE_LARGE_ENOUGH, "has 8 GB"),
    )
    waiting(
        double,
        1,
        "comfyui",
        comfy,
        Reason(
            Code.DEVICES_IN_USE,
            "Needs a whole GPU with 12 GB. n4 GPU 0 is free when a task of blender-render ends, in about 3 min.",
            "",
            notes,
        ),
        starts=soon,
    )
    waiting(
        double,
        2,
        "train-lora",
        job,
        Reason(
            Code.WAITS_FOR_SERVICE,
            "Needs 24 GB. The only such GPU is n3 GPU 1, held by vllm, a service without an end.",
            "Stop vllm, or ask for 16 GB to start on n5.",
            notes,
            ("comfyui",),
        ),
    )
    waiting(
        double,
        3,
        "jupyter",
        replace(job, kind=Kind.SERVICE, job=None, gpu=whole(16)),
        Reason(
            Code.WAITS_FOR_SERVICE,
            "Needs 16 GB. Three GPUs are that large: n3 GPU 1 is held by vllm, n4 GPU 0 goes to comfyui, both services without an end; n4 GPU 1 is lost.",
            "Ask for 8 GB to start in about 6 min on n5.",
            notes,
            ("comfyui", "train-lora"),
        ),
        owner="kim",
    )
    waiting(
        double,
        4,
        "tdarr-films",
        Spec(
            "",
            Kind.JOB,
            "ghcr.io/haveagitgat/tdarr:2.45",
            gpu=part(2),
            hours="22:00-07:00",
            preemptible=True,
        ),
        Reason(
            Code.OUTSIDE_HOURS,
            "May run 22:00 to 07:00. There is room now: n3 GPU 0 has 3.1 GiB free.",
            "Change its hours.",
        ),
        starts=now() + timedelta(hours=5),
        owner="kim",
    )


def stored(double: Filled) -> None:
    began = now() - timedelta(days=9)
    media = Storage("media", "/volume1/media", began, "admin", server="nas")
    renders = Storage("renders", "/srv/renders", began, "admin", cluster="home", node="n3")
    double.storage.views = {
        "media": StorageView(media, ("jellyfin", "tdarr-films")),
        "renders": StorageView(renders, ("blender-render",)),
    }
    double.secrets.views = {
        "hf-token": SecretView("hf-token", "sam", began, used_by=("vllm",)),
        "ghcr": SecretView("ghcr", "admin", began, registry="ghcr.io"),
    }


def others(double: Filled, small: Spec) -> None:
    crash = Reason(
        Code.CRASH_LOOPING,
        "Ended 5 times with exit code 137 within 4 min. Last line: RuntimeError: CUDA error: out of memory",
        "Ask for more VRAM, or a smaller model.",
    )
    double.add(
        "whisper",
        State.FAILED,
        small,
        ended_at=now() - timedelta(minutes=12),
        started_at=now() - timedelta(minutes=30),
        reason=crash,
    )
    double.add(
        "immich",
        State.UNHEALTHY,
        small,
        nodes=("n5",),
        devices=(),
        reason=Reason(Code.PROBE_FAILING, "/api/server/ping has not answered for 2 min.", ""),
    )
    pull = Reason(Code.PULLING_IMAGE, "n5 is fetching the image, 1.4 of 9.8 GB after 48 s.")
    double.add(
        "sd-web",
        State.STARTING,
        Spec("", Kind.SERVICE, "universonic/stable-diffusion-webui:1.10", gpu=whole(16)),
        "kim",
        placement=Placement("", (Slot("n5", ("gpu-n5-1",)),)),
        reason=pull,
    )
    double.kept["gpu-n5-1"] = "sd-web"
    double.add(
        "thumbnails",
        State.SUCCEEDED,
        Spec("", Kind.JOB, "alpine:3.22", job=JobSpec()),
        "kim",
        started_at=now() - timedelta(hours=2),
        ended_at=now() - timedelta(hours=1, minutes=12),
    )
    double.add(
        "postgres",
        State.RUNNING,
        Spec("", Kind.SERVICE, "postgres:17"),
        nodes=("n2",),
        started_at=now() - timedelta(days=12),
    )
