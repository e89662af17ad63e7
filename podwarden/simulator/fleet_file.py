"""Node files: which simulated nodes there are and what GPUs they have. Pure.

```yaml
nodes:
  - name: n3                 # a DNS label; with count: n3-1, n3-2, …
    count: 1                 # how many alike, up to 5,000 in all
    role: agent              # or server: a K3s server
    cpu: 16                  # cores
    memory: 64Gi
    pods: 110                # the most instances it takes
    labels: {rack: attic}
    gpus:                    # in the order of their index
      - model: RTX 3090      # as it is sold, with or without the vendor
        vram: 24GB           # what the driver reports in all
        count: 1             # how many alike
        compute: "8.6"       # compute capability
        driver: 580.95.05    # driver version
        cuda: "13.0"
        encoders: 8          # encoder sessions; left out = the card does not count them
        kind: discrete       # or unified, mig, vgpu
        outside: 0.5GB       # VRAM held by processes outside the cluster
```
Every fault is found in one pass, with its line. UUIDs follow from node and index, so that a file gives the same GPUs
each time.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from podwarden.domain.check import Problems, Section, join
from podwarden.domain.inventory import Device
from podwarden.domain.units import parse_cpu, parse_size, parse_vram, promisable
from podwarden.errors import Invalid, Problem

DEFAULT = Path(__file__).with_name("nodes_default.yaml")
MOST_NODES = 5_000
MOST_GPUS = 64
MOST_BYTES = 1 << 20
MOST_DEPTH = 16
DRIVER_VERSION = "580.95.05"
CUDA_VERSION = "13.0"

NODE_KEYS = ("name", "count", "role", "cpu", "memory", "pods", "labels", "gpus")
GPU_KEYS = (
    "model", "vram", "count", "compute", "driver", "cuda", "encoders", "kind", "outside",
)  # fmt: skip

_UUIDS = uuid.UUID("5d9cb8e2-2f0e-4f3b-9f53-0c7a6f1f3a55")
_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,48}[a-z0-9])?", re.ASCII)
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+()/-]{0,63}", re.ASCII)
_VERSION = re.compile(r"\d{1,4}(?:\.\d{1,4}){0,2}", re.ASCII)
_COMPUTE = re.compile(r"\d{1,2}\.\d{1,2}", re.ASCII)
_LABEL = re.compile(r"(?:[a-z0-9.-]{1,63}/)?[A-Za-z0-9](?:[-\w.]{0,61}[A-Za-z0-9])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class SimulatedNode:
    """devices: ordered by index; their `health` is the one of a fresh node."""

    name: str
    cpu_milli: int
    memory_mib: int
    pods: int = 110
    server: bool = False
    labels: tuple[tuple[str, str], ...] = ()
    devices: tuple[Device, ...] = ()


def read_node_file(text: str, source: str = "") -> tuple[SimulatedNode, ...]:
    """The nodes in the order of the file; Invalid with every fault and its line."""
    data, lines = _load(text, source)
    problems = Problems()
    if not isinstance(data, dict):
        raise Invalid([Problem("nodes", "", "a file with the key nodes", 1)], source=source)
    top = Section(problems, data, "", ("nodes",))
    entries = top.sections("nodes", NODE_KEYS, MOST_NODES)
    if not entries and not problems.found:
        top.refuse("nodes", "is missing: a list of at least one node")
    nodes = [node for entry in entries for node in _nodes(entry)]
    if len(nodes) > MOST_NODES:
        problems.add("nodes", f"{len(nodes):,} nodes", f"at most {MOST_NODES:,}")
    if problems.found:
        found = [replace(p, line=_line(lines, p.field)) for p in problems.found]
        raise Invalid(sorted(found, key=lambda p: p.line or 0), source=source)
    return _unique(nodes, source)


def device_uuid(node: str, index: int) -> str:
    """Lower case, as the driver's `GPU-…` is published."""
    return f"gpu-{uuid.uuid5(_UUIDS, f'{node}/{index}')}"


def _unique(nodes: list[SimulatedNode], source: str) -> tuple[SimulatedNode, ...]:
    seen: set[str] = set()
    for node in nodes:
        if node.name in seen:
            raise Invalid(
                [Problem("nodes", node.name, "two nodes have this name: give each its own")],
                source=source,
            )
        seen.add(node.name)
    return tuple(nodes)


# --- entries ---------------------------------------------------------------------------------------


