"""What a workload asks of the GPUs, as the spec of a claim. Pure.

A claim is a list of wishes in order: first `here`, the GPUs that the plan chose, then `any-…`, the plain request in
ascending bands of VRAM, so that a fallback still takes the smallest card that does. Every wish carries the whole
request; the scheduler may take any of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from podwarden.domain.inventory import MEMORY_STEP, short_model
from podwarden.domain.placement import Placement
from podwarden.domain.request import Request
from podwarden.domain.units import promised_floor, vram_floor
from podwarden.errors import Invalid
from podwarden.kube import devices
from podwarden.kube.labels import HOLD

REQUEST = "gpu"  # name of the one request in a claim
HERE = "here"
MOST_WISHES = 8  # API limit
MOST_DEVICES = 32  # API limit, per claim
MOST_HERE = 128  # UUIDs in one selector; its text may have 10 KiB

_COMPUTE = re.compile(r"(>=)?(\d+)\.(\d+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one driver names things. total: attribute with the driver's VRAM in MiB, "" = capacity memory says it."""

    driver: str
    device_class: str
    model: str
    compute: str
    total: str = ""
    encoders: bool = False


OURS = Dialect(
    devices.DRIVER, devices.CLASS, "model", "computeCapability", total="vramMiB", encoders=True
)
NVIDIA = Dialect("gpu.nvidia.com", "gpu.nvidia.com", "productName", "cudaComputeCapability")


def dialect_of(driver: str) -> Dialect:
    """Drivers that nobody knows are asked as NVIDIA's is: those names are the custom."""
    if driver == OURS.driver:
        return OURS
    return Dialect(driver, driver, NVIDIA.model, NVIDIA.compute)


def claim_spec(
    request: Request, placement: Placement, *, dialect: Dialect = OURS, steer: bool = True
) -> dict[str, Any]:
    """The spec of the claim (or of its template) for one instance.

    steer False leaves the planned GPUs out (arrays: later tasks go elsewhere, the template stays).
    Invalid for a shared request without a size, and for more GPUs than one claim may hold.
    """
    if request.shared and request.vram_mib is None:
        raise Invalid.of("gpu.vram", "", "a shared GPU needs its size: give vram, such as 6GB")
    if not 1 <= request.count <= MOST_DEVICES:
        raise Invalid.of("gpu.count", request.count, f"a number of GPUs from 1 to {MOST_DEVICES}")
    wishes = list(_wishes(request, placement, dialect, steer=steer))
    spec: dict[str, Any] = {"requests": [{"name": REQUEST, "firstAvailable": wishes}]}
    if request.count > 1:
        spec["constraints"] = [
            {"requests": [REQUEST], "distinctAttribute": f"{dialect.driver}/uuid"}
        ]
    return {"devices": spec}


def _wishes(
    request: Request, placement: Placement, dialect: Dialect, *, steer: bool
) -> Iterator[dict[str, Any]]:
    ways = _ways(request, dialect)
    room = MOST_WISHES // len(ways)
    base = _selector(request, dialect)
    planned = sorted({uuid.lower() for slot in placement.slots for uuid in slot.devices})
    wanted: list[tuple[str, list[str]]] = []
    if steer and 0 < len(planned) <= MOST_HERE:
        here = f"{_attribute(dialect, 'uuid')}.lowerAscii() in {json.dumps(planned)}"
        wanted.append((HERE, [here, *base]))
    for number, top in enumerate(_bands(request, placement.bands, room - len(wanted))):
        upper = [] if top is None else [_at_most(dialect, top)]
        wanted.append((f"any-{number}", [*base, *upper]))
    for name, conditions in wanted:
        for suffix, condition, counted in ways:
            yield {
                "name": f"{name}{suffix}",
                "deviceClassName": dialect.device_class,
                "count": request.count,
                "tolerations": [_may_use_hold_of(placement.workload)],
                **_selected([*conditions, *condition]),
                **_charged(request, dialect, counted=counted),
            }


def _may_use_hold_of(workload: str) -> dict[str, str]:
    return {"key": HOLD, "operator": "Equal", "value": workload, "effect": "NoSchedule"}


