"""What matters of a Pod, read once when it arrives. Pure.

Most pods of a cluster are somebody else's: of those only what they take from a node is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Any

from podwarden.domain.observation import Instance
from podwarden.kube.labels import EXTENDED_RESOURCE, NAME, NAMESPACE, REVISION, WORKLOAD
from podwarden.kube.quantity import MIB, parse_quantity

Json = Mapping[str, Any]

INDEX = "batch.kubernetes.io/job-completion-index"
_ENDED = ("Succeeded", "Failed")
_DEFAULT_SCHEDULER = ("", "default-scheduler")


@dataclass(frozen=True, slots=True)
class Demand:
    """A foreign pod's wish for whole GPUs that nothing has answered yet."""

    count: int
    selector: tuple[tuple[str, str], ...]
    terms: tuple[
        tuple[tuple[str, str, tuple[str, ...]], ...], ...
    ]  # (key, operator, values), any term


@dataclass(frozen=True, slots=True)
class PodFacts:
    """cpu_milli, memory_mib: as the scheduler counts them. gpus: classic whole GPUs asked for.

    claims: names of its claims that exist; claims_missing: some are still to be made. instance: only of
    PodWarden's own, without devices.
    """

    namespace: str
    name: str
    uid: str
    node: str
    ended: bool
    terminating: bool
    cpu_milli: int
    memory_mib: int
    gpus: int
    created_at: datetime | None
    claims: tuple[str, ...] = ()
    claims_missing: bool = False
    workload: str = ""
    workload_name: str = ""
    endless: bool = True
    ends_by: datetime | None = None
    priority: int = 0
    demand: Demand | None = None
    instance: Instance | None = None
    stray: bool = False  # nothing owns it: nothing would remove it
    opening: Json | None = None  # a gated pod of ours, as far as opening its gate needs it

    @property
    def takes_room(self) -> bool:
        return bool(self.node) and not self.ended


@lru_cache(maxsize=4096)
def amount(text: str) -> Fraction:
    try:
        return parse_quantity(text)
    except ValueError:
        return Fraction(0)


@lru_cache(maxsize=8192)
def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def when(text: object) -> datetime | None:
    return moment(text) if isinstance(text, str) and text else None


def read_pod(pod: Json) -> PodFacts:
    meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    labels = meta.get("labels") or {}
    ours = labels.get(WORKLOAD, "") if meta.get("namespace") == NAMESPACE else ""
    cpu, memory, gpus = _requests(spec)
    claims, missing = _claims(spec, status)
    owner: Json = next((o for o in meta.get("ownerReferences") or () if o.get("controller")), {})
    return PodFacts(
        namespace=meta.get("namespace", ""),
        name=meta["name"],
        uid=meta["uid"],
        node=spec.get("nodeName", ""),
        ended=status.get("phase") in _ENDED,
        terminating=bool(meta.get("deletionTimestamp")),
        cpu_milli=math.ceil(cpu * 1000),
        memory_mib=math.ceil(memory / MIB),
        gpus=math.ceil(gpus),
        created_at=when(meta.get("creationTimestamp")),
        claims=claims,
        claims_missing=missing,
        workload=ours,
        workload_name=labels.get(NAME, "") if ours else "",
        endless=_endless(spec, owner.get("kind") == "Job" and bool(ours)),
        ends_by=_ends_by(meta, spec, status),
        priority=spec.get("priority") or 0,
        demand=None if ours else _demand(meta, spec, status, math.ceil(gpus)),
        instance=read_instance(pod, ours) if ours else None,
        stray=not owner,
        opening=_opening(meta, spec) if ours and spec.get("schedulingGates") else None,
    )


def _requests(spec: Json) -> tuple[Fraction, Fraction, Fraction]:
    """CPU, memory in bytes and classic GPUs: the larger of what runs and what any start-up step needs."""
    whole = (spec.get("resources") or {}).get("requests") or {}
    cpu, memory, gpus = (_effective(spec, name) for name in ("cpu", "memory", EXTENDED_RESOURCE))
    if "cpu" in whole:
        cpu = amount(str(whole["cpu"]))
    if "memory" in whole:
        memory = amount(str(whole["memory"]))
    overhead = spec.get("overhead") or {}
    return (
        cpu + amount(str(overhead.get("cpu", "0"))),
        memory + amount(str(overhead.get("memory", "0"))),
        gpus,
    )


