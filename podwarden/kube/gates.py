"""Opening the gate of one task of an array. Pure.

Each task's pod waits behind a scheduling gate. A frame number is first + completion index, a sum that Kubernetes
cannot put into an environment variable, and a pod's environment never changes. But annotations do: the variable
PW_INDEX_VALUE reads annotation `podwarden.io/index-value`, which is set by the same patch that opens the gate. A
task can therefore not start without its number, whatever its image contains.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from podwarden.kube.labels import FENCE, PREFIX
from podwarden.kube.render_pod import INDEX_VALUE

FIRST = f"{PREFIX}first-index"  # annotation of an array's pods: number of its first task
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def index_value(pod: Mapping[str, Any]) -> int | None:
    """The task's number as the user counts (a frame), None for a pod of no array."""
    annotations = pod["metadata"].get("annotations") or {}
    labels = pod["metadata"].get("labels") or {}
    index = annotations.get(COMPLETION_INDEX, labels.get(COMPLETION_INDEX))
    if index is None or FIRST not in annotations:
        return None
    return int(annotations[FIRST]) + int(index)


def opening(pod: Mapping[str, Any], node: str, fence: int) -> dict[str, Any]:
    """A JSON merge patch: PodWarden's gates away, the pod tied to `node`, its number and the fence set.

    It carries the resource version, so that a pod that changed meanwhile answers 409 and is read again.
    """
    spec = pod["spec"]
    number = index_value(pod)
    annotations = {FENCE: str(fence)}
    if number is not None:
        annotations[INDEX_VALUE] = str(number)
    gates = [g for g in spec.get("schedulingGates") or () if not g["name"].startswith(PREFIX)]
    return {
        "metadata": {
            "resourceVersion": pod["metadata"]["resourceVersion"],
            "annotations": annotations,
        },
        "spec": {
            "schedulingGates": gates or None,
            "affinity": {"nodeAffinity": {_REQUIRED: _tied(spec.get("affinity") or {}, node)}},
        },
    }


def _tied(affinity: Mapping[str, Any], node: str) -> dict[str, Any]:
    """Every alternative that the pod has, each narrowed to the node: the API lets terms only grow."""
    required = (affinity.get("nodeAffinity") or {}).get(_REQUIRED) or {}
    terms = copy.deepcopy(list(required.get("nodeSelectorTerms") or ())) or [{}]
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    for term in terms:
        fields = term.setdefault("matchFields", [])
        if here not in fields:
            fields.append(here)
    return {"nodeSelectorTerms": terms}
