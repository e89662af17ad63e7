"""The fence in the cluster: writes of a PodWarden that no longer leads are refused by the API server. Pure.

One ConfigMap holds the number of the leader; a new leader raises it before it writes anything else. PodWarden's
writes are known by their field manager and carry their fence as an annotation; people, kubelets and controllers
write under other names and are never asked. A delete has no annotation of its own: PodWarden first writes its fence
into the object and then deletes exactly that version of it, so that a delete of an outdated leader meets an object
that a newer one has marked. The API server reads the ConfigMap with a few milliseconds of delay: after raising it,
a leader waits until `probe_object(fence - 1)` is refused.

An API server whose policy was deleted and made again goes on with the number that it knew then: it never starts a
second watch for ConfigMaps. A leader that finds its own number not enforced writes it into the policy itself, as a
floor. A number that is none counts as no fence; it must not lock everybody out.

Where the ConfigMap was deleted, every write of PodWarden is refused (422, "no params found") until it is made again.
"""

from __future__ import annotations

from typing import Any

from podwarden.kube.labels import FENCE, FENCE_MAP, FENCE_POLICY, MANAGER, NAMESPACE, PREFIX

PROBE = "podwarden-fence-probe"
FLOOR = f"{PREFIX}floor"  # annotation of the policy: the number that it enforces by itself
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
_CURRENT = (
    "(has(params.data) && 'fence' in params.data && params.data.fence.matches('^[0-9]{1,18}$')"
    " ? int(params.data.fence) : 0)"
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


def fence_objects() -> tuple[dict[str, Any], ...]:
    """The policy and its binding, in apply order; the ConfigMap of `fence_map` must exist before."""
    return fence_policy(0), _binding()


def fence_policy(floor: int) -> dict[str, Any]:
    """floor: lower numbers are refused whatever the ConfigMap says."""
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": FENCE_POLICY, "annotations": {FLOOR: str(floor)}},
        "spec": {
            "failurePolicy": "Fail",
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {
                # Whoever finds the fence deleted may make it anew: otherwise nothing could be written again.
                "excludeResourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["*"],
                        "operations": ["CREATE"],
                        "resources": ["configmaps"],
                        "resourceNames": [FENCE_MAP],
                    }
                ],
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
                    "expression": f"int({_CARRIED}) >= {_CURRENT} && int({_CARRIED}) >= {floor}",
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
        "spec": {
            "policyName": FENCE_POLICY,
            "paramRef": {
                "name": FENCE_MAP,
                "namespace": NAMESPACE,
                "parameterNotFoundAction": "Deny",
            },
            "validationActions": ["Deny"],
        },
    }
