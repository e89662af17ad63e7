"""The sections of a workload file: GPU request, ports, volumes, health, job. Names and forms they share."""

from __future__ import annotations

import re
from typing import Any

from podwarden.domain.check import Section, join, show
from podwarden.domain.inventory import MEMORY_STEP, short_model
from podwarden.domain.request import OverBudget, Request, Sharing
from podwarden.domain.units import SIZE_FIX, parse_duration, parse_size, parse_vram
from podwarden.domain.workload import Expose, HealthCheck, JobSpec, Port, Volume, VolumeKind

GPU_KEYS = ("count", "vram", "sharing", "model", "compute", "encoder_sessions", "over_budget")
PORT_KEYS = ("name", "port", "expose", "protocol")
VOLUME_KEYS = ("name", "path", "kind", "size", "storage", "subpath", "read_only")
HEALTH_KEYS = ("http", "tcp", "command", "startup", "period")
JOB_KEYS = ("array", "parallelism", "gang", "retries", "time_limit")

MOST_GPUS = 32
MOST_TASKS = 100_000
MOST_GANG = 256
MOST_TEXT = 128 * 1024  # bytes of one variable or argument: what Linux passes to a program

LABEL = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?", re.ASCII)
PORT_NAME = re.compile(r"(?=.{1,15}\Z)[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
OBJECT = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?", re.ASCII)
MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+()/-]{0,63}", re.ASCII)
COMPUTE = re.compile(r"(>=|==|)\s*(\d{1,2})(?:\.(\d{1,2}))?", re.ASCII)
ARRAY = re.compile(r"(\d{1,18})-(\d{1,18})", re.ASCII)
ABSOLUTE = re.compile(r"/[^:]*")
DEVICE = re.compile(r"/dev/[A-Za-z0-9][A-Za-z0-9_./:+-]*", re.ASCII)

NAME_FIX = "lower-case letters, digits and hyphens, starting with a letter, at most {most}"
OBJECT_FIX = "a name of lower-case letters, digits, hyphens and dots"
MODEL_FIX = "a GPU model such as RTX 3090"
COMPUTE_FIX = 'a compute capability such as ">=8.9" or "8.6"'
ARRAY_FIX = "first-last such as 1-250, the first not above the last"
_COUNT_FIX = (
    f"a whole number of GPUs from 1 to {MOST_GPUS}; leave gpu out for work that needs no GPU"
)
_NO_PATHS = ("/dev", "/proc", "/sys")


def label(section: Section, key: str, most: int, *, required: bool = False) -> str:
    """A DNS label of at most `most` characters."""
    text = section.text(key)
    if not text:
        if required and not section.problems.has(join(section.path, key)):
            section.refuse(key, "is missing: give " + NAME_FIX.format(most=most))
        return ""
    if len(text) > most or not LABEL.fullmatch(text):
        fix = NAME_FIX.format(most=most)
        better = re.sub(r"[^a-z0-9]+", "-", text[:most].lower()).strip("-")
        if better != text and LABEL.fullmatch(better):
            fix += f", such as {better}"
        section.refuse(key, fix)
        return ""
    return text