def _effective(spec: Json, resource: str) -> Fraction:
    running = sum((_asked(c, resource) for c in spec.get("containers") or ()), Fraction(0))
    beside = peak = Fraction(0)
    for container in spec.get("initContainers") or ():
        asked = _asked(container, resource)
        if container.get("restartPolicy") == "Always":
            beside += asked
            peak = max(peak, beside)
        else:
            peak = max(peak, beside + asked)
    return max(running + beside, peak)


def _asked(container: Json, resource: str) -> Fraction:
    resources = container.get("resources") or {}
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    return amount(str(requests.get(resource, limits.get(resource, "0"))))


def _claims(spec: Json, status: Json) -> tuple[tuple[str, ...], bool]:
    made = {
        s["name"]: s.get("resourceClaimName") for s in status.get("resourceClaimStatuses") or ()
    }
    names, missing = [], False
    for asked in spec.get("resourceClaims") or ():
        if asked.get("resourceClaimName"):
            names.append(asked["resourceClaimName"])
        elif asked["name"] not in made:
            missing = True
        elif made[asked["name"]]:
            names.append(made[asked["name"]])
    extended = (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    return (*names, *([extended] if extended else ())), missing


def _endless(spec: Json, job: bool) -> bool:
    return not job and not spec.get("activeDeadlineSeconds")


def _ends_by(meta: Json, spec: Json, status: Json) -> datetime | None:
    """The latest moment the cluster lets it live: its limit, or its deletion; grace included."""
    going = when(meta.get("deletionTimestamp"))
    limit = spec.get("activeDeadlineSeconds")
    start = when(status.get("startTime")) or when(meta.get("creationTimestamp"))
    if going is not None or not limit or start is None:
        return going
    return start + timedelta(seconds=limit + (spec.get("terminationGracePeriodSeconds") or 30))


def _demand(meta: Json, spec: Json, status: Json, gpus: int) -> Demand | None:
    """Only what the cluster's scheduler would place the moment a GPU is free."""
    waits = status.get("phase", "Pending") == "Pending" and not spec.get("nodeName")
    blocked = (
        meta.get("deletionTimestamp")
        or spec.get("schedulingGates")
        or spec.get("schedulerName", "") not in _DEFAULT_SCHEDULER
        or (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    )
    if not gpus or not waits or blocked:
        return None
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    return Demand(
        count=gpus,
        selector=tuple(sorted((spec.get("nodeSelector") or {}).items())),
        terms=tuple(_term(term) for term in affinity.get("nodeSelectorTerms") or ()),
    )


def _term(term: Json) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """MatchFields knows one field, the node's name; it is written as the label that no node has."""
    parts = [
        (e["key"], e["operator"], tuple(e.get("values") or ()))
        for e in term.get("matchExpressions") or ()
    ]
    parts += [
        ("", e["operator"], tuple(e.get("values") or ())) for e in term.get("matchFields") or ()
    ]
    return tuple(parts)


def demand_nodes(
    demand: Demand, nodes: Iterable[tuple[str, Mapping[str, str]]]
) -> frozenset[str] | None:
    """Names of the nodes that its selectors allow; None = any."""
    if not demand.selector and not demand.terms:
        return None
    return frozenset(
        name
        for name, labels in nodes
        if all(labels.get(key) == value for key, value in demand.selector)
        and (not demand.terms or any(_matches(term, name, labels) for term in demand.terms))
    )


def _matches(
    term: Sequence[tuple[str, str, tuple[str, ...]]], name: str, labels: Mapping[str, str]
) -> bool:
    return bool(term) and all(
        _OPERATORS[operator](name if key == "" else labels.get(key), values)
        for key, operator, values in term
    )


def _compares(value: str | None, bound: tuple[str, ...], sign: int) -> bool:
    try:
        return value is not None and (int(value) - int(bound[0])) * sign > 0
    except (ValueError, IndexError):
        return False


_OPERATORS: Mapping[str, Callable[[str | None, tuple[str, ...]], bool]] = {
    "In": lambda value, values: value in values,
    "NotIn": lambda value, values: value not in values,
    "Exists": lambda value, _values: value is not None,
    "DoesNotExist": lambda value, _values: value is None,
    "Gt": lambda value, values: _compares(value, values, 1),
    "Lt": lambda value, values: _compares(value, values, -1),
}


_OPENING = ("name", "resourceVersion", "labels", "annotations")


def _opening(meta: Json, spec: Json) -> Json:
    return {
        "metadata": {key: meta.get(key) for key in _OPENING},
        "spec": {
            "schedulingGates": spec.get("schedulingGates"),
            "affinity": spec.get("affinity"),
        },
    }


def read_instance(pod: Json, workload: str) -> Instance:
    """One copy of a workload, in the cluster's own words. devices and allocated come from its claims."""
    meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    labels = meta.get("labels") or {}
    conditions = {c["type"]: c for c in status.get("conditions") or ()}
    scheduled = conditions.get("PodScheduled") or {}
    unplaced = scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable"
    phase = str(status.get("phase") or "Pending").lower()
    reason, message = _words(status, conditions)
    if unplaced:
        reason, message = "Unschedulable", str(scheduled.get("message") or "")
    first: Json = next(iter(status.get("containerStatuses") or ()), {})
    index = (meta.get("annotations") or {}).get(INDEX, labels.get(INDEX, ""))
    exit_code = _exit_code(first)
    revision = labels.get(REVISION, "")
    return Instance(
        workload=workload,
        name=meta["name"],
        uid=meta["uid"],
        revision=int(revision) if revision.isdecimal() else 0,
        phase=phase if phase in ("pending", "running", "succeeded", "failed") else "pending",
        node=spec.get("nodeName", ""),
        ready=(conditions.get("Ready") or {}).get("status") == "True",
        gated=bool(spec.get("schedulingGates")),
        terminating=bool(meta.get("deletionTimestamp")),
        index=int(index) if index.isdecimal() else None,
        restarts=int(first.get("restartCount") or 0),
        exit_code=exit_code,
        reason=reason,
        message=message[:1024],
        unschedulable_since=when(scheduled.get("lastTransitionTime")) if unplaced else None,
        created_at=when(meta.get("creationTimestamp")),
        started_at=_started(first) or when(status.get("startTime")),
        ended_at=_ended(status, conditions) if phase in ("succeeded", "failed") else None,
        user_failure=phase == "failed" and _own_fault(meta, status, conditions, exit_code),
    )


def _started(container: Json) -> datetime | None:
    state = container.get("state") or {}
    now = state.get("running") or state.get("terminated") or {}
    return when(now.get("startedAt"))


def _exit_code(container: Json) -> int | None:
    for state in (container.get("state") or {}, container.get("lastState") or {}):
        ended = state.get("terminated")
        if ended is not None and ended.get("exitCode") is not None:
            return int(ended["exitCode"])
    return None


def _ended(status: Json, conditions: Mapping[str, Json]) -> datetime | None:
    ends = [
        when(((c.get("state") or {}).get("terminated") or {}).get("finishedAt"))
        for c in status.get("containerStatuses") or ()
    ]
    known = [end for end in ends if end is not None]
    return max(known) if known else when((conditions.get("Ready") or {}).get("lastTransitionTime"))


_NOT_ITS_FAULT = ("Evicted", "NodeLost", "NodeAffinity", "NodeShutdown", "Terminated", "Preempting", "UnexpectedAdmissionError", "OutOfcpu", "OutOfmemory", "Shutdown")  # fmt: skip


def _own_fault(
    meta: Json, status: Json, conditions: Mapping[str, Json], exit_code: int | None
) -> bool:
    """The program ended it, not the node, the cluster, or a person who deleted the copy: such a one counts as
    failed for a moment, and if it never ran there is nothing that could have failed.
    """
    disrupted = (conditions.get("DisruptionTarget") or {}).get("status") == "True"
    if disrupted or meta.get("deletionTimestamp") or status.get("reason") in _NOT_ITS_FAULT:
        return False
    return exit_code is not None or status.get("reason") == "DeadlineExceeded"


def _words(status: Json, conditions: Mapping[str, Json]) -> tuple[str, str]:
    """Reason and message of what most needs an explanation: an end, a wait, a crash, a failing check."""
    if status.get("reason"):
        return str(status["reason"]), str(status.get("message") or "")
    disrupted = conditions.get("DisruptionTarget") or {}
    if disrupted.get("status") == "True":
        return str(disrupted.get("reason") or ""), str(disrupted.get("message") or "")
    found = ("", "")
    statuses = [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ]
    for container in statuses:
        state, last = container.get("state") or {}, container.get("lastState") or {}
        waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
        before = last.get("terminated") or {}
        if waiting.get("reason"):
            killed = before.get("reason") == "OOMKilled"
            reason = "OOMKilled" if killed else str(waiting["reason"])
            return reason, str(waiting.get("message") or "")
        if ended and ended.get("reason") != "Completed":
            found = (str(ended.get("reason") or "Error"), str(ended.get("message") or ""))
        elif before.get("reason") == "OOMKilled" and not container.get("ready"):
            found = ("OOMKilled", str(before.get("message") or ""))
    return found
