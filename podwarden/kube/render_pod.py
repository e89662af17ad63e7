"""The pod of a workload: container, environment, volumes, probes, where it may run. Pure."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from podwarden.domain.inventory import Capabilities
from podwarden.domain.placement import Placement
from podwarden.domain.units import vram_floor
from podwarden.domain.workload import (
    HealthCheck,
    JobSpec,
    Priority,
    Spec,
    Volume,
    VolumeKind,
    Workload,
)
from podwarden.errors import Invalid
from podwarden.kube import claims
from podwarden.kube.labels import EXTENDED_RESOURCE, NAME, REVISION, WORKLOAD

CACHE_FOLDER = "/var/lib/podwarden/cache"  # on each node; one folder per owner, workload and volume
GPU_TAINT = "podwarden.io/gpu"
INDEX_VALUE = "podwarden.io/index-value"  # annotation of an array's pod, set when its gate opens
LOST_AFTER = 10  # seconds from "node not ready" to the replacement
MOST_RANKED = 20
GRACE = 30  # seconds between the polite and the hard stop

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_@-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class StorageSource:
    """Where a named storage lies: an NFS export (server and path), or a folder of one host (node and path)."""

    path: str
    server: str = ""
    node: str = ""


def labels_of(workload: Workload) -> dict[str, str]:
    return {WORKLOAD: workload.id, NAME: workload.name, REVISION: str(workload.revision)}


@dataclass(frozen=True, slots=True)
class PodMaker:
    """claim: name of the claim template, "" without (no GPU, or a cluster that counts them only). priority: of its
    pods, None = as the spec says.
    """

    workload: Workload
    placement: Placement
    capabilities: Capabilities
    storages: Mapping[str, StorageSource]
    claim: str = ""
    priority: Priority | None = None

    @property
    def spec(self) -> Spec:
        return self.workload.spec

    def template(self) -> dict[str, Any]:
        annotations = dict(self.spec.annotations)
        metadata: dict[str, Any] = {"labels": labels_of(self.workload)}
        if annotations:
            metadata["annotations"] = annotations
        return {"metadata": metadata, "spec": self._pod()}

    def _pod(self) -> dict[str, Any]:
        spec, job = self.spec, self.spec.job
        pod: dict[str, Any] = {
            "restartPolicy": "Always" if spec.endless else "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": GRACE,
            "priorityClassName": priority_class((self.priority or spec.priority).word),
            "tolerations": list(self._tolerations()),
            "containers": [self._container()],
        }
        affinity = self._affinity()
        if affinity:
            pod["affinity"] = {"nodeAffinity": affinity}
        volumes = list(self._volumes())
        if volumes:
            pod["volumes"] = volumes
        if self.claim:
            pod["resourceClaims"] = [
                {"name": claims.REQUEST, "resourceClaimTemplateName": self.claim}
            ]
        if spec.gpu is not None and not self.claim:
            pod["runtimeClassName"] = "nvidia"
        if spec.host_network:
            pod |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
        if spec.image_pull_secret:
            pod["imagePullSecrets"] = [{"name": pull_secret_name(self.workload.name)}]
        if not spec.endless and job is not None and job.time_limit_s is not None:
            pod["activeDeadlineSeconds"] = job.time_limit_s
        return pod

    def _container(self) -> dict[str, Any]:
        spec = self.spec
        container: dict[str, Any] = {
            "name": self.workload.name,
            "image": spec.image,
            "env": list(self._env()),
            "resources": self._resources(),
            "securityContext": _security(spec),
            "terminationMessagePolicy": "FallbackToLogsOnError",  # last lines of a crash, for its reason
        }
        mounts = list(self._mounts())
        if mounts:
            container["volumeMounts"] = mounts
        if spec.command:
            container["command"] = list(spec.command)
        if spec.args:
            container["args"] = list(spec.args)
        if spec.ports:
            container["ports"] = [
                {"name": port.name, "containerPort": port.port, "protocol": port.protocol}
                for port in spec.ports
            ]
        if spec.health is not None and spec.endless:
            container.update(_probes(spec.health))
        return container

    def _env(self) -> Iterator[dict[str, Any]]:
        """Values are literal: `$(…)` in them is no reference (in command and args it is one)."""
        given = {name: {"value": value.replace("$(", "$$(")} for name, value in self.spec.env}
        secret = {
            name: {"valueFrom": {"secretKeyRef": {"name": self.workload.name, "key": name}}}
            for name, _ in self.spec.secrets
        }
        for name, entry in {**given, **secret, **self._system_env()}.items():
            yield {"name": name, **entry}

    def _system_env(self) -> dict[str, Any]:
        job = self.spec.job
        env = self._array_env(job) if job is not None and job.array is not None else {}
        if self.spec.gpu is None:
            # An image may ask for every GPU of the host; work without a GPU must not get them.
            env["NVIDIA_VISIBLE_DEVICES"] = {"value": "void"}
        return env

    def _array_env(self, job: JobSpec) -> dict[str, Any]:
        field = {"fieldPath": f"metadata.annotations['{INDEX_VALUE}']"}
        env: dict[str, Any] = {
            "PW_INDEX_VALUE": {"valueFrom": {"fieldRef": field}},
            "PW_TASKS": {"value": str(job.tasks)},
        }
        if job.gang:
            env["PW_GANG_FIRST"] = {"value": f"{self.workload.name}-0.{self.workload.name}"}
        return env

    def _resources(self) -> dict[str, Any]:
        spec = self.spec
        memory = f"{spec.instance_memory_mib}Mi"
        limits = {"memory": memory}
        resources: dict[str, Any] = {
            "requests": {"cpu": f"{spec.cpu_milli}m", "memory": memory},
            "limits": limits,
        }
        if self.claim:
            resources["claims"] = [{"name": claims.REQUEST}]
        elif spec.gpu is not None:
            limits[EXTENDED_RESOURCE] = str(spec.gpu.count)
        return resources

    # --- where -----------------------------------------------------------------------------

    def _tolerations(self) -> Iterator[dict[str, Any]]:
        for state in ("not-ready", "unreachable"):
            yield {
                "key": f"node.kubernetes.io/{state}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": LOST_AFTER,
            }
        if self.spec.gpu is not None:
            yield {"key": GPU_TAINT, "operator": "Exists"}

    def _affinity(self) -> dict[str, Any]:
        affinity: dict[str, Any] = {}
        fields, expressions = list(self._must()), list(self._card_labels())
        term: dict[str, Any] = {}
        if fields:
            term["matchFields"] = fields
        if expressions:
            term["matchExpressions"] = expressions
        if term:
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
                "nodeSelectorTerms": [term]
            }
        ranking = self.placement.ranking[:MOST_RANKED]
        if ranking:
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": 100 - 5 * place, "preference": {"matchFields": [_named("In", node)]}}
                for place, node in enumerate(ranking)
            ]
        return affinity

    def _must(self) -> Iterator[dict[str, Any]]:
        if self.spec.node:
            yield _named("In", self.spec.node)
        for node in self.spec.avoid:
            yield _named("NotIn", node)
        nodes = {
            self._source(place, volume).node
            for place, volume in enumerate(self.spec.volumes)
            if volume.kind is VolumeKind.STORAGE
        }
        for node in sorted(nodes - {"", self.spec.node}):
            yield _named("In", node)

    def _card_labels(self) -> Iterator[dict[str, Any]]:
        """A cluster without claims knows the size of its GPUs only from node labels."""
        gpu = self.spec.gpu
        if gpu is None or self.claim or gpu.vram_mib is None or not self.capabilities.vram_floor:
            return
        floor = vram_floor(gpu.vram_mib)
        yield {"key": "nvidia.com/gpu.memory", "operator": "Gt", "values": [str(floor - 1)]}

    # --- volumes ---------------------------------------------------------------------------

    def _volumes(self) -> Iterator[dict[str, Any]]:
        for place, volume in enumerate(self.spec.volumes):
            yield {"name": f"vol-{volume.name}", **self._volume(place, volume)}
        for place, device in enumerate(self.spec.devices):
            yield {"name": f"dev-{place}", "hostPath": {"path": device}}
        size = self.spec.shared_memory_mib
        if size:
            yield {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{size}Mi"}}

    def _volume(self, place: int, volume: Volume) -> dict[str, Any]:
        if volume.kind is VolumeKind.DISK:
            claim = volume_claim_name(self.workload.name, volume.name)
            return {"persistentVolumeClaim": {"claimName": claim}}
        if volume.kind is VolumeKind.CACHE:
            owner = _folder(self.workload.owner)
            path = f"{CACHE_FOLDER}/{owner}/{self.workload.name}/{volume.name}"
            return {"hostPath": {"path": path, "type": "DirectoryOrCreate"}}
        if volume.kind is VolumeKind.SCRATCH:
            limit = {} if volume.size_mib is None else {"sizeLimit": f"{volume.size_mib}Mi"}
            return {"emptyDir": limit}
        source = self._source(place, volume)
        if source.server:
            return {"nfs": {"server": source.server, "path": source.path}}
        return {"hostPath": {"path": source.path, "type": "Directory"}}

    def _source(self, place: int, volume: Volume) -> StorageSource:
        source = self.storages.get(volume.storage)
        if source is None:
            known = ", ".join(sorted(self.storages)) or "none yet"
            field = f"volumes[{place}].storage"
            raise Invalid.of(field, volume.storage, f"the name of a storage; there is {known}")
        return source

    def _mounts(self) -> Iterator[dict[str, Any]]:
        for volume in self.spec.volumes:
            mount: dict[str, Any] = {"name": f"vol-{volume.name}", "mountPath": volume.path}
            if volume.subpath:
                mount["subPath"] = volume.subpath
            if volume.read_only:
                mount["readOnly"] = True
            yield mount
        for place, device in enumerate(self.spec.devices):
            yield {"name": f"dev-{place}", "mountPath": device}
        if self.spec.shared_memory_mib:
            yield {"name": "shm", "mountPath": "/dev/shm"}  # noqa: S108 - memory, not a file


# --- names: a dot cannot stand in a workload's name, so that two workloads never mean the same object ---


def priority_class(word: str) -> str:
    return f"podwarden-{word}"


def volume_claim_name(workload: str, volume: str) -> str:
    return f"{workload}.{volume}"


def pull_secret_name(workload: str) -> str:
    return f"{workload}.pull"


def _folder(owner: str) -> str:
    """An owner's name where it may name a folder, else a digest of it."""
    if _PLAIN.fullmatch(owner):
        return owner
    return "owner-" + hashlib.sha256(owner.encode()).hexdigest()[:16]


