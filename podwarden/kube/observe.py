"""What matters of nodes and claims, read once when they arrive. Pure.

Records compare by value: an object whose record did not change (a heartbeat, a status nobody needs) changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from podwarden.domain.inventory import (
    DEVICE_SHARES,
    Device,
    Holder,
    Holding,
    Node,
    short_model,
)
from podwarden.kube.devices import DRIVER, Piece, read_pieces
from podwarden.kube.labels import (
    EXTENDED_RESOURCE,
    NAMESPACE,
    SIMULATED,
    TOLERATED,
    WORKLOAD,
)
from podwarden.kube.pods import PodFacts, amount, when
from podwarden.kube.quantity import MIB

Json = Mapping[str, Any]

_SERVER_ROLES = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_SIMULATOR = ("simulator.podwarden.io/power", SIMULATED)
_HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """node: without use and devices. gpus: classic whole GPUs that a device plugin offers. k3s: it runs K3s, which
    gives services an address of their nodes by itself.
    """

    node: Node
    uid: str
    gpus: int
    gpu_model: str
    gpu_mib: int
    hostname: str
    k3s: bool = False


def read_node(obj: Json) -> NodeFacts:
    meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    labels = meta.get("labels") or {}
    allocatable = status.get("allocatable") or {}
    ready: Json = next((c for c in status.get("conditions") or () if c["type"] == "Ready"), {})
    addresses = {a["type"]: a["address"] for a in status.get("addresses") or ()}
    node = Node(
        name=meta["name"],
        cpu_milli=int(amount(str(allocatable.get("cpu", "0"))) * 1000),
        memory_mib=int(amount(str(allocatable.get("memory", "0"))) / MIB),
        pods=int(amount(str(allocatable.get("pods", "0")))),
        ready=ready.get("status") == "True",
        changed_at=when(ready.get("lastTransitionTime")),
        cordoned=bool(spec.get("unschedulable")),
        server=any(role in labels for role in _SERVER_ROLES),
        address=addresses.get("ExternalIP") or addresses.get("InternalIP", ""),
        taints=_taints(spec),
        labels=tuple(sorted(labels.items())),
        simulated=any(label in labels for label in _SIMULATOR),
    )
    model = short_model(labels.get("nvidia.com/gpu.product", "").replace("-", " "))
    memory = labels.get("nvidia.com/gpu.memory", "")
    return NodeFacts(
        node=node,
        uid=meta.get("uid", ""),
        gpus=int(amount(str(allocatable.get(EXTENDED_RESOURCE, "0")))),
        gpu_model=model or "GPU",
        gpu_mib=int(memory) if memory.isdecimal() else 0,
        hostname=labels.get(_HOSTNAME, meta["name"]),
        k3s="+k3s" in str((status.get("nodeInfo") or {}).get("kubeletVersion", "")),
    )


def _taints(spec: Json) -> tuple[str, ...]:
    """Keys of taints that keep PodWarden's work away; readiness and cordon have fields of their own."""
    keys = {
        taint["key"]
        for taint in spec.get("taints") or ()
        if taint.get("effect") in ("NoSchedule", "NoExecute") and taint["key"] not in TOLERATED
    }
    return tuple(sorted(keys))


def classic_devices(facts: NodeFacts) -> tuple[Device, ...]:
    """Whole GPUs of a device plugin, which has no identities to show: numbered, VRAM by label where there is one."""
    name = facts.node.name
    return tuple(
        Device(
            node=name,
            index=index,
            uuid=f"{name}/gpu-{index}",
            model=facts.gpu_model,
            vram_mib=facts.gpu_mib,
            memory_mib=facts.gpu_mib,
            whole_only=True,
            dra_driver="",
        )
        for index in range(facts.gpus)
    )


def classic_holdings(facts: NodeFacts, pods: Sequence[PodFacts]) -> Iterator[Holding]:
    """Which of a node's numbered GPUs its pods hold: in order of age, since nobody can tell more."""
    free = iter(classic_devices(facts))
    for pod in sorted(pods, key=lambda pod: (str(pod.created_at), pod.namespace, pod.name)):
        for _ in range(pod.gpus):
            device = next(free, None)
            if device is not None:
                yield Holding(
                    device.uuid, device.node, device.memory_mib, DEVICE_SHARES, holder_of(pod)
                )


@dataclass(frozen=True, slots=True)
class ClaimFacts:
    """reserved_for: uids of the pods that may use it; several pieces of one claim may lie in one device."""

    namespace: str
    name: str
    pieces: tuple[Piece, ...]
    allocated: bool
    reserved_for: tuple[tuple[str, str], ...]  # (pod name, uid)
    owner: str  # uid of the pod that it was made for
    terminating: bool
    workload: str
    since: datetime | None