def _nodes(entry: Section) -> Iterator[SimulatedNode]:
    name = entry.match("name", _NAME, "lower-case letters, digits and hyphens, at most 50")
    if not name and not entry.has("name"):
        entry.refuse("name", "is missing: give the node a name")
    count = entry.whole("count", 1, MOST_NODES, 1)
    server = entry.choice("role", {"agent": False, "server": True}, default=False)
    shape = {
        "cpu_milli": _required(entry, "cpu", parse_cpu),
        "memory_mib": _required(entry, "memory", parse_size),
        "pods": entry.whole("pods", 1, 10_000, 110),
    }
    labels = tuple(entry.pairs("labels", _LABEL, "a label name", lines=False, most=32, longest=63))
    gpus = [gpu for one in entry.sections("gpus", GPU_KEYS, MOST_GPUS) for gpu in _gpus(one)]
    if len(gpus) > MOST_GPUS:
        entry.problems.add(join(entry.path, "gpus"), f"{len(gpus)} GPUs", f"at most {MOST_GPUS}")
    names = [name] if not entry.has("count") else [f"{name}-{n + 1}" for n in range(count)]
    for each in names:
        yield SimulatedNode(
            each, **shape, server=server, labels=labels, devices=devices_of(each, gpus)
        )


def devices_of(node: str, gpus: list[Device]) -> tuple[Device, ...]:
    """The GPUs as those of `node`, numbered in their order."""
    return tuple(
        replace(
            gpu,
            node=node,
            index=index,
            uuid=device_uuid(node, index),
            pci_bus_id=f"0000:{index + 1:02x}:00.0",
        )
        for index, gpu in enumerate(gpus)
    )


def _gpus(entry: Section) -> list[Device]:
    model = entry.match("model", _MODEL, "a GPU model such as RTX 3090")
    if not entry.has("model"):
        entry.refuse("model", "is missing: a GPU model such as RTX 3090")
    vram = _required(entry, "vram", parse_vram)
    outside = entry.parsed("outside", parse_vram) or 0
    if outside > vram:
        entry.refuse("outside", "at most the VRAM of the card")
    kinds = {kind: kind for kind in ("discrete", "unified", "mig", "vgpu")}
    version = "a version such as 580.95.05"
    encoders = entry.whole("encoders", 0, 1000, 0) if entry.has("encoders") else None
    gpu = bare_gpu(model, vram, outside_mib=outside)
    gpu = replace(
        gpu,
        compute_capability=entry.match("compute", _COMPUTE, 'a compute capability such as "8.6"'),
        driver_version=entry.match("driver", _VERSION, version) or DRIVER_VERSION,
        cuda_version=entry.match("cuda", _VERSION, version) or CUDA_VERSION,
        encoders=encoders,
        kind=entry.choice("kind", kinds, "discrete"),
    )
    return [gpu] * entry.whole("count", 1, MOST_GPUS, 1)


def bare_gpu(model: str, vram_mib: int, *, outside_mib: int = 0) -> Device:
    """A GPU that belongs to no node yet."""
    return Device(
        node="",
        index=0,
        uuid="",
        model=model,
        vram_mib=vram_mib,
        memory_mib=promisable(vram_mib, outside_mib),
        outside_mib=outside_mib,
        driver_version=DRIVER_VERSION,
        cuda_version=CUDA_VERSION,
    )


def _required(entry: Section, key: str, parser: Any) -> int:
    value = entry.parsed(key, parser)
    if value is None and not entry.has(key):
        entry.refuse(key, "is missing")
    return value or 1


# --- YAML with lines ---------------------------------------------------------------------------------


def _load(text: str, source: str) -> tuple[Any, dict[str, int]]:
    if len(text) > MOST_BYTES:
        fix = f"at most {MOST_BYTES:,} characters"
        raise Invalid([Problem("YAML", f"{len(text):,} characters", fix)], source=source)
    try:
        depth = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.events.CollectionStartEvent)
            depth -= isinstance(event, yaml.events.CollectionEndEvent)
            if depth > MOST_DEPTH or isinstance(event, yaml.AliasEvent):
                line = event.start_mark.line + 1 if event.start_mark else None
                fix = "no aliases (*): write the value out"
                if depth > MOST_DEPTH:  # the parser's time grows with the square of the depth
                    fix = f"nested at most {MOST_DEPTH} levels deep"
                raise Invalid([Problem("YAML", "", fix, line)], source=source)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        lines: dict[str, int] = {}
        twice = [] if root is None else list(_walk(root, "", lines))
        data = None if root is None else yaml.load(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + 1 if mark else None
        fix = f"cannot be read as YAML: {error.problem}"
        raise Invalid([Problem("YAML", "", fix, line)], source=source) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Invalid([Problem("YAML", "", "a readable YAML file")], source=source) from error
    if twice:
        raise Invalid(twice, source=source)
    return data, lines


def _walk(node: yaml.Node, path: str, lines: dict[str, int]) -> Iterator[Problem]:
    """Notes the line of every entry; yields the keys that stand twice."""
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        for place, item in enumerate(node.value):
            yield from _walk(item, join(path, place), lines)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            where = join(path, str(key.value))
            line = key.start_mark.line + 1
            if where in lines:
                yield Problem(where, "", "written twice: keep one", line)
            lines[where] = line
            yield from _walk(value, where, lines)


def _line(lines: dict[str, int], path: str) -> int | None:
    """The line of an entry, or of the nearest thing around it."""
    while path and path not in lines:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return lines.get(path)
