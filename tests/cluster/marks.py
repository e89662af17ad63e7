"""What must not change: every object of PodWarden's with its version, every pod with its identity and restarts."""

from __future__ import annotations

from plant import NAMESPACE, OWNED, Plant

_IN = f"namespaces/{NAMESPACE}"


def versions(plant: Plant, kinds: tuple[str, ...] = ()) -> dict[str, str]:
    """Resource versions by path; kinds: only these (`deployments`)."""
    found = {}
    for path in [*OWNED, "/apis/resource.k8s.io/v1/devicetaintrules"]:
        kind = path.rsplit("/", 1)[1]
        if kinds and kind not in kinds:
            continue
        for item in plant.raw.items(path):
            meta = item["metadata"]
            if "podwarden.io/workload" in (meta.get("labels") or {}):
                found[f"{kind}/{meta['name']}"] = meta["resourceVersion"]
    return found


def written(plant: Plant, kinds: tuple[str, ...] = ("deployments", "jobs")) -> dict[str, str]:
    """When PodWarden last changed what it asks for, by object; what controllers note in its status does not count."""
    found = {}
    for path in OWNED:
        kind = path.rsplit("/", 1)[1]
        for item in plant.raw.items(path) if kind in kinds else ():
            meta = item["metadata"]
            times = [m["time"] for m in meta["managedFields"] if m["manager"] == "podwarden"]
            found[f"{kind}/{meta['name']}"] = f"{meta['uid']} {meta['generation']} {max(times)}"
    return found


def lives(plant: Plant) -> dict[str, tuple[str, int]]:
    """Pods by name: uid and restarts."""
    return {
        pod["metadata"]["name"]: (
            pod["metadata"]["uid"],
            sum(c["restartCount"] for c in pod["status"].get("containerStatuses", [])),
        )
        for pod in plant.pods()
    }


def fence(plant: Plant) -> int:
    found = plant.raw.get(f"/api/v1/{_IN}/configmaps/podwarden-fence")
    return int(found["data"]["fence"])
