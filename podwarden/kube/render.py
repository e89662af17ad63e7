"""A workload and its placement as Kubernetes objects, in the order in which they are applied. Pure.

The same input gives the same objects, byte for byte: applying them again changes nothing. Names: the workload's
name; `<name>-r<N>-<digest>` for the claim template, whose content never changes under one name.

Jobs: `podReplacementPolicy: TerminatingOrFailed` starts a replacement while the pod of a dead node still hangs; the
API refuses it together with a pod failure policy, so that a lost node counts as a failure there. Therefore the
back-off limit is larger than the user's retries, and the retries that were the program's own fault are counted by
PodWarden, which ends the job. An array's tasks wait behind a gate each (kube.gates).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from podwarden.domain.inventory import Capabilities
from podwarden.domain.placement import Placement
from podwarden.domain.workload import (
    Expose,
    JobSpec,
    Port,
    Priority,
    Revision,
    VolumeKind,
    Workload,
)
from podwarden.errors import Invalid
from podwarden.kube import claims
from podwarden.kube.gates import FIRST
from podwarden.kube.labels import GATE, NAMESPACE, PARTS, REVISION, VOLUME, WORKLOAD
from podwarden.kube.parts import parts_text
from podwarden.kube.record import (
    OWNER,
    PLACEMENT,
    RECORD,
    fits_inline,
    placement_text,
    record_object,
    record_text,
)
from podwarden.kube.render_pod import (
    PodMaker,
    StorageSource,
    labels_of,
    pull_secret_name,
    volume_claim_name,
)

SPARE_RETRIES = 20  # failures of nodes that a job survives besides its own retries
STOCK = 16  # gated pods beyond those that run, so that a free GPU never waits for a pod to be made
PULL_PATIENCE = 900  # seconds for an image before a roll-out counts as stuck


class Strategy(StrEnum):
    SURGE = "surge"  # the new one is ready before the old one goes
    RECREATE = "recreate"  # the old one goes first


PRUNED = (
    ("v1", "secrets"),
    ("v1", "services"),
    ("v1", "configmaps"),
    ("resource.k8s.io/v1", "resourceclaimtemplates"),
    ("apps/v1", "deployments"),
    ("batch/v1", "jobs"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Prune:
    """Which objects of this workload are left over once the rendered ones are applied.

    kinds: (API version, plural) to look through, by `selector`. Volumes are never among them. A claim template of
    the previous revision stays: during a roll-out an old replica may still need a new claim. Pods keep their claims.
    """

    selector: str
    keep: frozenset[tuple[str, str]]  # (kind, name)
    revision: int
    kinds: tuple[tuple[str, str], ...] = PRUNED

    def drops(self, obj: Mapping[str, Any]) -> bool:
        metadata = obj["metadata"]
        if (obj["kind"], metadata["name"]) in self.keep or metadata.get("deletionTimestamp"):
            return False
        if obj["kind"] != "ResourceClaimTemplate":
            return True
        return (metadata.get("labels") or {}).get(REVISION) != str(self.revision - 1)


@dataclass(frozen=True, slots=True)
class Rendered:
    """objects: in apply order, the one that starts pods last; it carries the record, or a ConfigMap does."""

    workload: str
    objects: tuple[dict[str, Any], ...]
    prune: Prune


def render(
    workload: Workload,
    placement: Placement,
    *,
    secrets: Mapping[str, str],
    capabilities: Capabilities,
    strategy: Strategy | str = Strategy.SURGE,
    revisions: Sequence[Revision] = (),
    parallelism: int | None = None,
    storages: Mapping[str, StorageSource] | None = None,
    priority: Priority | None = None,
) -> Rendered:
    """secrets: value by name of the secret. parallelism: how many pods of an array may exist, None = by the
    placement. revisions: the history for the record. priority: of its pods, None = as the spec says.

    Invalid when a secret or storage that the spec names is not given.
    """
    template = _claim_template(workload, placement, capabilities)
    maker = PodMaker(
        workload,
        placement,
        capabilities,
        storages or {},
        claim=template["metadata"]["name"] if template else "",
        priority=priority,
    )
    record = record_text(workload, revisions)
    inline = fits_inline(record)
    objects = [] if inline else [record_object(workload, record)]
    objects += [*_secrets(workload, secrets), *_volume_claims(workload)]
    objects += [template] if template else []
    objects += _services(workload, capabilities)
    if workload.spec.endless:
        objects.append(_deployment(maker, Strategy(strategy)))
    else:
        objects.append(_job(maker, parallelism))
    if inline:
        objects[-1]["metadata"]["annotations"][RECORD] = record
    whole = {(obj["kind"], obj["metadata"]["name"]) for obj in objects}
    objects[-1]["metadata"]["annotations"][PARTS] = parts_text(whole)
    prune = Prune(
        selector=f"{WORKLOAD}={workload.id}",
        keep=frozenset(whole),
        revision=workload.revision,
    )
    return Rendered(workload.id, tuple(objects), prune)


def _object(workload: Workload, api: str, kind: str, name: str, **content: Any) -> dict[str, Any]:
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": labels_of(workload),
            "annotations": {OWNER: workload.owner},
        },
        **content,
    }


# --- GPUs, secrets, volumes, addresses -------------------------------------------------------------


def _claim_template(
    workload: Workload, placement: Placement, capabilities: Capabilities
) -> dict[str, Any] | None:
    gpu, job = workload.spec.gpu, workload.spec.job
    if gpu is None or not capabilities.driver:
        return None
    array = job is not None and job.array is not None
    claim = claims.claim_spec(
        gpu,
        placement,
        dialect=claims.dialect_of(capabilities.driver),
        steer=capabilities.steer_device and not array,
    )
    digest = hashlib.sha256(json.dumps(claim, sort_keys=True).encode()).hexdigest()[:8]
    name = f"{workload.name}-r{workload.revision}-{digest}"
    content = {"metadata": {"labels": labels_of(workload)}, "spec": claim}
    return _object(workload, "resource.k8s.io/v1", "ResourceClaimTemplate", name, spec=content)


def _secrets(workload: Workload, values: Mapping[str, str]) -> list[dict[str, Any]]:
    spec, made = workload.spec, []
    if spec.secrets:
        data = {
            variable: _encoded(_secret(values, name, f"secrets.{variable}"))
            for variable, name in spec.secrets
        }
        made.append(_object(workload, "v1", "Secret", workload.name, type="Opaque", data=data))
    if spec.image_pull_secret:
        login = _secret(values, spec.image_pull_secret, "image_pull_secret")
        name = pull_secret_name(workload.name)
        kind = "kubernetes.io/dockerconfigjson"
        data = {".dockerconfigjson": _encoded(_docker_config(login))}
        made.append(_object(workload, "v1", "Secret", name, type=kind, data=data))
    return made


def _secret(values: Mapping[str, str], name: str, field: str) -> str:
    if name not in values:
        raise Invalid.of(field, name, "the name of a stored secret")
    return values[name]


def _docker_config(login: str) -> str:
    """As `docker login` leaves it in ~/.docker/config.json. The value is never quoted in a message."""
    try:
        auths = json.loads(login)["auths"]
    except (ValueError, KeyError, TypeError, RecursionError):
        auths = None
    if not isinstance(auths, dict):
        raise Invalid.of(
            "image_pull_secret", "", "a secret with the content of ~/.docker/config.json"
        )
    return login


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _volume_claims(workload: Workload) -> list[dict[str, Any]]:
    """`disk` volumes, of the cluster's default storage class (on K3s a folder of one node)."""
    made = []
    for volume in workload.spec.volumes:
        if volume.kind is not VolumeKind.DISK:
            continue
        size = {"requests": {"storage": f"{volume.size_mib}Mi"}}
        claim = _object(
            workload,
            "v1",
            "PersistentVolumeClaim",
            volume_claim_name(workload.name, volume.name),
            spec={"accessModes": ["ReadWriteOnce"], "resources": size},
        )
        claim["metadata"]["labels"][VOLUME] = volume.name
        made.append(claim)
    return made


