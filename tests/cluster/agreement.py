"""Whether what PodWarden's API says and what the API server holds are the same, object by object."""

from __future__ import annotations

from collections import Counter

from churn import Expected
from plant import NAMESPACE, OWNED, Plant
from rawapi import Json

ID = "podwarden.io/workload"
REVISION = "podwarden.io/revision"
INDEX = "batch.kubernetes.io/job-completion-index"
_IN = f"namespaces/{NAMESPACE}"


def disagreements(plant: Plant, workloads: list[Json]) -> list[str]:
    """Asked when everything is at rest. workloads: all, as PodWarden shows them."""
    deployments = _by_id(plant.raw.items(f"/apis/apps/v1/{_IN}/deployments"))
    jobs = _by_id(plant.raw.items(f"/apis/batch/v1/{_IN}/jobs"))
    pods = _by_id(plant.pods())
    devices = _devices(plant)
    found = []
    for one in workloads:
        mine = _Seen(
            deployments.get(one["id"], []),
            jobs.get(one["id"], []),
            [p for p in pods.get(one["id"], []) if p["status"]["phase"] in {"Pending", "Running"}],
        )
        where = {d for p in mine.live for d in devices.get(p["metadata"]["uid"], [])}
        found += [f"{one['name']} ({one['state']}): {text}" for text in _of(one, mine, where)]
    known = {one["id"] for one in workloads}
    for path in OWNED:
        for item in plant.raw.items(path, labelSelector=ID):
            if item["metadata"]["labels"][ID] not in known:
                found.append(f"{item['metadata']['name']} ({path}) belongs to nobody")
    return found


class _Seen:
    def __init__(self, deployments: list[Json], jobs: list[Json], live: list[Json]) -> None:
        self.deployments = deployments
        self.jobs = jobs
        self.live = live
        self.ready = [p for p in live if _ready(p) and "deletionTimestamp" not in p["metadata"]]


def _of(one: Json, seen: _Seen, devices: set[str]) -> list[str]:
    wrong = []
    if len(seen.deployments) > 1 or len(seen.jobs) > 1:
        wrong.append("it exists twice")
    state, service = one["state"], one["kind"] == "service"
    if state == "running" and service:
        replicas = int(one["spec"].get("replicas", 1))
        if len(seen.live) != replicas or len(seen.ready) != replicas:
            wrong.append(f"{len(seen.ready)} of {len(seen.live)} copies ready, {replicas} wanted")
        revisions = {p["metadata"]["labels"][REVISION] for p in seen.live}
        if revisions != {str(one["revision"])}:
            wrong.append(f"runs revision {revisions}, shown is {one['revision']}")
        shown = {d["uuid"] for d in one["devices"]}
        if shown != devices:
            wrong.append(f"shows GPUs {sorted(shown)}, holds {sorted(devices)}")
        nodes = {p["spec"]["nodeName"] for p in seen.live}
        if nodes != set(one["nodes"]):
            wrong.append(f"shown on {one['nodes']}, runs on {sorted(nodes)}")
    if state in {"queued", "stopped", "succeeded", "failed"}:
        if seen.live:
            wrong.append(f"{len(seen.live)} copies are alive")
        if any(d["spec"]["replicas"] for d in seen.deployments):
            wrong.append("copies are still wanted in the cluster")
    if state in {"queued", "stopped"} and seen.jobs:
        wrong.append("its job is still in the cluster")
    if state == "succeeded":
        conditions = [c for j in seen.jobs for c in j["status"].get("conditions", [])]
        if not any(c["type"] == "Complete" and c["status"] == "True" for c in conditions):
            wrong.append("the cluster does not call it complete")
    return wrong


def counted_wrong(
    book: dict[str, Expected], workloads: list[Json], ended: list[Json], plant: Plant
) -> list[str]:
    """Lost or doubled: each accepted workload once, each task's success once in each run.

    ended: every pod that was ever seen to have succeeded.
    """
    names = Counter(one["name"] for one in workloads)
    wanted = {e.name for e in book.values() if not e.deleted}
    wrong = [f"{name} is there {n} times" for name, n in names.items() if n > 1]
    wrong += [f"{name} is lost" for name in sorted(wanted - set(names))]
    wrong += [f"{name} was deleted and is there" for name in sorted(set(names) - wanted)]
    once = Counter(
        (_job_uid(pod), (pod["metadata"].get("annotations") or {}).get(INDEX, ""))
        for pod in ended
        if _job_uid(pod)
    )
    wrong += [
        f"task {index} of job {uid} succeeded {n} times"
        for (uid, index), n in once.items()
        if n > 1
    ]
    runs: dict[str, set[str]] = {}
    for pod in ended:
        if _job_uid(pod) and ID in (pod["metadata"].get("labels") or {}):
            runs.setdefault(pod["metadata"]["labels"]["podwarden.io/name"], set()).add(
                _job_uid(pod)
            )
    for name, uids in runs.items():
        if name in book and len(uids) > book[name].runs and not book[name].unsure:
            wrong.append(f"{name} ran {len(uids)} times, asked for {book[name].runs} times")
    jobs = {j["metadata"]["name"]: j for j in plant.raw.items(f"/apis/batch/v1/{_IN}/jobs")}
    for one in workloads:
        expected = book.get(one["name"])
        if expected is not None:
            wrong += _result(one, expected, jobs.get(one["name"]))
    return wrong


def _result(one: Json, expected: Expected, job: Json | None) -> list[str]:
    if expected.kind == "service" or expected.unsure:
        return []
    state = "stopped" if expected.stopped else "failed" if expected.fails else "succeeded"
    allowed = {state, "succeeded", "failed"} if expected.stopped else {state}
    wrong = []
    if one["state"] not in allowed:
        why = (one["reason"] or {}).get("text", "")
        wrong.append(f"{one['name']} is {one['state']} instead of {state}: {why}")
    if one["state"] == "succeeded" and job is not None:
        done = int(job["status"].get("succeeded", 0))
        if done != expected.tasks:
            wrong.append(f"{one['name']}: {done} of {expected.tasks} tasks succeeded")
    return wrong


def _job_uid(pod: Json) -> str:
    owners = pod["metadata"].get("ownerReferences") or []
    return next((o["uid"] for o in owners if o["kind"] == "Job"), "")


def _ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _by_id(items: list[Json]) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = {}
    for item in items:
        key = (item["metadata"].get("labels") or {}).get(ID)
        if key:
            found.setdefault(key, []).append(item)
    return found


def _devices(plant: Plant) -> dict[str, list[str]]:
    """GPUs by the uid of the pod that holds them."""
    held: dict[str, list[str]] = {}
    for claim in plant.raw.items(f"/apis/resource.k8s.io/v1/{_IN}/resourceclaims"):
        status = claim.get("status", {})
        results = (status.get("allocation") or {}).get("devices", {}).get("results", [])
        for consumer in status.get("reservedFor", []):
            held.setdefault(consumer["uid"], []).extend(r["device"] for r in results)
    return held
