"""Where each kind that PodWarden reads or writes lives in the API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Kind:
    """api_version: `v1`, `apps/v1`; plural: the path's last part."""

    name: str
    api_version: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str = "", name: str = "") -> str:
        """Of one object, of one namespace's list, or (namespace "") of the whole cluster's list."""
        root = "api" if "/" not in self.api_version else "apis"
        place = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        leaf = f"/{name}" if name else ""
        return f"/{root}/{self.api_version}{place}/{self.plural}{leaf}"


RESOURCE = "resource.k8s.io/v1"
_ADMISSION = "admissionregistration.k8s.io/v1"
_RBAC = "rbac.authorization.k8s.io/v1"

NODE = Kind("Node", "v1", "nodes", namespaced=False)
POD = Kind("Pod", "v1", "pods")
SERVICE = Kind("Service", "v1", "services")
SECRET = Kind("Secret", "v1", "secrets")
CONFIG_MAP = Kind("ConfigMap", "v1", "configmaps")
NAMESPACE = Kind("Namespace", "v1", "namespaces", namespaced=False)
VOLUME = Kind("PersistentVolume", "v1", "persistentvolumes", namespaced=False)
VOLUME_CLAIM = Kind("PersistentVolumeClaim", "v1", "persistentvolumeclaims")
EVENT = Kind("Event", "v1", "events")
SERVICE_ACCOUNT = Kind("ServiceAccount", "v1", "serviceaccounts")
DEPLOYMENT = Kind("Deployment", "apps/v1", "deployments")
JOB = Kind("Job", "batch/v1", "jobs")
CLAIM = Kind("ResourceClaim", RESOURCE, "resourceclaims")
CLAIM_TEMPLATE = Kind("ResourceClaimTemplate", RESOURCE, "resourceclaimtemplates")
SLICE = Kind("ResourceSlice", RESOURCE, "resourceslices", namespaced=False)
DEVICE_CLASS = Kind("DeviceClass", RESOURCE, "deviceclasses", namespaced=False)
TAINT_RULE = Kind("DeviceTaintRule", RESOURCE, "devicetaintrules", namespaced=False)

_ALL = (
    NODE, POD, SERVICE, SECRET, CONFIG_MAP, NAMESPACE, VOLUME, VOLUME_CLAIM, EVENT, SERVICE_ACCOUNT,
    DEPLOYMENT, JOB, CLAIM, CLAIM_TEMPLATE, SLICE, DEVICE_CLASS, TAINT_RULE,
    Kind("PriorityClass", "scheduling.k8s.io/v1", "priorityclasses", namespaced=False),
    Kind("StorageClass", "storage.k8s.io/v1", "storageclasses", namespaced=False),
    Kind("PodDisruptionBudget", "policy/v1", "poddisruptionbudgets"),
    Kind("NetworkPolicy", "networking.k8s.io/v1", "networkpolicies"),
    Kind("ValidatingAdmissionPolicy", _ADMISSION, "validatingadmissionpolicies", namespaced=False),
    Kind("ValidatingAdmissionPolicyBinding", _ADMISSION, "validatingadmissionpolicybindings", namespaced=False),
    Kind("ClusterRole", _RBAC, "clusterroles", namespaced=False),
    Kind("ClusterRoleBinding", _RBAC, "clusterrolebindings", namespaced=False),
    Kind("Role", _RBAC, "roles"),
    Kind("RoleBinding", _RBAC, "rolebindings"),
)  # fmt: skip

KINDS: Mapping[tuple[str, str], Kind] = {(kind.api_version, kind.name): kind for kind in _ALL}


def kind_of(obj: Mapping[str, Any]) -> Kind:
    """The kind of a rendered object; KeyError names one that this table lacks."""
    return KINDS[obj["apiVersion"], obj["kind"]]


def path_of(obj: Mapping[str, Any]) -> str:
    meta = obj["metadata"]
    return kind_of(obj).path(meta.get("namespace", ""), meta["name"])
