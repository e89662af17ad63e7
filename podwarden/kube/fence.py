"""The fence in the cluster: writes of a PodWarden that no longer leads are refused by the API server. Pure.

The number of the leader stands in the policy itself; a new leader raises it before it writes anything else. PodWarden's
writes are known by their field manager and carry their fence as an annotation; people, kubelets and controllers
write under other names and are never asked. A delete has no annotation of its own: PodWarden first writes its fence
into the object and then deletes exactly that version of it, so that a delete of an outdated leader meets an object
that a newer one has marked. The API server takes up to a second until it enforces a changed policy: after raising it,
a leader waits until `probe_object(fence - 1)` is refused.

The policy has no parameters. An API server refuses every write of everybody, new pods of the whole cluster among them,
while the parameter of a policy is missing, whatever the policy's conditions say: a deleted namespace could not even be
made again. And one whose policy was deleted and made again never sees the parameter change any more.

Beside it a ConfigMap carries the number for whoever reads: the next PodWarden that takes the cluster over.
"""

from __future__ import annotations

from typing import Any

from podwarden.kube.labels import FENCE, FENCE_MAP, FENCE_POLICY, MANAGER, NAMESPACE, PREFIX

PROBE = "podwarden-fence-probe"
RAISED = f"{PREFIX}raised"  # annotation of the policy: the number that it enforces
OUTDATED = "This PodWarden no longer leads: its fence is below the one of the cluster."

_API = "admissionregistration.k8s.io/v1"
_RULES = (
    ("", ("configmaps", "secrets", "services", "persistentvolumeclaims", "pods", "namespaces")),
    ("apps", ("deployments",)),
    ("batch", ("jobs",)),
    ("resource.k8s.io", ("resourceclaims", "resourceclaimtemplates", "devicetaintrules", "deviceclasses")),
    ("scheduling.k8s.io", ("priorityclasses",)),
)  # fmt: skip

_KEY = f"'{FENCE}'"
_DELETING = "request.operation == 'DELETE'"
# A person's delete names no resource version; PodWarden's always does.
_OURS = (
    f"{_DELETING} ? (has(request.options) && has(request.options.preconditions)"
    " && has(request.options.preconditions.resourceVersion)"
    f" && has(oldObject.metadata.annotations) && {_KEY} in oldObject.metadata.annotations)"
    " : (has(request.options) && has(request.options.fieldManager)"
    f" && request.options.fieldManager == '{MANAGER}')"
)
_NOT_CONTROLLER = (
    "!request.userInfo.username.startsWith('system:serviceaccount:kube-system:')"
    " && !request.userInfo.username.startsWith('system:node:')"
    " && !(request.userInfo.username in"
    " ['system:kube-controller-manager', 'system:kube-scheduler', 'system:apiserver'])"
)
_CARRIED = (
    f"{_DELETING} ? oldObject.metadata.annotations[{_KEY}] : object.metadata.annotations[{_KEY}]"
)


def fence_map(fence: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": FENCE_MAP,
            "namespace": NAMESPACE,
            "annotations": {FENCE: str(fence)},
        },
        "data": {"fence": str(fence)},
    }


def probe_object(fence: int) -> dict[str, Any]:
    """To be applied as a dry run only: it is refused exactly while `fence` is outdated."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": PROBE, "namespace": NAMESPACE, "annotations": {FENCE: str(fence)}},
    }


def fence_objects(fence: int) -> tuple[dict[str, Any], ...]:
    """The policy and its binding, in apply order."""
    return fence_policy(fence), _binding()


def fence_policy(fence: int) -> dict[str, Any]:
    """Lower numbers are refused."""
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": FENCE_POLICY, "annotations": {RAISED: str(fence)}},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [group],
                        "apiVersions": ["*"],
                        "operations": ["CREATE", "UPDATE", "DELETE"],
                        "resources": list(resources),
                    }
                    for group, resources in _RULES
                ],
            },
            "matchConditions": [
                {"name": "written-by-podwarden", "expression": _OURS},
                {"name": "not-by-a-controller", "expression": _NOT_CONTROLLER},
            ],
            "validations": [
                {
                    "expression": f"{_DELETING} || (has(object.metadata.annotations)"
                    f" && {_KEY} in object.metadata.annotations)",
                    "message": "PodWarden writes nothing without its fence.",
                    "reason": "Forbidden",
                },
                {
                    "expression": f"int({_CARRIED}) >= {fence}",
                    "message": OUTDATED,
                    "reason": "Forbidden",
                },
                {  # the fence itself only rises, and says what its writer is
                    "expression": f"!(request.resource.resource == 'configmaps' && request.name == '{FENCE_MAP}'"
                    f" && request.operation == 'UPDATE')"
                    f" || object.data.fence == object.metadata.annotations[{_KEY}]",
                    "message": "The fence of the cluster is the fence of its leader.",
                    "reason": "Forbidden",
                },
            ],
        },
    }


def _binding() -> dict[str, Any]:
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": FENCE_POLICY},
        "spec": {"policyName": FENCE_POLICY, "validationActions": ["Deny"]},
    }