def _services(workload: Workload, capabilities: Capabilities) -> list[dict[str, Any]]:
    """Inside the cluster every port; in the local network only those that ask for it, by a load balancer where one
    serves the cluster, else at a number that the cluster chooses. A gang's members find each other by name, so that
    its service has no address of its own. With the node's own network its ports are there without a service.
    """
    spec = workload.spec
    gang = spec.job is not None and spec.job.gang
    lan = [port for port in spec.ports if port.expose is Expose.LAN]
    made = []
    if spec.ports or gang:
        inside: dict[str, Any] = {"type": "ClusterIP", "ports": _service_ports(spec.ports)}
        if gang:
            inside |= {"clusterIP": "None", "publishNotReadyAddresses": True}
        made.append(_service(workload, workload.name, inside))
    if lan and not spec.host_network:
        way = "LoadBalancer" if capabilities.lan_ports else "NodePort"
        outside = {"type": way, "ports": _service_ports(lan)}
        made.append(_service(workload, lan_service_name(workload), outside))
    return made


def lan_service_name(workload: Workload) -> str:
    digest = hashlib.sha256(workload.id.encode()).hexdigest()[:6]
    return f"{workload.name}-lan-{digest}"


def _service(workload: Workload, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    selected = {**spec, "selector": {WORKLOAD: workload.id}}
    return _object(workload, "v1", "Service", name, spec=selected)


def _service_ports(ports: Sequence[Port]) -> list[dict[str, Any]]:
    return [
        {
            "name": port.name,
            "port": port.port,
            "targetPort": port.port,
            "protocol": port.protocol,
        }
        for port in ports
    ]


# --- what starts pods ------------------------------------------------------------------------------


def _deployment(maker: PodMaker, strategy: Strategy) -> dict[str, Any]:
    workload, spec = maker.workload, maker.spec
    startup = spec.health.startup_s if spec.health else 0
    return _main(
        maker,
        "apps/v1",
        "Deployment",
        {
            "replicas": spec.replicas,
            "revisionHistoryLimit": 1,  # going back is PodWarden's, by its own revisions
            "progressDeadlineSeconds": PULL_PATIENCE + startup,
            "selector": {"matchLabels": {WORKLOAD: workload.id}},
            "strategy": _rollout(strategy, spec.replicas),
            "template": maker.template(),
        },
    )


def _rollout(strategy: Strategy, replicas: int) -> dict[str, Any]:
    if strategy is Strategy.SURGE:
        return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    if replicas > 1:  # one after the other: the rest goes on serving
        return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    return {"type": "Recreate"}


def _job(maker: PodMaker, parallelism: int | None) -> dict[str, Any]:
    job = maker.spec.job or JobSpec()
    limit = job.retries + SPARE_RETRIES
    spec: dict[str, Any] = {
        "podReplacementPolicy": "TerminatingOrFailed",
        "suspend": False,
        "template": maker.template(),
    }
    if job.array is None:
        spec |= {"completions": 1, "parallelism": 1, "backoffLimit": limit}
        return _main(maker, "batch/v1", "Job", spec)
    spec |= {
        "completionMode": "Indexed",
        "completions": job.tasks,
        "parallelism": array_pods(job, len(maker.placement.slots), parallelism),
        "backoffLimitPerIndex": limit,
    }
    pod = spec["template"]["spec"]
    pod["schedulingGates"] = [{"name": GATE}]
    annotations = spec["template"]["metadata"].setdefault("annotations", {})
    annotations[FIRST] = str(job.array[0])
    if job.gang:
        pod["subdomain"] = maker.workload.name
    return _main(maker, "batch/v1", "Job", spec)


def array_pods(job: JobSpec, running: int, wanted: int | None = None) -> int:
    """How many pods of an array may exist: those that run and a stock behind the gate, never 10,000.

    A gang has all its members. running: tasks that the placement has room for. wanted: the caller's own number.
    """
    if job.gang:
        return job.tasks
    most = min(job.parallelism or job.tasks, job.tasks)
    return min(most, wanted if wanted is not None else running + STOCK)


def _main(maker: PodMaker, api: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    """The object that starts pods; it also says where they were wanted."""
    obj = _object(maker.workload, api, kind, maker.workload.name, spec=spec)
    obj["metadata"]["annotations"][PLACEMENT] = placement_text(maker.placement)
    return obj
