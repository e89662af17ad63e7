"""The workload file: an untrusted mapping into a `Spec`, and a `Spec` back into its shortest mapping.

`from_document(to_document(spec)) == spec` for every spec that `from_document` made. A mapping comes from
YAML or JSON; its values are None, bool, int, float, str, list and dict. `spec_to_json` and
`spec_from_json` are the same as text, as the store and the cluster keep it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from podwarden.domain.check import Problems, Section, join, show
from podwarden.domain.sections import (
    GPU_KEYS,
    HEALTH_KEYS,
    JOB_KEYS,
    MOST_TEXT,
    OBJECT,
    OBJECT_FIX,
    label,
    read_devices,
    read_gpu,
    read_health,
    read_job,
    read_ports,
    read_volumes,
)
from podwarden.domain.units import parse_cpu, parse_duration, parse_size
from podwarden.domain.workload import Kind, Priority, Spec, Update
from podwarden.domain.writing import PLAIN, write_spec
from podwarden.errors import Invalid

KEYS = (
    "name", "kind", "cluster", "image", "image_pull_secret", "command", "args", "gpu", "resources",
    "replicas", "min_replicas", "env", "secrets", "ports", "volumes", "devices", "host_network", "health", "shm",
    "priority", "preemptible", "hours", "node", "avoid", "update", "surge_wait", "idle_stop",
    "notify", "job", "template", "annotations",
)  # fmt: skip
RESOURCE_KEYS = ("cpu", "memory")
MOST_NAME = 40  # leaves room for what the cluster appends
MOST_TEXTS = 512 * 1024  # bytes of command, args, env and annotations together
MOST_JSON = 4 * 1024 * 1024  # characters of a spec as JSON

_ELSEWHERE = {
    **{key: f"gpu.{key}" for key in GPU_KEYS},
    **{key: f"resources.{key}" for key in RESOURCE_KEYS},
    **{key: f"job.{key}" for key in JOB_KEYS},
    **{key: f"health.{key}" for key in HEALTH_KEYS if key not in KEYS},
    "environment": "env", "gpus": "gpu.count", "shm_size": "shm", "restart": "no restart: services "
    "are always restarted", "limits": "resources", "entrypoint": "command", "port": "ports",
    "volume": "volumes", "healthcheck": "health", "network_mode": "host_network: true (admins)",
}  # fmt: skip
_SERVICE_ONLY = ("replicas", "min_replicas", "update", "surge_wait", "idle_stop")
_HOURS = re.compile(r"([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}", re.ASCII)
_ANNOTATION = re.compile(r"simulator\.podwarden\.io/[a-z0-9](?:[-a-z0-9]{0,40}[a-z0-9])?", re.ASCII)
_RESERVED = {"NVIDIA_VISIBLE_DEVICES": "PodWarden chooses the GPUs: leave it out and use gpu"}
_SIMULATED_FIX = "an annotation starts with simulator.podwarden.io/"

_HOST = re.compile(
    r"(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?|\[[0-9a-f:]{2,39}\])(?::\d{1,5})?", re.ASCII
)
_PART = re.compile(r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*", re.ASCII)
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}", re.ASCII)
IMAGE_FIX = "an image such as ollama/ollama:0.9 or registry.home:5000/team/app@sha256:…"


def from_document(document: Mapping[str, Any]) -> Spec:
    """The spec that a workload file describes; Invalid with every problem, in the order of the file."""
    if not isinstance(document, Mapping):
        raise Invalid.of("workload", show(document), "a section with keys: " + ", ".join(KEYS))
    problems = Problems()
    top = Section(problems, document, "", KEYS, _ELSEWHERE)
    spec = _read(top)
    _check_texts(top, spec)
    if problems.found:
        order = {key: place for place, key in enumerate(document)}
        found = sorted(
            problems.found,
            key=lambda p: order.get(re.split(r"[.\[]", p.field, maxsplit=1)[0], -1),
        )
        raise Invalid(found)
    return spec


def to_document(spec: Spec) -> dict[str, Any]:
    """The canonical workload file: keys in the order of the documentation, what equals a default left out
    (name, kind, image and resources are always there). Values are JSON values.
    """
    return write_spec(spec)


def spec_to_json(spec: Spec) -> str:
    """The canonical workload file as one line of JSON."""
    return json.dumps(to_document(spec), ensure_ascii=False, separators=(",", ":"))


def spec_from_json(text: str) -> Spec:
    """Back from `spec_to_json`; Invalid when the text is no JSON or no workload file."""
    if len(text) > MOST_JSON:
        raise Invalid.of("workload", f"{len(text):,} characters", f"at most {MOST_JSON:,}")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid.of("workload", text[:60], "a workload file as JSON") from error
    return from_document(document)


def image_fault(text: str) -> str:
    """What is wrong with an image reference, or ""."""
    if not text.isascii() or any(c.isspace() for c in text) or len(text) > 512:
        return IMAGE_FIX + ", without spaces"
    name, at, digest = text.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        return "after @ comes sha256: and 64 hexadecimal digits"
    path, tag = name, None
    if ":" in name.rpartition("/")[2]:
        path, _, tag = name.rpartition(":")
    if tag is not None and not _TAG.fullmatch(tag):
        return "after the colon comes a tag of letters, digits, dots, hyphens and underscores"
    return _path_fault(path)


def _path_fault(path: str) -> str:
    parts = path.split("/")
    if len(parts) > 1 and (set(parts[0]) & set(".:") or parts[0] == "localhost"):
        if not _HOST.fullmatch(parts[0]):
            return IMAGE_FIX
        parts = parts[1:]
    if all(_PART.fullmatch(part) for part in parts):
        return ""
    if all(_PART.fullmatch(part.lower()) for part in parts):
        return f"an image name is lower-case: {path.lower()}"
    return IMAGE_FIX


def _read(top: Section) -> Spec:
    kind = _kind(top)
    resources = top.section("resources", RESOURCE_KEYS)
    replicas = top.whole("replicas", 1, 100, 1)
    min_replicas = top.whole("min_replicas", 1, 100, 1)
    if min_replicas > replicas and not top.problems.has("replicas"):
        top.refuse("min_replicas", f"at most replicas, which is {replicas}")
    node = top.match("node", OBJECT, OBJECT_FIX, most=253)
    avoid = top.names("avoid", 64, OBJECT, OBJECT_FIX)
    if node and node in avoid:
        top.refuse("node", "the same node stands in avoid: name it in one of them")
    env = top.pairs(
        "env", _VARIABLE, "a variable name of letters, digits and underscores",
        lines=True, most=1000, longest=MOST_TEXT,
    )  # fmt: skip
    return Spec(
        name=label(top, "name", MOST_NAME, required=True),
        kind=kind,
        image=_image(top),
        cluster=label(top, "cluster", 63),
        image_pull_secret=top.match("image_pull_secret", OBJECT, OBJECT_FIX, most=63),
        command=tuple(top.texts("command", 1000, lines=True, longest=MOST_TEXT)),
        args=tuple(top.texts("args", 1000, lines=True, longest=MOST_TEXT)),
        gpu=read_gpu(top),
        cpu_milli=(resources and resources.parsed("cpu", parse_cpu)) or PLAIN.cpu_milli,
        memory_mib=(resources and resources.parsed("memory", parse_size)) or PLAIN.memory_mib,
        replicas=replicas,
        min_replicas=min_replicas,
        env=tuple(env),
        secrets=_secrets(top, {name for name, _ in env}),
        ports=read_ports(top),
        volumes=read_volumes(top),
        devices=read_devices(top),
        host_network=_host_network(top, replicas),
        health=read_health(top),
        shm_mib=top.parsed("shm", parse_size),
        priority=top.choice("priority", PRIORITIES, Priority.NORMAL),
        preemptible=top.flag("preemptible"),
        hours=_hours(top),
        node=node,
        avoid=avoid,
        update=top.choice("update", {u.value: u for u in Update}, Update.AUTO),
        surge_wait_s=top.parsed("surge_wait", parse_duration) or PLAIN.surge_wait_s,
        idle_stop_s=top.parsed("idle_stop", parse_duration),
        notify=top.names("notify", 16, OBJECT, OBJECT_FIX),
        job=read_job(top) if kind is Kind.JOB else None,
        template=label(top, "template", 63),
        annotations=tuple(
            top.pairs(
                "annotations", _ANNOTATION, _SIMULATED_FIX, lines=True, most=32, longest=4096
            )
        ),
    )  # fmt: skip


def _host_network(top: Section, replicas: int) -> bool:
    """One instance: a second one on the same node would want the same ports."""
    wanted = top.flag("host_network")
    job = top.data.get("job")
    if wanted and replicas > 1:
        top.refuse("host_network", "with one instance only: leave replicas out")
    elif wanted and isinstance(job, Mapping) and job.get("array"):
        top.refuse("host_network", "with one task only: leave job.array out")
    return wanted


PRIORITIES = {p.word: p for p in sorted(Priority, reverse=True)}


def _kind(top: Section) -> Kind:
    kind = top.choice("kind", {k.value: k for k in Kind}, Kind.SERVICE)
    if top.problems.has("kind"):
        return Kind.JOB if top.has("job") else Kind.SERVICE
    if kind is Kind.SERVICE and top.has("job"):
        top.problems.add("job", "", "goes with kind: job; this is a service")
    if kind is Kind.JOB:
        for key in _SERVICE_ONLY:
            if top.data.get(key) not in (None, ""):
                top.refuse(key, "goes with kind: service; this is a job")
    return kind


def _image(top: Section) -> str:
    text = top.text("image", most=4096)
    if not text:
        if not top.problems.has("image"):
            top.refuse("image", "is missing: give " + IMAGE_FIX)
        return ""
    fault = image_fault(text)
    if fault:
        top.refuse("image", fault)
    return text


def _hours(top: Section) -> str:
    text = top.match("hours", _HOURS, "hours such as 22:00-07:00")
    if text and text[:5] == text[6:]:
        top.refuse("hours", "hours such as 22:00-07:00, which begin and end at different times")
    return text


def _secrets(top: Section, env: set[str]) -> tuple[tuple[str, str], ...]:
    pairs = top.pairs(
        "secrets", _VARIABLE, "a variable name of letters, digits and underscores",
        lines=False, most=200, longest=63,
    )  # fmt: skip
    for variable, name in pairs:
        path = join("secrets", variable)
        if not OBJECT.fullmatch(name):
            top.problems.add(path, "", "the name of a stored secret, never the secret itself")
        elif variable in env:
            top.problems.add(path, "", f"{variable} also stands in env: keep one")
    return tuple(pairs)


def _check_texts(top: Section, spec: Spec) -> None:
    """Variables that are PodWarden's, and the size of all texts together."""
    for variable, _ in (*spec.env, *spec.secrets):
        place = "env" if variable in dict(spec.env) else "secrets"
        fix = _RESERVED.get(variable)
        if variable.startswith("PW_"):
            fix = "names that start with PW_ are set by PodWarden: choose another"
        if fix:
            top.problems.add(join(place, variable), "", fix)
    total = sum(len(text.encode()) for text in (*spec.command, *spec.args))
    total += sum(len(k) + len(v.encode()) for k, v in (*spec.env, *spec.annotations))
    if total > MOST_TEXTS:
        top.problems.add(
            "env", f"{total:,} bytes", f"at most {MOST_TEXTS:,} bytes of env, command and args"
        )
