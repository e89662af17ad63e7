"""What one instance needs, compiled once for all claimants that ask for the same."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from podwarden.domain.inventory import MEMORY_STEP, Device, short_model
from podwarden.domain.placement import Claimant
from podwarden.domain.reason import Code
from podwarden.domain.request import Request
from podwarden.domain.units import promised_floor, vram_floor

_COMPUTE = re.compile(r"\s*(>=|<=|==|=|>|<|)\s*(\d{1,3}(?:\.\d{1,3})?)\s*", re.ASCII)
_VERSION = re.compile(r"\d{1,3}(?:\.\d{1,3})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Need:
    """count: GPUs of one instance, all on one node, all different; 0 = none.

    floor_mib: smallest driver's total; promised_mib: smallest promisable memory of a whole GPU;
    budget_mib: memory charged per shared GPU, in the cluster's steps, rounded up. cpu_milli,
    memory_mib: per instance. nodes: where it may run (None = anywhere), avoid already taken out.
    """

    count: int = 0
    shared: bool = False
    vram_mib: int | None = None
    floor_mib: int = 0
    promised_mib: int = 0
    budget_mib: int = 0
    models: frozenset[str] = frozenset()
    model_names: tuple[str, ...] = ()
    compute: str = ""
    encoders: int = 0
    cpu_milli: int = 0
    memory_mib: int = 0
    nodes: frozenset[str] | None = None
    avoid: frozenset[str] = frozenset()

    def allows(self, node: str) -> bool:
        return (self.nodes is None or node in self.nodes) and node not in self.avoid


def need_of(claimant: Claimant) -> Need:
    nodes, avoid = claimant.nodes, frozenset(claimant.avoid)
    request = claimant.request
    cpu, memory = max(claimant.cpu_milli, 0), max(claimant.memory_mib, 0)
    if request is None or request.count <= 0:
        return Need(cpu_milli=cpu, memory_mib=memory, nodes=nodes, avoid=avoid)
    vram = request.vram_mib
    whole = vram is not None and not request.shared
    return Need(
        count=request.count,
        shared=request.shared,
        vram_mib=vram,
        floor_mib=vram_floor(vram) if whole and vram is not None else 0,
        promised_mib=promised_floor(vram) if whole and vram is not None else 0,
        budget_mib=budget_of(request) if request.shared else 0,
        models=frozenset(model_key(name) for name in request.model),
        model_names=request.model,
        compute=request.compute,
        encoders=max(request.encoder_sessions, 0),
        cpu_milli=cpu,
        memory_mib=memory,
        nodes=nodes,
        avoid=avoid,
    )


def least_of(claimant: Claimant) -> int:
    """Instances that must fit for a start; replacements of a displaced service start one by one."""
    return 1 if claimant.displaced else max(claimant.at_least, 1)


def budget_of(request: Request) -> int:
    """The memory (MiB) that a shared request is charged per GPU: whole steps, never less than one."""
    asked = max(request.vram_mib or 0, 1)
    return -(-asked // MEMORY_STEP) * MEMORY_STEP


@lru_cache(maxsize=4096)
def model_key(name: str) -> str:
    return short_model(name).casefold()


def mismatch(need: Need, device: Device) -> Code | None:
    """Why this GPU can never do for the need, whoever holds it and however its node is; None = it can."""
    if need.models and model_key(device.model) not in need.models:
        return Code.NO_SUCH_MODEL
    if need.compute and not compute_matches(need.compute, device.compute_capability):
        return Code.COMPUTE_TOO_LOW
    if need.shared and device.whole_only:
        return Code.CLUSTER_CANNOT_SHARE
    if device.vram_mib < need.floor_mib or need.budget_mib > device.memory_mib + device.outside_mib:
        return Code.NO_DEVICE_LARGE_ENOUGH
    if device.encoders is not None and device.encoders < need.encoders:
        return Code.ENCODER_SESSIONS
    return None


def compute_matches(wanted: str, capability: str) -> bool:
    """`>=8.9` against `8.10`: numbers, not text. An unknown capability matches nothing."""
    parsed = _COMPUTE.fullmatch(wanted)
    if parsed is None or not _VERSION.fullmatch(capability):
        return False
    have, want = _version(capability), _version(parsed[2])
    if parsed[1] == ">=":
        return have >= want
    if parsed[1] == "<=":
        return have <= want
    if parsed[1] == ">":
        return have > want
    if parsed[1] == "<":
        return have < want
    return have == want


def _version(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)
