"""Objects that every cluster has once, beside its workloads: namespace, priorities, GPU class, rights, fence. Pure."""

from __future__ import annotations

from typing import Any

from podwarden.domain.workload import Priority
from podwarden.kube.devices import CLASS, DRIVER
from podwarden.kube.fence import fence_map, fence_objects
from podwarden.kube.labels import EXTENDED_RESOURCE, NAMESPACE
from podwarden.kube.render_pod import priority_class

NODE_AGENT = "podwarden-node-agent"
_RBAC = "rbac.authorization.k8s.io"


def bootstrap_objects(
    served: frozenset[str] = frozenset({"deviceclasses"}), fence: int = 0
) -> tuple[dict[str, Any], ...]:
    """In apply order, without the namespace and the fence's ConfigMap, which come first (`first_objects`).

    served: plurals of resource.k8s.io/v1 that the cluster knows; without claims it gets no GPU class. fence: that the
    policy enforces.
    """
    objects = [*fence_objects(fence), *priority_classes(), *node_agent_rights()]
    if "deviceclasses" in served:
        objects.append(device_class())
    return tuple(objects)


def first_objects(fence: int) -> tuple[dict[str, Any], ...]:
    return namespace(), fence_map(fence)


def namespace() -> dict[str, Any]:
    """Caches and device nodes need folders of the host, which a cluster may forbid by default."""
    enforce = {"pod-security.kubernetes.io/enforce": "privileged"}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": enforce},
    }


def priority_classes() -> tuple[dict[str, Any], ...]:
    """They order what waits in the cluster's scheduler. They never evict: that is PodWarden's decision."""
    return tuple(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": priority_class(priority.word)},
            "value": int(priority),
            "preemptionPolicy": "Never",
            "description": f"PodWarden: {priority.word} work",
        }
        for priority in sorted(Priority, reverse=True)
    )


def device_class() -> dict[str, Any]:
    """Every GPU that PodWarden publishes; charts that ask for nvidia.com/gpu draw on the same books."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": CLASS},
        "spec": {
            "selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}],
            "extendedResourceName": EXTENDED_RESOURCE,
        },
    }


def node_agent_rights() -> tuple[dict[str, Any], ...]:
    """A node agent reads claims and its node, and writes slices."""
    rules = [
        {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["get"]},
        {
            "apiGroups": ["resource.k8s.io"],
            "resources": ["resourceslices"],
            "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"],
        },
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
    ]
    subject = {"kind": "ServiceAccount", "name": NODE_AGENT, "namespace": NAMESPACE}
    return (
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": NODE_AGENT, "namespace": NAMESPACE},
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": NODE_AGENT},
            "rules": rules,
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": NODE_AGENT},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": NODE_AGENT},
            "subjects": [subject],
        },
    )