def _selected(conditions: Sequence[str]) -> dict[str, Any]:
    expression = " && ".join(conditions)
    return {"selectors": [{"cel": {"expression": expression}}]} if expression else {}


def _charged(request: Request, dialect: Dialect, *, counted: bool) -> dict[str, Any]:
    """A dedicated claim names no capacity and so takes all of it."""
    if not request.shared:
        return {}
    steps = -(-(request.vram_mib or 0) // MEMORY_STEP)
    budget = {"memory": f"{steps * MEMORY_STEP}Mi"}
    if dialect is OURS:
        budget["shares"] = "1"
    if counted:
        budget["encoders"] = str(request.encoder_sessions)
    return {"capacity": {"requests": budget}}


def _ways(request: Request, dialect: Dialect) -> tuple[tuple[str, list[str], bool], ...]:
    """(suffix of the name, extra conditions, encoders are charged).

    A shared request for encoder sessions meets cards that count them and cards without a limit: the claim must
    ask the first for sessions and must not ask the second, which have no such capacity.
    """
    if not (request.shared and request.encoder_sessions and dialect.encoders):
        return (("", [], False),)
    counts = f'"encoders" in device.capacity["{dialect.driver}"]'
    return (("-counted", [counts], True), ("-free", [f"!({counts})"], False))


def _selector(request: Request, dialect: Dialect) -> list[str]:
    conditions = []
    if request.vram_mib is not None and not request.shared:
        conditions += _floor(request.vram_mib, dialect)
    if request.model:
        names = json.dumps(
            [short_model(name).lower() for name in request.model], ensure_ascii=False
        )
        if dialect is OURS:
            conditions.append(f"{_attribute(dialect, dialect.model)}.lowerAscii() in {names}")
        else:  # published as "NVIDIA GeForce RTX 3090"
            model = f"{_attribute(dialect, dialect.model)}.lowerAscii()"
            conditions.append(f"{names}.exists(m, {model} == m || {model}.endsWith(' ' + m))")
    if request.compute:
        conditions.append(_compute(request.compute, dialect))
    if request.encoder_sessions and not request.shared and dialect.encoders:
        capacity = f'device.capacity["{dialect.driver}"]'
        enough = f'{capacity}.encoders.compareTo(quantity("{request.encoder_sessions}")) >= 0'
        conditions.append(f'(!("encoders" in {capacity}) || {enough})')
    return conditions


def _floor(mib: int, dialect: Dialect) -> list[str]:
    """The card is large enough, and processes outside the cluster hold no real part of it."""
    if not dialect.total:
        return [_memory(dialect, ">=", vram_floor(mib))]
    total = f"{_attribute(dialect, dialect.total)} >= {vram_floor(mib)}"
    return [total, _memory(dialect, ">=", promised_floor(mib))]


def _at_most(dialect: Dialect, mib: int) -> str:
    if not dialect.total:
        return _memory(dialect, "<=", mib)
    return f"{_attribute(dialect, dialect.total)} <= {mib}"


def _memory(dialect: Dialect, sign: str, mib: int) -> str:
    capacity = f'device.capacity["{dialect.driver}"].memory'
    return f'{capacity}.compareTo(quantity("{mib}Mi")) {sign} 0'


def _compute(text: str, dialect: Dialect) -> str:
    """`>=8.9` at least, `8.6` exactly. A card that does not say its capability never matches."""
    match = _COMPUTE.fullmatch(text)
    if match is None:
        raise Invalid.of("gpu.compute", text, 'a compute capability such as ">=8.9" or "8.6"')
    sign = ">=" if match[1] else "=="
    attribute = _attribute(dialect, dialect.compute)
    wanted = f'semver("{int(match[2])}.{int(match[3])}.0")'
    return f"has({attribute}) && {attribute}.compareTo({wanted}) {sign} 0"


def _attribute(dialect: Dialect, name: str) -> str:
    return f'device.attributes["{dialect.driver}"].{name}'


def _bands(request: Request, bands: Sequence[int], room: int) -> list[int | None]:
    """Upper bounds in MiB, ascending; None = no bound, always the last."""
    least = 0 if request.vram_mib is None or request.shared else vram_floor(request.vram_mib)
    bounds = sorted({band for band in bands if band >= least})[:-1]
    return [*bounds[: room - 1], None]