# --- parts ---------------------------------------------------------------------------------------


def _named(operator: str, node: str) -> dict[str, Any]:
    """By the node's name, never by a label that somebody may have set."""
    return {"key": "metadata.name", "operator": operator, "values": [node]}


def _security(spec: Spec) -> dict[str, Any]:
    # A device node of the host is refused to a confined container: administrators' work runs unconfined.
    if spec.devices:
        return {"privileged": True}
    return {"allowPrivilegeEscalation": False, "seccompProfile": {"type": "RuntimeDefault"}}


def _probes(health: HealthCheck) -> dict[str, Any]:
    """Minutes of patience until it first answers; from then on it is alive and ready, or not."""
    action: dict[str, Any]
    if health.command:
        action = {"exec": {"command": list(health.command)}}
    elif health.http_path:
        action = {"httpGet": {"path": health.http_path, "port": health.port}}
    else:
        action = {"tcpSocket": {"port": health.port}}
    action = {**action, "timeoutSeconds": 5}
    eager = min(health.period_s, 5)
    patience = max(math.ceil(health.startup_s / eager), 1)
    return {
        "startupProbe": {**action, "periodSeconds": eager, "failureThreshold": patience},
        # A busy model server may miss a beat: restarting it costs minutes of loading.
        "livenessProbe": {**action, "periodSeconds": health.period_s, "failureThreshold": 6},
        "readinessProbe": {**action, "periodSeconds": health.period_s, "failureThreshold": 3},
    }
