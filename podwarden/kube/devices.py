"""GPUs as ResourceSlices, and what claims hold of them. Pure, in both directions.

Published: one device per GPU, named by its lower-case UUID, smallest VRAM first (the scheduler takes the first
that fits). Capacity `shares` makes whole GPUs exclusive: a claim that asks for nothing takes all 64, so that
exclusivity never depends on how much memory is promised at the moment. Attribute `computeCapability` is a
version ("8.6" -> "8.6.0"): selectors compare it with `semver("8.9.0")`, by number and not by text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podwarden.domain.inventory import (
    DEVICE_SHARES,
    MEMORY_STEP,
    Device,
    DeviceHealth,
    short_model,
)
from podwarden.domain.units import promisable
from podwarden.errors import Invalid
from podwarden.kube.quantity import to_int, to_mib

DRIVER = "gpu.podwarden.io"
CLASS = "gpu.podwarden.io"
API = "resource.k8s.io/v1"
LOST = f"{DRIVER}/lost"
UNKNOWN = f"{DRIVER}/unknown"
MOST_DEVICES = 64  # per slice, with taints
MOST_TEXT = 64  # characters of a text attribute


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a device that a claim holds; None where the driver does not count that capacity."""

    driver: str
    pool: str
    device: str
    request: str
    memory_mib: int | None = None
    shares: int | None = None
    encoders: int | None = None


# --- publishing --------------------------------------------------------------------------------


def slice_name(node: str) -> str:
    return f"{node}-{DRIVER}"


def device_slice(
    node: str, node_uid: str, devices: Sequence[Device], generation: int
) -> dict[str, Any]:
    """The ResourceSlice of one node. It goes when its Node goes.

    generation must rise with each change of the devices. Invalid above 64 devices.
    """
    if len(devices) > MOST_DEVICES:
        raise Invalid.of("gpus", len(devices), f"at most {MOST_DEVICES} GPUs in one node")
    ordered = sorted(devices, key=lambda device: (device.vram_mib, device.uuid))
    return {
        "apiVersion": API,
        "kind": "ResourceSlice",
        "metadata": {
            "name": slice_name(node),
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "name": node,
                    "uid": node_uid,
                    "controller": True,
                }
            ],
        },
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": generation, "resourceSliceCount": 1},
            "devices": [_published(device) for device in ordered],
        },
    }


def _published(device: Device) -> dict[str, Any]:
    out: dict[str, Any] = {
        "name": device.uuid.lower(),
        "allowMultipleAllocations": True,
        "attributes": _attributes(device),
        "capacity": {
            "shares": _capacity(str(DEVICE_SHARES), {"min": "1"}),
            "memory": _memory(device.memory_mib // MEMORY_STEP * MEMORY_STEP),
        },
    }
    if device.encoders is not None:
        # Nothing by default: a whole GPU is exclusive by its shares, a shared one asks for what it needs.
        policy = {"default": "0", "validRange": {"min": "0"}}
        out["capacity"]["encoders"] = {"value": str(device.encoders), "requestPolicy": policy}
    if device.health is DeviceHealth.LOST:
        out["taints"] = [{"key": LOST, "value": "true", "effect": "NoExecute"}]
    elif device.health is DeviceHealth.UNKNOWN:
        out["taints"] = [{"key": UNKNOWN, "value": "true", "effect": "NoSchedule"}]
    return out


def _attributes(device: Device) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "uuid": {"string": device.uuid.lower()},
        "index": {"int": device.index},
        "model": {"string": short_model(device.model)[:MOST_TEXT]},
        "vramMiB": {"int": device.vram_mib},
        "kind": {"string": device.kind},
    }
    for name, text in (
        ("driverVersion", device.driver_version),
        ("cudaVersion", device.cuda_version),
        ("computeCapability", device.compute_capability),
    ):
        if text:
            attributes[name] = {"version": semver(text)}
    if device.pci_bus_id:
        attributes["pciBusID"] = {"string": device.pci_bus_id[:MOST_TEXT]}
    return attributes


def semver(text: str) -> str:
    """`580.95.05` -> `580.95.5`, `8.6` -> `8.6.0`: three numbers without leading zeros, as the API wants."""
    numbers = [str(int(number)) for number in re.findall(r"[0-9]+", text)]
    return ".".join([*numbers, "0", "0", "0"][:3])


def _memory(mib: int) -> dict[str, Any]:
    if (
        mib < MEMORY_STEP
    ):  # outsiders hold it all: nothing to promise, and no range fits into nothing
        return {"value": "0"}
    allowed = {"min": f"{MEMORY_STEP}Mi"}
    if mib >= 2 * MEMORY_STEP:  # the API wants room for at least one step
        allowed["step"] = f"{MEMORY_STEP}Mi"
    return _capacity(f"{mib}Mi", allowed)