def read_gpu(parent: Section) -> Request | None:
    gpu = parent.section("gpu", GPU_KEYS)
    if gpu is None:
        return None
    sharing = gpu.choice("sharing", {s.value: s for s in Sharing}, Sharing.DEDICATED)
    count = gpu.whole("count", 1, MOST_GPUS, 1, _COUNT_FIX)
    vram = gpu.parsed("vram", parse_vram)
    if sharing is Sharing.SHARED:
        if not gpu.has("vram"):
            gpu.refuse("vram", "a shared GPU needs a budget: add vram such as 6GB")
        if count > 1:
            gpu.refuse("count", "a shared workload uses one GPU: count 1, or sharing: dedicated")
        if vram is not None:  # budgets are charged in whole steps
            vram = -(-vram // MEMORY_STEP) * MEMORY_STEP
    return Request(
        count=count,
        vram_mib=vram,
        sharing=sharing,
        model=_models(gpu),
        compute=_compute(gpu),
        encoder_sessions=gpu.whole("encoder_sessions", 0, 64, 0),
        over_budget=gpu.choice("over_budget", {o.value: o for o in OverBudget}, OverBudget.RESTART),
    )


def _models(gpu: Section) -> tuple[str, ...]:
    if isinstance(gpu.data.get("model"), (list, tuple)):
        given = gpu.names("model", 32, MODEL, MODEL_FIX)
    else:
        one = gpu.match("model", MODEL, MODEL_FIX)
        given = (one,) if one else ()
    names: list[str] = []
    for name in given:
        short = model_name(name)
        if short not in names:
            names.append(short)
    return tuple(names)


def model_name(text: str) -> str:
    """`NVIDIA GeForce RTX 3090` -> `RTX 3090`, also when the vendor is written twice."""
    short = short_model(text)
    while short != text:
        text, short = short, short_model(short)
    return short


def _compute(gpu: Section) -> str:
    """Canonical: `>=8.9` or `8.6`."""
    text = gpu.text("compute").strip()
    if not text:
        return ""
    found = COMPUTE.fullmatch(text)
    if not found:
        gpu.refuse("compute", COMPUTE_FIX)
        return ""
    least = ">=" if found[1] == ">=" else ""
    return f"{least}{int(found[2])}.{int(found[3] or 0)}"


def read_ports(parent: Section) -> tuple[Port, ...]:
    ports: list[Port] = []
    for entry in parent.sections("ports", PORT_KEYS, 32):
        number = _port(entry, "port", required=True)
        name = entry.match("name", PORT_NAME, "at most 15 lower-case letters, digits and hyphens")
        if name and not any(c.isalpha() for c in name):
            entry.refuse("name", "a name with at least one letter")
        name = name or f"port-{number}"
        protocol = entry.choice("protocol", {"TCP": "TCP", "UDP": "UDP"}, "TCP")
        if any(p.name == name for p in ports) and number:
            entry.refuse("name", f"two ports are called {name}: give each its own name")
        if any((p.port, p.protocol) == (number, protocol) for p in ports) and number:
            entry.refuse("port", f"port {number} is listed twice: keep one")
        expose = entry.choice("expose", {e.value: e for e in Expose}, Expose.CLUSTER)
        ports.append(Port(name, number, expose, protocol))
    return tuple(ports)


def _port(section: Section, key: str, *, required: bool) -> int:
    if required and not section.has(key):
        section.refuse(key, "is missing: give a port from 1 to 65535")
    return section.whole(key, 1, 65535, 0, "a port from 1 to 65535")


def read_volumes(parent: Section) -> tuple[Volume, ...]:
    volumes: list[Volume] = []
    for entry in parent.sections("volumes", VOLUME_KEYS, 20):
        name = label(entry, "name", 20, required=True)
        path = _volume_path(entry)
        if name and any(v.name == name for v in volumes):
            entry.refuse("name", f"two volumes are called {name}: give each its own name")
        if path and any(v.path == path for v in volumes):
            entry.refuse("path", "another volume has this path: give each its own")
        volumes.append(_volume(entry, name, path))
    return tuple(volumes)


def _volume(entry: Section, name: str, path: str) -> Volume:
    kinds = {k.value: k for k in VolumeKind}
    kind = entry.choice("kind", kinds, VolumeKind.SCRATCH)
    if not entry.text("kind"):
        entry.refuse("kind", "is missing: one of " + ", ".join(kinds))
    size = entry.parsed("size", parse_size)
    storage = entry.match("storage", OBJECT, OBJECT_FIX, most=63)
    subpath = _subpath(entry)
    read_only = entry.flag("read_only")
    if entry.good("kind"):
        _fitting(entry, kind)
    return Volume(name, path, kind, size, storage, subpath, read_only)


def _fitting(entry: Section, kind: VolumeKind) -> None:
    """Which keys go with which kind of volume."""
    if kind is VolumeKind.STORAGE:
        if not entry.text("storage"):
            entry.refuse("storage", "is missing: the name of a storage")
        if entry.has("size"):
            entry.refuse("size", "a storage has its own size: leave size out")
        return
    for key in ("storage", "subpath", "read_only"):
        if entry.data.get(key) not in (None, "", False):
            entry.refuse(key, f"goes with kind: storage only, this one is {kind}")
    if kind is VolumeKind.DISK and not entry.data.get("size"):
        entry.refuse("size", "is missing: a disk needs " + SIZE_FIX)


def _volume_path(entry: Section) -> str:
    text = entry.text("path")
    if not text:
        if not entry.problems.has(join(entry.path, "path")):
            entry.refuse("path", "is missing: the folder inside the container, such as /data")
        return ""
    path = text.rstrip("/")
    parts = path.split("/")
    if not ABSOLUTE.fullmatch(path) or any(p in ("", ".", "..") for p in parts[1:]):
        entry.refuse("path", "an absolute path such as /data, without .. and without a colon")
        return ""
    if any(path == bad or path.startswith(bad + "/") for bad in _NO_PATHS):
        entry.refuse("path", "a folder outside /dev, /proc and /sys; use shm for shared memory")
        return ""
    return path


def _subpath(entry: Section) -> str:
    text = entry.text("subpath").strip("/")
    if text and any(part in ("", ".", "..") for part in text.split("/")):
        entry.refuse("subpath", "a folder inside the storage such as films/new, without ..")
        return ""
    return text


def read_devices(parent: Section) -> tuple[str, ...]:
    devices = parent.names("devices", 16, DEVICE, "a device path such as /dev/dri")
    for place, device in enumerate(devices):
        path = join(join(parent.path, "devices"), place)
        if any(part in ("", ".", "..") for part in device.split("/")[1:]):
            parent.problems.add(path, show(device), "a device path such as /dev/dri, without ..")
        elif device.startswith(("/dev/nvidia", "/dev/shm")):  # noqa: S108 - a refusal
            parent.problems.add(
                path, show(device), "GPUs come from gpu and shared memory from shm: leave it out"
            )
    return devices


def read_health(parent: Section) -> HealthCheck | None:
    health = parent.section("health", HEALTH_KEYS)
    if health is None:
        return None
    given = [key for key in ("http", "tcp", "command") if health.has(key)]
    if len(given) != 1:
        health.problems.add(
            health.path, " and ".join(given), "give exactly one of http, tcp and command"
        )
    port, path = None, ""
    http, tcp = health.section("http", ("path", "port")), health.section("tcp", ("port",))
    if http is not None:
        port, path = _health_port(parent, http), http.text("path", "/")
        if not path.startswith("/") or " " in path:
            http.refuse("path", "a path such as /health")
    elif tcp is not None:
        port = _health_port(parent, tcp)
    command = tuple(health.texts("command", 64, lines=True, longest=MOST_TEXT))
    if given == ["command"] and not command and health.good("command"):
        health.refuse("command", "a command such as [cat, /tmp/ready]")
    startup = health.parsed("startup", parse_duration) or 600
    period = health.parsed("period", parse_duration) or 10
    if startup > 86_400:
        health.refuse("startup", "at most 24h")
    if period > 3_600:
        health.refuse("period", "at most 1h")
    return HealthCheck(port, path, command, startup, period)


def _health_port(parent: Section, check: Section) -> int | None:
    """The port named, or the only one the workload has."""
    if check.has("port"):
        return _port(check, "port", required=True) or None
    only: Any = parent.data.get("ports")
    if isinstance(only, (list, tuple)) and len(only) == 1 and isinstance(only[0], dict):
        number = only[0].get("port")
        return number if isinstance(number, int) else None  # a wrong one is named in its place
    return _port(check, "port", required=True) or None


def read_job(parent: Section) -> JobSpec:
    job = parent.section("job", JOB_KEYS)
    if job is None:
        return JobSpec()
    array = _array(job)
    gang = job.flag("gang")
    parallelism = None
    if job.data.get("parallelism") not in (None, "", "max"):
        fix = "max, or a whole number of tasks at the same time"
        parallelism = job.whole("parallelism", 1, MOST_TASKS, 1, fix)
        if gang:
            job.refuse("parallelism", "a gang starts all its tasks at once: leave parallelism out")
        elif not job.has("array"):
            job.refuse("parallelism", "goes with array: add array such as 1-250, or leave it out")
    if gang and not job.has("array"):
        job.refuse("gang", "a gang needs its members: add array such as 0-3")
    elif gang and array and array[1] - array[0] >= MOST_GANG:
        job.refuse("array", f"a gang has at most {MOST_GANG} tasks")
    return JobSpec(
        array=array,
        parallelism=parallelism,
        gang=gang,
        retries=job.whole("retries", 0, 100, 2),
        time_limit_s=job.parsed("time_limit", parse_duration),
    )


def _array(job: Section) -> tuple[int, int] | None:
    text = job.text("array").strip()
    if not text:
        return None
    fault = array_fault(text)
    if fault:
        job.refuse("array", fault)
        return None
    first, last = text.split("-")
    return int(first), int(last)


def array_fault(text: str) -> str:
    """What is wrong with `first-last` as the tasks of an array, or ""."""
    found = ARRAY.fullmatch(text)
    if not found or int(found[1]) > int(found[2]):
        return ARRAY_FIX
    tasks = int(found[2]) - int(found[1]) + 1
    if tasks > MOST_TASKS:
        return f"{tasks:,} tasks are more than the limit of {MOST_TASKS:,} per job"
    if int(found[2]) >= 10**9:
        return "numbers below 1,000,000,000"
    return ""
