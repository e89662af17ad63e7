"""An independent judge: recomputes from the API server's own objects whether what PodWarden says is true.

It shares no code with `podwarden`: quantities, claims, floors and fits are read and computed here again, from
the JSON of the cluster and from the JSON that PodWarden's API shows. It is deliberately simple and slow, and where
it cannot be sure it says nothing: what somebody is owed already (a replacement for a copy on a lost node, a pod that
waits for the cluster's scheduler) is taken off every node at once.

This module reads a world and answers "does it fit"; `oracle_reasons` judges what is shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

DRIVER = "gpu.podwarden.io"
ALL_SHARES = 64
NAME_LABEL = "podwarden.io/name"
TOLERATED = {
    "podwarden.io/gpu",
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "kwok.x-k8s.io/node",
}
_SUFFIX = {
    "": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40,
}  # fmt: skip


def amount(quantity: Any) -> float:
    match = re.fullmatch(r"([0-9.]+)(m|k|M|G|T|Ki|Mi|Gi|Ti)?", str(quantity))
    assert match, f"no quantity: {quantity!r}"
    return float(match[1]) * _SUFFIX[match[2] or ""]


def mib(quantity: Any) -> int:
    return int(amount(quantity) // 2**20)


@dataclass
class Gpu:
    """holders: who has a piece of it, as sentences may name them: a workload, or namespace/pod. endless: holders that
    nothing ends by itself.
    """

    uuid: str
    node: str
    model: str
    vram_mib: int
    memory_mib: int
    tainted: bool
    compute: str = ""
    encoders: int | None = None
    used_shares: int = 0
    used_mib: int = 0
    used_encoders: int = 0
    holders: set[str] = field(default_factory=set)
    endless: set[str] = field(default_factory=set)


@dataclass
class Owed:
    """What has a right to start somewhere before anybody in the queue; names: of whom."""

    names: set[str] = field(default_factory=set)
    gpus: int = 0
    cpu: float = 0.0
    memory: float = 0.0
    pods: int = 0


@dataclass
class Room:
    """What one node offers now."""

    name: str
    usable: bool
    ready: bool
    cpu: float
    memory: float
    pods: float
    gpus: list[Gpu] = field(default_factory=list)

    @property
    def state(self) -> tuple[Any, ...]:
        """Equal as long as nothing changed that a statement about this node can rest on."""
        used = tuple((g.tainted, g.used_shares, g.used_mib, g.used_encoders) for g in self.gpus)
        return (self.usable, self.ready, self.cpu, self.memory, self.pods, used)


@dataclass
class World:
    rooms: dict[str, Room]
    gpus: dict[str, Gpu]
    owed: Owed
    broken: list[str]  # books that do not add up


def world(objects: dict[str, list[Json]]) -> World:
    """`objects`: lists of nodes, pods, resourceslices, resourceclaims of one moment."""
    rooms = _rooms(objects["nodes"])
    _charge_pods(rooms, objects["pods"])
    gpus = _gpus(rooms, objects["resourceslices"])
    pods = {(p["metadata"]["namespace"], p["metadata"]["name"]): p for p in objects["pods"]}
    broken = _charge_claims(gpus, objects["resourceclaims"], pods)
    return World(rooms, gpus, _owed(rooms, objects["pods"], objects["resourceclaims"]), broken)


def _rooms(nodes: list[Json]) -> dict[str, Room]:
    rooms = {}
    for node in nodes:
        allocatable = node["status"]["allocatable"]
        hard = [
            t["key"]
            for t in node["spec"].get("taints", [])
            if t["effect"] in {"NoSchedule", "NoExecute"} and t["key"] not in TOLERATED
        ]
        conditions = node.get("status", {}).get("conditions", [])
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
        rooms[node["metadata"]["name"]] = Room(
            node["metadata"]["name"],
            ready and not node["spec"].get("unschedulable") and not hard,
            ready,
            amount(allocatable["cpu"]),
            amount(allocatable["memory"]),
            amount(allocatable.get("pods", "110")),
        )
    return rooms


def _ended(pod: Json) -> bool:
    return pod["status"].get("phase") in {"Succeeded", "Failed"}


def _asked(pod: Json) -> tuple[float, float]:
    requests = [c.get("resources", {}).get("requests", {}) for c in pod["spec"]["containers"]]
    return (
        sum(amount(r.get("cpu", "0")) for r in requests),
        sum(amount(r.get("memory", "0")) for r in requests),
    )


def _charge_pods(rooms: dict[str, Room], pods: list[Json]) -> None:
    for pod in pods:
        room = rooms.get(pod["spec"].get("nodeName", ""))
        if room is None or _ended(pod):
            continue
        cpu, memory = _asked(pod)
        room.cpu -= cpu
        room.memory -= memory
        room.pods -= 1


def _gpus(rooms: dict[str, Room], slices: list[Json]) -> dict[str, Gpu]:
    gpus = {}
    for item in slices:
        spec = item["spec"]
        if spec["driver"] != DRIVER or spec["nodeName"] not in rooms:
            continue
        for device in spec["devices"]:
            attributes = {k: next(iter(v.values())) for k, v in device["attributes"].items()}
            encoders = device["capacity"].get("encoders")
            gpu = Gpu(
                device["name"],
                spec["nodeName"],
                str(attributes["model"]),
                int(attributes["vramMiB"]),
                mib(device["capacity"]["memory"]["value"]),
                bool(device.get("taints")),
                str(attributes.get("computeCapability", "")),
                int(amount(encoders["value"])) if encoders else None,
            )
            gpus[gpu.uuid] = gpu
            rooms[gpu.node].gpus.append(gpu)
    return gpus


def _charge_claims(
    gpus: dict[str, Gpu], claims: list[Json], pods: dict[tuple[str, str], Json]
) -> list[str]:
    """Who holds what, from the claims alone; and where more is given than there is."""
    for claim in claims:
        status = claim.get("status", {})
        results = (status.get("allocation") or {}).get("devices", {}).get("results", [])
        for result in results:
            gpu = gpus.get(result["device"])
            if gpu is None or result["driver"] != DRIVER:
                continue
            used = result.get("consumedCapacity", {})
            gpu.used_shares += int(amount(used.get("shares", ALL_SHARES)))
            gpu.used_mib += mib(used["memory"]) if "memory" in used else gpu.memory_mib
            gpu.used_encoders += int(amount(used.get("encoders", 0)))
            namespace = claim["metadata"]["namespace"]
            for consumer in status.get("reservedFor", []):
                pod = pods.get((namespace, consumer["name"]))
                name = _holder(namespace, consumer["name"], pod)
                gpu.holders.add(name)
                if pod is not None and not _ends(pod):
                    gpu.endless.add(name)
    broken = []
    for gpu in gpus.values():
        if gpu.used_shares > ALL_SHARES:
            broken.append(f"{gpu.node} {gpu.uuid}: {gpu.used_shares} of {ALL_SHARES} shares given")
        if gpu.used_mib > gpu.memory_mib:
            broken.append(f"{gpu.node} {gpu.uuid}: {gpu.used_mib} of {gpu.memory_mib} MiB promised")
        if gpu.encoders is not None and gpu.used_encoders > max(gpu.encoders, 0):
            broken.append(f"{gpu.node} {gpu.uuid}: {gpu.used_encoders} encoder sessions given")
    return broken


def _holder(namespace: str, name: str, pod: Json | None) -> str:
    labels = (pod or {}).get("metadata", {}).get("labels") or {}
    return labels.get(NAME_LABEL) or f"{namespace}/{name}"


def _ends(pod: Json) -> bool:
    """Somebody promised an end: it belongs to a job."""
    owners = pod["metadata"].get("ownerReferences") or []
    return any(owner["kind"] == "Job" for owner in owners)


def _owed(rooms: dict[str, Room], pods: list[Json], claims: list[Json]) -> Owed:
    """Copies of services on nodes that do not answer, and pods that wait for the cluster's scheduler."""
    counts = {
        (c["metadata"]["namespace"], owner["name"]): _count(c)
        for c in claims
        for owner in c["metadata"].get("ownerReferences") or []
    }
    owed = Owed()
    for pod in pods:
        node = pod["spec"].get("nodeName", "")
        gated = bool(pod["spec"].get("schedulingGates"))
        lost = bool(node) and (node not in rooms or not rooms[node].ready) and not _ends(pod)
        waits = not node and not gated and not pod["metadata"].get("deletionTimestamp")
        if _ended(pod) or not (lost or waits):
            continue
        cpu, memory = _asked(pod)
        owed.names.add(_holder(pod["metadata"]["namespace"], pod["metadata"]["name"], pod))
        owed.cpu += cpu
        owed.memory += memory
        owed.pods += 1
        wants = bool(pod["spec"].get("resourceClaims")) or _plain_gpus(pod)
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        owed.gpus += max(counts.get(key, 0), _plain_gpus(pod), 1) if wants else 0
    return owed


