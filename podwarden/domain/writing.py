"""A spec back into the shortest workload file that means the same."""

from __future__ import annotations

from typing import Any

from podwarden.domain.request import Request
from podwarden.domain.units import GIB
from podwarden.domain.workload import (
    Expose,
    HealthCheck,
    JobSpec,
    Kind,
    Port,
    Priority,
    Spec,
    Update,
    Volume,
)

PLAIN = Spec(name="", kind=Kind.SERVICE, image="")  # every default of a spec
_PLAIN_HEALTH = HealthCheck()
_PLAIN_JOB = JobSpec()
_PLAIN_REQUEST = Request()


def write_size(mib: int) -> str:
    return f"{mib // GIB}Gi" if mib % GIB == 0 else f"{mib}Mi"


def write_vram(mib: int) -> str:
    return f"{mib // GIB}GB" if mib % GIB == 0 else f"{mib}Mi"


def write_cpu(milli: int) -> int | str:
    return milli // 1000 if milli % 1000 == 0 else f"{milli}m"


def write_duration(seconds: int) -> str:
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number)


def write_spec(spec: Spec) -> dict[str, Any]:
    job = _job(spec.job) if spec.job is not None else None
    document: dict[str, Any] = {
        "name": spec.name,
        "kind": spec.kind.value,
        "cluster": spec.cluster,
        "image": spec.image,
        "image_pull_secret": spec.image_pull_secret,
        "command": list(spec.command),
        "args": list(spec.args),
        "gpu": _gpu(spec.gpu) if spec.gpu is not None else None,
        "resources": {"cpu": write_cpu(spec.cpu_milli), "memory": write_size(spec.memory_mib)},
        "replicas": _unless(spec.replicas, 1),
        "min_replicas": _unless(spec.min_replicas, 1),
        "env": dict(spec.env),
        "secrets": dict(spec.secrets),
        "ports": [_port(port) for port in spec.ports],
        "volumes": [_volume(volume) for volume in spec.volumes],
        "devices": list(spec.devices),
        "host_network": spec.host_network,
        "health": _health(spec.health) if spec.health is not None else None,
        "shm": write_size(spec.shm_mib) if spec.shm_mib is not None else None,
        "priority": spec.priority.word if spec.priority is not Priority.NORMAL else None,
        "preemptible": spec.preemptible,
        "hours": spec.hours,
        "node": spec.node,
        "avoid": list(spec.avoid),
        "update": spec.update.value if spec.update is not Update.AUTO else None,
        "surge_wait": _wait(spec.surge_wait_s, PLAIN.surge_wait_s),
        "idle_stop": _wait(spec.idle_stop_s, None),
        "notify": list(spec.notify),
        "job": job,
        "template": spec.template,
        "annotations": dict(spec.annotations),
    }
    if spec.kind is Kind.SERVICE:
        document.pop("job")
    return _short(document)


def _short(document: dict[str, Any]) -> dict[str, Any]:
    """Without what says nothing: null, empty texts, lists and sections, false."""
    return {key: value for key, value in document.items() if value not in (None, "", [], {}, False)}


def _unless(value: int, default: int) -> int | None:
    return None if value == default else value


def _wait(seconds: int | None, default: int | None) -> str | None:
    return None if seconds is None or seconds == default else write_duration(seconds)


def _gpu(request: Request) -> dict[str, Any]:
    rest = {
        "vram": write_vram(request.vram_mib) if request.vram_mib is not None else None,
        "sharing": request.sharing.value if request.shared else None,
        "model": list(request.model),
        "compute": request.compute,
        "encoder_sessions": _unless(request.encoder_sessions, 0),
        "over_budget": request.over_budget.value
        if request.over_budget is not _PLAIN_REQUEST.over_budget
        else None,
    }
    return {"count": request.count, **_short(rest)}


def _port(port: Port) -> dict[str, Any]:
    document: dict[str, Any] = {"name": port.name, "port": port.port}
    if port.expose is not Expose.CLUSTER:
        document["expose"] = port.expose.value
    if port.protocol != "TCP":
        document["protocol"] = port.protocol
    return document


def _volume(volume: Volume) -> dict[str, Any]:
    return _short(
        {
            "name": volume.name,
            "path": volume.path,
            "kind": volume.kind.value,
            "size": write_size(volume.size_mib) if volume.size_mib is not None else None,
            "storage": volume.storage,
            "subpath": volume.subpath,
            "read_only": volume.read_only,
        }
    )


def _health(health: HealthCheck) -> dict[str, Any]:
    document: dict[str, Any] = {}
    if health.command:
        document["command"] = list(health.command)
    elif health.http_path:
        document["http"] = {"path": health.http_path, "port": health.port}
    else:
        document["tcp"] = {"port": health.port}
    if health.startup_s != _PLAIN_HEALTH.startup_s:
        document["startup"] = write_duration(health.startup_s)
    if health.period_s != _PLAIN_HEALTH.period_s:
        document["period"] = write_duration(health.period_s)
    return document


def _job(job: JobSpec) -> dict[str, Any]:
    return _short(
        {
            "array": f"{job.array[0]}-{job.array[1]}" if job.array is not None else None,
            "parallelism": job.parallelism,
            "gang": job.gang,
            "time_limit": _wait(job.time_limit_s, None),
        }
    ) | ({"retries": job.retries} if job.retries != _PLAIN_JOB.retries else {})