def read_claim(obj: Json) -> ClaimFacts:
    meta, status = obj["metadata"], obj.get("status") or {}
    labels = meta.get("labels") or {}
    namespace = meta.get("namespace", "")
    owners = meta.get("ownerReferences") or ()
    allocation = status.get("allocation") or {}
    return ClaimFacts(
        namespace=namespace,
        name=meta["name"],
        pieces=read_pieces(obj),
        allocated=bool(status.get("allocation")),
        reserved_for=tuple(
            (r["name"], r["uid"])
            for r in status.get("reservedFor") or ()
            if r.get("resource") == "pods"
        ),
        owner=next((o["uid"] for o in owners if o.get("kind") == "Pod"), ""),
        terminating=bool(meta.get("deletionTimestamp")),
        workload=labels.get(WORKLOAD, "") if namespace == NAMESPACE else "",
        since=when(allocation.get("allocationTimestamp")) or when(meta.get("creationTimestamp")),
    )


def claim_holdings(
    claim: ClaimFacts,
    pods: Sequence[PodFacts],
    device_of: Mapping[tuple[str, str, str], Device],
) -> tuple[Holding, ...]:
    """pods: those that the claim is reserved for or was made for, as far as they still exist."""
    if not claim.allocated:
        return ()
    holder = _claim_holder(claim, pods)
    out: dict[str, Holding] = {}
    for piece in claim.pieces:
        device = device_of.get((piece.driver, piece.pool, piece.device))
        if (
            device is None
            and piece.memory_mib is None
            and piece.shares is None
            and not _ours(piece)
        ):
            continue  # a device that is no GPU: a network card, a disk
        held = _holding(piece, device, holder)
        before = out.get(held.device)
        if before is not None:  # two requests of one claim in one device
            held = replace(
                held,
                memory_mib=held.memory_mib + before.memory_mib,
                shares=min(held.shares + before.shares, DEVICE_SHARES),
                encoders=held.encoders + before.encoders,
            )
        out[held.device] = held
    return tuple(out.values())


def _ours(piece: Piece) -> bool:
    return piece.driver == DRIVER


def _holding(piece: Piece, device: Device | None, holder: Holder) -> Holding:
    whole = device.memory_mib if device is not None else 0
    if piece.shares is not None:
        shares, memory = piece.shares, piece.memory_mib or 0
    elif piece.memory_mib is None or (device is not None and device.whole_only):
        shares, memory = DEVICE_SHARES, max(whole, piece.memory_mib or 0)
    else:  # a driver that shares by memory alone
        memory = piece.memory_mib
        shares = DEVICE_SHARES if device is not None and memory >= whole else 1
    return Holding(
        device=device.uuid if device is not None else piece.device,
        node=device.node if device is not None else piece.pool,
        memory_mib=memory,
        shares=shares,
        holder=holder,
        encoders=piece.encoders or 0,
    )


def _claim_holder(claim: ClaimFacts, pods: Sequence[PodFacts]) -> Holder:
    """One claim may serve several pods: it is free when the last of them is gone."""
    holders = [holder_of(pod) for pod in pods]
    if not holders:
        name = claim.reserved_for[0][0] if claim.reserved_for else claim.name
        return Holder(
            name=name if claim.workload else f"{claim.namespace}/{name}",
            workload=claim.workload,
            namespace=claim.namespace,
            instance=name,
            terminating=claim.terminating or bool(claim.reserved_for),
            since=claim.since,
        )
    ends = [holder.ends_by for holder in holders]
    known = [end for end in ends if end is not None]
    return replace(
        holders[0],
        endless=any(holder.endless for holder in holders),
        ends_by=max(known) if len(known) == len(ends) else None,
        terminating=claim.terminating or all(holder.terminating for holder in holders),
        since=claim.since or holders[0].since,
    )


def holder_of(pod: PodFacts) -> Holder:
    """An ended pod's claim goes as soon as the cluster notices: it counts as told to go."""
    return Holder(
        name=pod.workload_name or f"{pod.namespace}/{pod.name}",
        workload=pod.workload,
        namespace=pod.namespace,
        instance=pod.name,
        endless=pod.endless,
        ends_by=pod.ends_by,
        priority=pod.priority,
        terminating=pod.terminating or pod.ended,
        since=pod.created_at,
        cpu_milli=pod.cpu_milli,
        memory_mib=pod.memory_mib,
    )