def _count(claim: Json) -> int:
    """How many GPUs a claim is for, allocated or not."""
    requests = claim["spec"].get("devices", {}).get("requests", [])
    total = 0
    for request in requests:
        ways = request.get("firstAvailable") or [request.get("exactly") or {}]
        total += max(int(way.get("count", 1)) for way in ways)
    return total


def _plain_gpus(pod: Json) -> int:
    limits = [c.get("resources", {}).get("limits", {}) for c in pod["spec"]["containers"]]
    return sum(int(limit.get("nvidia.com/gpu", 0)) for limit in limits)


# --- does a workload fit now? -------------------------------------------------------------------

_CARD = re.compile(r"(\d+(?:\.\d+)?)\s*(G|GB|Gi|GiB)?$")


def asked_mib(vram: Any) -> int:
    text = str(vram).strip()
    small = re.fullmatch(r"(\d+)\s*(Mi|MiB|MB|M)", text)
    if small:
        return int(small[1])
    match = _CARD.match(text)
    assert match, f"no VRAM size: {vram!r}"
    return round(float(match[1]) * 1024)


def suits(gpu: Gpu, request: Json) -> bool:
    """Whether one GPU would do when nobody held it."""
    models = request.get("model") or []
    models = [models] if isinstance(models, str) else models
    if models and gpu.model.lower() not in {m.lower() for m in models}:
        return False
    if not _computes(gpu, request.get("compute") or ""):
        return False
    sessions = int(request.get("encoder_sessions") or 0)
    if gpu.encoders is not None and sessions > gpu.encoders:
        return False
    vram = request.get("vram")
    if request.get("sharing") == "shared":
        return gpu.memory_mib >= asked_mib(vram)
    if vram is None:
        return True
    floor = int(asked_mib(vram) * 0.935)
    reserve = max(-(-floor * 3 // 100), 256)
    return gpu.vram_mib >= floor and gpu.memory_mib >= max(floor - reserve, 0) // 128 * 128


def _computes(gpu: Gpu, compute: str) -> bool:
    if not compute:
        return True
    if not gpu.compute:
        return False

    def number(text: str) -> tuple[int, ...]:
        return tuple(int(part) for part in text.split("."))[:2]

    if compute.startswith(">="):
        return number(gpu.compute) >= number(compute[2:])
    return number(gpu.compute) == number(compute)


def gpu_fits(gpu: Gpu, request: Json) -> bool:
    """Whether one GPU would do for one piece of the request this moment."""
    if gpu.tainted or not suits(gpu, request):
        return False
    sessions = int(request.get("encoder_sessions") or 0)
    if gpu.encoders is not None and gpu.used_encoders + sessions > gpu.encoders:
        return False
    if request.get("sharing") == "shared":
        return gpu.used_shares < ALL_SHARES and gpu.memory_mib - gpu.used_mib >= asked_mib(
            request["vram"]
        )
    return not gpu.used_shares


def need(spec: Json) -> tuple[float, float]:
    """CPU cores and bytes one instance asks for, as the workload file says; shared memory is memory."""
    resources = spec.get("resources") or {}
    gpus = int((spec.get("gpu") or {}).get("count", 1)) if spec.get("gpu") else 0
    shm = amount(spec["shm"]) if "shm" in spec else gpus * 2 * 2.0**30
    return amount(resources.get("cpu", 1)), amount(resources.get("memory", "1Gi")) + shm


def allowed(room: Room, spec: Json) -> bool:
    if room.name in (spec.get("avoid") or []):
        return False
    return not spec.get("node") or spec["node"] == room.name


def gpus_wanted(spec: Json) -> int:
    return int(spec["gpu"].get("count", 1)) if spec.get("gpu") else 0


def fits_on(room: Room, spec: Json, owed: Owed) -> bool:
    """One instance fits on this node, even after everything owed has been started right there."""
    if not room.usable or not allowed(room, spec):
        return False
    cpu, memory = need(spec)
    if room.cpu - owed.cpu + 1e-9 < cpu or room.memory - owed.memory < memory:
        return False
    if room.pods - owed.pods < 1:
        return False
    wanted = gpus_wanted(spec)
    free = sum(gpu_fits(gpu, spec["gpu"]) for gpu in room.gpus) if wanted else 0
    return not wanted or free - owed.gpus >= wanted


def could_start(now: World, spec: Json) -> list[str]:
    """Nodes on which one instance of the workload surely fits this moment."""
    return sorted(room.name for room in now.rooms.values() if fits_on(room, spec, now.owed))


def could_ever_on(room: Room, spec: Json) -> bool:
    """By its GPUs alone, as if nobody held any: whether one instance could run there one day."""
    wanted = gpus_wanted(spec)
    if not allowed(room, spec):
        return False
    return not wanted or sum(suits(gpu, spec["gpu"]) for gpu in room.gpus) >= wanted


def could_ever(now: World, spec: Json) -> bool:
    return any(could_ever_on(room, spec) for room in now.rooms.values())


def one_at_a_time(spec: Json) -> bool:
    """Starts with a single instance: for replicas and gangs "does it fit" is not asked here."""
    return int(spec.get("replicas", 1)) == 1 and not (spec.get("job") or {}).get("gang")