def _capacity(value: str, allowed: dict[str, str]) -> dict[str, Any]:
    """Claims that ask for nothing take it all."""
    return {"value": value, "requestPolicy": {"default": value, "validRange": allowed}}


# --- reading -----------------------------------------------------------------------------------


def read_slice(slice_: Mapping[str, Any]) -> tuple[tuple[str, Device], ...]:
    """(DRA name, Device) of every GPU in a slice of any driver, in slice order; () when it has none.

    A device of another driver is a GPU when it counts `memory` or says so in its attributes; it is whole
    only unless it allows several holders.
    """
    spec = slice_.get("spec") or {}
    node = spec.get("nodeName") or ""
    if not node:
        return ()
    driver = spec.get("driver") or ""
    found = []
    for position, raw in enumerate(spec.get("devices") or ()):
        attributes = dict(_plain(raw.get("attributes")))
        capacity = {key: value.get("value") for key, value in _local(raw.get("capacity"))}
        if driver == DRIVER or _is_gpu(attributes, capacity):
            device = _device(raw, attributes, capacity, node=node, driver=driver, position=position)
            found.append((raw["name"], device))
    return tuple(found)


def _device(
    raw: Mapping[str, Any],
    attributes: Mapping[str, Any],
    capacity: Mapping[str, Any],
    *,
    node: str,
    driver: str,
    position: int,
) -> Device:
    memory = to_mib(capacity.get("memory") or "0")
    vram = _whole(attributes.get("vramMiB"), memory)
    ours = driver == DRIVER
    encoders = capacity.get("encoders")
    compute = str(
        attributes.get("computeCapability") or attributes.get("cudaComputeCapability") or ""
    )
    return Device(
        node=node,
        index=_whole(attributes.get("index", attributes.get("minor")), position),
        uuid=str(attributes.get("uuid") or f"{node}/{raw['name']}").lower(),
        model=short_model(str(attributes.get("model") or attributes.get("productName") or "GPU")),
        vram_mib=vram,
        memory_mib=memory,
        health=_health(raw.get("taints") or ()),
        whole_only=not raw.get("allowMultipleAllocations"),
        compute_capability=".".join(compute.split(".")[:2]),
        driver_version=str(attributes.get("driverVersion") or ""),
        cuda_version=str(
            attributes.get("cudaVersion") or attributes.get("cudaDriverVersion") or ""
        ),
        pci_bus_id=str(attributes.get("pciBusID") or ""),
        kind=str(attributes.get("kind") or _KINDS.get(str(attributes.get("type")), "discrete")),
        encoders=None if encoders is None else to_int(encoders),
        dra_driver=driver,
        outside_mib=max(promisable(vram) - memory, 0) if ours else 0,
    )


_KINDS = {"mig": "mig", "vgpu": "vgpu"}


def _is_gpu(attributes: Mapping[str, Any], capacity: Mapping[str, Any]) -> bool:
    kind = str(attributes.get("type") or "").lower()
    if kind and kind not in ("gpu", "mig", "vgpu"):
        return False
    return "memory" in capacity or kind != "" or str(attributes.get("uuid")).startswith("GPU-")


def _health(taints: Sequence[Mapping[str, Any]]) -> DeviceHealth:
    """`lost` is ours alone; any other taint that keeps work off means that nobody knows better."""
    blocking = [t.get("key") for t in taints if t.get("effect") in ("NoSchedule", "NoExecute")]
    if LOST in blocking:
        return DeviceHealth.LOST
    return DeviceHealth.UNKNOWN if blocking else DeviceHealth.OK


def read_pieces(claim: Mapping[str, Any]) -> tuple[Piece, ...]:
    """What a claim holds by its `status.allocation`; () while it is not allocated.

    Access for administrators holds nothing and is left out.
    """
    allocation = (claim.get("status") or {}).get("allocation") or {}
    pieces = []
    for result in (allocation.get("devices") or {}).get("results") or ():
        if result.get("adminAccess"):
            continue
        used = dict(_local(result.get("consumedCapacity")))
        pieces.append(
            Piece(
                driver=result["driver"],
                pool=result["pool"],
                device=result["device"],
                request=result["request"],
                memory_mib=to_mib(used["memory"]) if "memory" in used else None,
                shares=to_int(used["shares"]) if "shares" in used else None,
                encoders=to_int(used["encoders"]) if "encoders" in used else None,
            )
        )
    return tuple(pieces)


def _local(named: Mapping[str, Any] | None) -> Iterator[tuple[str, Any]]:
    """Names without their domain: `gpu.example.com/memory` -> `memory`."""
    for name, value in (named or {}).items():
        yield name.rpartition("/")[2], value


def _plain(attributes: Mapping[str, Any] | None) -> Iterator[tuple[str, Any]]:
    """An attribute has exactly one of string, int, bool, version."""
    for name, value in _local(attributes):
        yield name, next(iter(value.values()), None)


def _whole(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
