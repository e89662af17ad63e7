"""What matters of PodWarden's own objects, read once when they arrive. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from podwarden.kube.labels import MANAGER, NAME, NAMESPACE, PARTS, REVISION, VOLUME, WORKLOAD

Json = Mapping[str, Any]

_HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class ServicePort:
    """node_port 0: none yet."""

    port: int
    protocol: str
    node_port: int


@dataclass(frozen=True, slots=True)
class Exposed:
    """A service of type LoadBalancer, PodWarden's or not. ingress "": nobody gave it an address (yet)."""

    name: str
    own: bool
    ingress: str
    ports: tuple[ServicePort, ...]


@dataclass(frozen=True, slots=True)
class PartFacts:
    """One object of a workload, as far as its Presence needs it. ports: of a LAN service."""

    kind: str
    name: str
    workload: str
    workload_name: str
    revision: int
    runs: bool = False  # a Deployment or a Job: the object that says how the workload is doing
    desired: int = 0
    suspended: bool = False
    succeeded: int = 0
    failed: int = 0
    complete: bool = False
    failed_why: str = ""
    edited: str = ""
    whole: frozenset[tuple[str, str]] = (
        frozenset()
    )  # what belongs to it, as its main object lists it
    ingress: str = ""
    ports: tuple[ServicePort, ...] = ()
    generation: int = 0
    observed_generation: int = 0
    updated_ready: int = 0
    deleting: bool = False


def read_part(kind: str, obj: Json) -> PartFacts | None:
    """None for an object that belongs to no workload."""
    meta = obj["metadata"]
    labels = meta.get("labels") or {}
    if not labels.get(WORKLOAD):
        return None
    revision = labels.get(REVISION, "")
    part = PartFacts(
        kind=kind,
        name=meta["name"],
        workload=labels[WORKLOAD],
        workload_name=labels.get(NAME, meta["name"]),
        revision=int(revision) if revision.isdecimal() else 0,
        edited=_edited(kind, meta),
        whole=_whole((meta.get("annotations") or {}).get(PARTS, "")),
        generation=meta.get("generation") or 0,
        deleting=bool(meta.get("deletionTimestamp")),
    )
    read = _READERS.get(kind)
    return replace(part, **read(obj.get("spec") or {}, obj.get("status") or {})) if read else part


def _deployment(spec: Json, status: Json) -> dict[str, Any]:
    """updated_ready: copies of the newest revision that are ready; old ones still there do not count."""
    updated, old = status.get("updatedReplicas") or 0, 0
    old = (status.get("replicas") or 0) - updated
    ready = status.get("readyReplicas") or 0
    replicas = spec.get("replicas")
    return {
        "runs": True,
        "desired": 1 if replicas is None else replicas,
        "observed_generation": status.get("observedGeneration") or 0,
        "updated_ready": max(0, min(updated, ready - max(old, 0))),
    }


def _job(spec: Json, status: Json) -> dict[str, Any]:
    conditions = {c["type"]: c for c in status.get("conditions") or () if c.get("status") == "True"}
    failed = conditions.get("Failed") or {}
    parallelism, suspended = spec.get("parallelism"), bool(spec.get("suspend"))
    return {
        "runs": True,
        "desired": 0 if suspended else 1 if parallelism is None else parallelism,
        "suspended": suspended,
        "succeeded": status.get("succeeded") or 0,
        "failed": status.get("failed") or 0,
        "complete": "Complete" in conditions,
        "failed_why": f"{failed.get('reason', 'Failed')}: {failed.get('message', '')}"[:512]
        if failed
        else "",
        "updated_ready": status.get("ready") or 0,
    }


def _service(spec: Json, status: Json) -> dict[str, Any]:
    if spec.get("type") not in ("LoadBalancer", "NodePort"):
        return {}
    return {"ingress": _ingress(status), "ports": _ports(spec)}


def read_exposed(obj: Json) -> Exposed | None:
    """None for a service that no load balancer is asked for."""
    meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    if spec.get("type") != "LoadBalancer":
        return None
    own = meta.get("namespace") == NAMESPACE and WORKLOAD in (meta.get("labels") or {})
    name = f"{meta.get('namespace', '')}/{meta['name']}"
    return Exposed(name, own, _ingress(status), _ports(spec))


def _ingress(status: Json) -> str:
    ingress: Json = next(iter((status.get("loadBalancer") or {}).get("ingress") or ()), {})
    return str(ingress.get("ip") or ingress.get("hostname") or "")


def _ports(spec: Json) -> tuple[ServicePort, ...]:
    return tuple(
        ServicePort(p["port"], p.get("protocol") or "TCP", p.get("nodePort") or 0)
        for p in spec.get("ports") or ()
    )


_READERS = {"Deployment": _deployment, "Job": _job, "Service": _service}
CONTROLLERS = (
    MANAGER, "kube-controller-manager", "k3s", "kube-scheduler", "kubelet", "service-lb-controller", "kwok",
    "cloud-controller-manager", "Go-http-client", "podwarden-engine",
)  # fmt: skip


def parts_text(parts: Iterable[tuple[str, str]]) -> str:
    """(kind, name) of everything that belongs to a workload, as its main object carries it."""
    return " ".join(f"{kind}/{name}" for kind, name in sorted(parts))


def _whole(text: str) -> frozenset[tuple[str, str]]:
    pairs = (word.partition("/") for word in text.split())
    return frozenset((kind, name) for kind, _, name in pairs if name)


def _edited(kind: str, meta: Json) -> str:
    """`spec.replicas by kubectl`: fields of the wish (not the status) that somebody else set."""
    if kind not in ("Deployment", "Job"):
        return ""
    found = set()
    for entry in meta.get("managedFields") or ():
        manager = entry.get("manager", "")
        if manager in CONTROLLERS or entry.get("subresource") not in (None, "", "scale"):
            continue
        spec = (entry.get("fieldsV1") or {}).get("f:spec")
        for leaf in _leaves(spec or {}, "spec"):
            found.add(f"{leaf} by {manager}")
    return ", ".join(sorted(found))[:256]


def _leaves(fields: Json, path: str) -> Iterator[str]:
    inner = [(key, value) for key, value in fields.items() if key.startswith(("f:", "k:"))]
    if not inner:
        yield path
    for key, value in inner:
        yield from _leaves(value, f"{path}.{key[2:]}" if key.startswith("f:") else path)


@dataclass(frozen=True, slots=True)
class VolumeClaimFacts:
    workload: str
    volume: str
    bound_to: str  # name of the PersistentVolume
    selected_node: str


def read_volume_claim(obj: Json) -> VolumeClaimFacts:
    meta = obj["metadata"]
    labels = meta.get("labels") or {}
    return VolumeClaimFacts(
        workload=labels.get(WORKLOAD, ""),
        volume=labels.get(VOLUME, ""),
        bound_to=(obj.get("spec") or {}).get("volumeName", ""),
        selected_node=(meta.get("annotations") or {}).get("volume.kubernetes.io/selected-node", ""),
    )


def read_volume_host(obj: Json) -> str:
    """The one host name that a PersistentVolume is tied to, "" when it can be used from several."""
    required = ((obj.get("spec") or {}).get("nodeAffinity") or {}).get("required") or {}
    hosts = {
        value
        for term in required.get("nodeSelectorTerms") or ()
        for e in term.get("matchExpressions") or ()
        if e["key"] in (_HOSTNAME, "metadata.name") and e["operator"] == "In"
        for value in e.get("values") or ()
    }
    return hosts.pop() if len(hosts) == 1 else ""
