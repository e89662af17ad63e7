"""The node list of Alibaba's openb trace (cluster-trace-gpu-v2023) as simulated nodes. Pure.

Columns: sn, cpu_milli, memory_mib, gpu, model. The trace has no VRAM; the sizes are those of the simulator that
was published with it. G2 and G3 are undisclosed models with nominal sizes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import replace

from podwarden.domain.inventory import Device
from podwarden.errors import Invalid, Problem
from podwarden.simulator.fleet_file import MOST_GPUS, SimulatedNode, bare_gpu, devices_of

COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
PODS = 250

# model -> (VRAM in MiB, compute capability)
MODELS: Mapping[str, tuple[int, str]] = {
    "G2": (20_000, ""),
    "T4": (15_109, "7.5"),
    "G3": (30_000, ""),
    "P100": (16_280, "6.0"),
    "V100M32": (32_510, "7.0"),
    "V100M16": (16_160, "7.0"),
    "A10": (22_731, "8.6"),
}


def read_openb(text: str, source: str = "") -> tuple[SimulatedNode, ...]:
    """The nodes in the order of the file; Invalid with every fault and its line."""
    rows = csv.DictReader(io.StringIO(text), strict=True)
    problems: list[Problem] = []
    nodes: dict[str, SimulatedNode] = {}
    try:
        if tuple(rows.fieldnames or ()) != COLUMNS:
            raise Invalid([Problem("columns", "", ",".join(COLUMNS), 1)], source=source)
        for row in rows:
            node = _node(row, rows.line_num, problems)
            if node is not None and node.name in nodes:
                problems.append(Problem("sn", node.name, "named twice: keep one", rows.line_num))
            elif node is not None:
                nodes[node.name] = node
    except csv.Error as error:
        line = rows.reader.line_num
        raise Invalid([Problem("CSV", "", str(error), line)], source=source) from error
    if problems:
        raise Invalid(problems[:50], source=source)
    return tuple(nodes.values())


def _node(row: Mapping[str, str], line: int, problems: list[Problem]) -> SimulatedNode | None:
    before = len(problems)
    cpu = _number(row, "cpu_milli", line, problems)
    memory = _number(row, "memory_mib", line, problems)
    count = _number(row, "gpu", line, problems, least=0, most=MOST_GPUS)
    name, model = row["sn"] or "", row["model"] or ""
    if not name:
        problems.append(Problem("sn", "", "the node's name", line))
    if count and model not in MODELS:
        problems.append(Problem("model", model, f"one of {', '.join(MODELS)}", line))
    if len(problems) > before:
        return None
    devices = devices_of(name, [_gpu(model)] * count) if count else ()
    return SimulatedNode(name, cpu, memory, PODS, devices=devices)


def _gpu(model: str) -> Device:
    vram, compute = MODELS[model]
    return replace(bare_gpu(model, vram), compute_capability=compute)


def _number(
    row: Mapping[str, str], key: str, line: int, problems: list[Problem], *, least: int = 1, most: int = 10**9
) -> int:  # fmt: skip
    text = row[key] or ""
    if text.isascii() and text.isdigit() and len(text) < 12 and least <= int(text) <= most:
        return int(text)
    problems.append(Problem(key, text[:20], f"a whole number from {least:,} to {most:,}", line))
    return least
