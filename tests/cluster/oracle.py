"""An independent judge: recomputes from the API server's own objects whether what PodWarden says is true.

It shares no code with `podwarden`: quantities, claims, floors and fits are read and computed here again, from
the JSON of the cluster and from the JSON that PodWarden's API shows. It is deliberately simple and slow.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

DRIVER = "gpu.podwarden.io"
ALL_SHARES = 64
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
    uuid: str
    node: str
    model: str
    vram_mib: int
    memory_mib: int
    tainted: bool
    used_shares: int = 0
    used_mib: int = 0
    holders: set[str] = field(default_factory=set)  # "namespace/pod"


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


@dataclass
class World:
    rooms: dict[str, Room]
    gpus: dict[str, Gpu]
    broken: list[str]  # books that do not add up


def _ready(node: dict[str, Any]) -> bool:
    return any(
        c["type"] == "Ready" and c["status"] == "True"
        for c in node.get("status", {}).get("conditions", [])
    )


def _rooms(nodes: list[dict[str, Any]]) -> dict[str, Room]:
    rooms = {}
    for node in nodes:
        allocatable = node["status"]["allocatable"]
        hard = [
            t["key"]
            for t in node["spec"].get("taints", [])
            if t["effect"] in {"NoSchedule", "NoExecute"} and t["key"] not in TOLERATED
        ]
        ready = _ready(node)
        rooms[node["metadata"]["name"]] = Room(
            node["metadata"]["name"],
            ready and not node["spec"].get("unschedulable") and not hard,
            ready,
            amount(allocatable["cpu"]),
            amount(allocatable["memory"]),
            amount(allocatable.get("pods", "110")),
        )
    return rooms


def _charge_pods(rooms: dict[str, Room], pods: list[dict[str, Any]]) -> None:
    for pod in pods:
        room = rooms.get(pod["spec"].get("nodeName", ""))
        if room is None or pod["status"].get("phase") in {"Succeeded", "Failed"}:
            continue
        requests = [c.get("resources", {}).get("requests", {}) for c in pod["spec"]["containers"]]
        room.cpu -= sum(amount(r.get("cpu", "0")) for r in requests)
        room.memory -= sum(amount(r.get("memory", "0")) for r in requests)
        room.pods -= 1


def _gpus(rooms: dict[str, Room], slices: list[dict[str, Any]]) -> dict[str, Gpu]:
    gpus = {}
    for item in slices:
        spec = item["spec"]
        if spec["driver"] != DRIVER or spec["nodeName"] not in rooms:
            continue
        for device in spec["devices"]:
            attributes = {k: next(iter(v.values())) for k, v in device["attributes"].items()}
            gpu = Gpu(
                device["name"],
                spec["nodeName"],
                str(attributes["model"]),
                int(attributes["vramMiB"]),
                mib(device["capacity"]["memory"]["value"]),
                bool(device.get("taints")),
            )
            gpus[gpu.uuid] = gpu
            rooms[gpu.node].gpus.append(gpu)
    return gpus


def world(objects: dict[str, list[dict[str, Any]]]) -> World:
    """`objects`: lists of nodes, pods, resourceslices, resourceclaims of one moment."""
    rooms = _rooms(objects["nodes"])
    _charge_pods(rooms, objects["pods"])
    gpus = _gpus(rooms, objects["resourceslices"])
    for claim in objects["resourceclaims"]:
        allocation = claim.get("status", {}).get("allocation")
        for result in (allocation or {}).get("devices", {}).get("results", []):
            gpu = gpus.get(result["device"])
            if gpu is None or result["driver"] != DRIVER:
                continue
            used = result.get("consumedCapacity", {})
            gpu.used_shares += int(amount(used.get("shares", ALL_SHARES)))
            gpu.used_mib += mib(used["memory"]) if "memory" in used else gpu.memory_mib
            namespace = claim["metadata"]["namespace"]
            for consumer in claim["status"].get("reservedFor", []):
                gpu.holders.add(f"{namespace}/{consumer['name']}")
    broken = [
        f"{gpu.node} {gpu.uuid}: {gpu.used_shares} of {ALL_SHARES} shares given"
        for gpu in gpus.values()
        if gpu.used_shares > ALL_SHARES
    ]
    return World(rooms, gpus, broken)


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


def gpu_fits(gpu: Gpu, gpu_request: dict[str, Any], *, empty: bool = False) -> bool:
    """Whether one GPU would do for one piece of the request; `empty`: as if nobody held it."""
    if gpu.tainted:
        return False
    models = gpu_request.get("model") or []
    models = [models] if isinstance(models, str) else models
    if models and gpu.model.lower() not in {m.lower() for m in models}:
        return False
    shares = 0 if empty else gpu.used_shares
    used = 0 if empty else gpu.used_mib
    vram = gpu_request.get("vram")
    if gpu_request.get("sharing") == "shared":
        return shares < ALL_SHARES and gpu.memory_mib - used >= asked_mib(vram)
    if shares:
        return False
    if vram is None:
        return True
    floor = int(asked_mib(vram) * 0.935)
    reserve = max(-(-floor * 3 // 100), 256)
    return gpu.vram_mib >= floor and gpu.memory_mib >= max(floor - reserve, 0) // 128 * 128


def need(spec: dict[str, Any]) -> tuple[float, float]:
    """CPU cores and bytes one instance asks for, as the workload file says (shm included in memory)."""
    resources = spec.get("resources") or {}
    return amount(resources.get("cpu", 1)), amount(resources.get("memory", "1Gi"))


def fits_on(room: Room, spec: dict[str, Any], *, empty: bool = False) -> bool:
    if not room.usable or room.name in (spec.get("avoid") or []):
        return False
    if spec.get("node") and spec["node"] != room.name:
        return False
    cpu, memory = need(spec)
    if room.cpu + 1e-9 < cpu or room.memory < memory or room.pods < 1:
        return False
    request = spec.get("gpu")
    if not request:
        return True
    count = int(request.get("count", 1))
    return sum(gpu_fits(gpu, request, empty=empty) for gpu in room.gpus) >= count


def could_start(now: World, spec: dict[str, Any]) -> list[str]:
    """Nodes on which one instance of the workload would fit this moment."""
    return sorted(room.name for room in now.rooms.values() if fits_on(room, spec))


def could_ever(now: World, spec: dict[str, Any]) -> bool:
    request = spec.get("gpu") or {}
    count = int(request.get("count", 1)) if request else 0
    return any(
        sum(gpu_fits(gpu, request, empty=True) for gpu in room.gpus) >= count
        for room in now.rooms.values()
    )


# --- are the shown reasons true? ----------------------------------------------------------------


def untrue(now: World, queue: list[dict[str, Any]]) -> list[str]:
    """Statements of the queue that the cluster's objects contradict. `queue`: entries of PodWarden's
    queue in order, each with name, position, priority, spec, reason."""
    found = list(now.broken)
    ahead: list[dict[str, Any]] = []
    places: dict[int, str] = defaultdict(str)
    for entry in queue:
        name, reason = entry["name"], entry.get("reason")
        if entry["position"] in places:
            found.append(f"{name} and {places[entry['position']]} share place {entry['position']}")
        places[entry["position"]] = name
        if reason is None:
            found.append(f"{name} waits without a reason")
            continue
        found += _judge(now, entry, reason, ahead)
        ahead.append(entry)
    return found


def _judge(
    now: World, entry: dict[str, Any], reason: dict[str, Any], ahead: list[dict[str, Any]]
) -> list[str]:
    name, code, spec = entry["name"], reason["code"], entry["spec"]
    where = could_start(now, spec)
    wrong = []
    if code in {"DEVICES_IN_USE", "WAITS_FOR_SERVICE", "CPU_OR_MEMORY_SHORT"} and where:
        whole = int(spec.get("replicas", 1)) == 1
        if whole:
            wrong.append(f"{name}: {code}, yet it fits on {', '.join(where)}")
    if code == "CPU_OR_MEMORY_SHORT":
        cpu, memory = need(spec)
        plenty = [
            r.name
            for r in now.rooms.values()
            if r.usable and r.cpu >= cpu and r.memory >= memory and _has_gpus(r, spec)
        ]
        if plenty:
            wrong.append(f"{name}: short of CPU or memory, yet {', '.join(plenty)} has both")
    if code == "WAITS_BEHIND" and not ahead:
        wrong.append(f"{name}: waits behind others, yet it is first")
    if code == "NODE_NOT_READY" and all(r.ready for r in now.rooms.values()):
        wrong.append(f"{name}: waits for a node that is not ready, yet all are ready")
    wrong += [f"{name}: {text}" for text in _wrong_notes(now, reason)]
    return wrong


def _has_gpus(room: Room, spec: dict[str, Any]) -> bool:
    request = spec.get("gpu")
    if not request:
        return True
    return sum(gpu_fits(g, request) for g in room.gpus) >= int(request.get("count", 1))


def _wrong_notes(now: World, reason: dict[str, Any]) -> list[str]:
    wrong = []
    for note in reason.get("notes", []):
        gpu = now.gpus.get(note["device"])
        if gpu is None:
            continue
        if gpu.node != note["node"]:
            wrong.append(f"says {gpu.uuid} is on {note['node']}, it is on {gpu.node}")
        if note["code"] in {"DEVICES_IN_USE", "WAITS_FOR_SERVICE"} and not gpu.used_shares:
            wrong.append(f"says {gpu.node} {gpu.model} is held, nobody holds it")
        if note["code"] == "DEVICE_UNHEALTHY" and not gpu.tainted:
            wrong.append(f"says {gpu.node} {gpu.model} is unhealthy, it is not")
    return wrong


def idle_for_head(now: World, queue: list[dict[str, Any]]) -> str:
    """The head of the queue could start on free capacity this moment: where; "" otherwise."""
    if not queue or int(queue[0]["spec"].get("replicas", 1)) > 1:
        return ""
    where = could_start(now, queue[0]["spec"])
    return f"{queue[0]['name']} is first and fits on {', '.join(where)}" if where else ""
