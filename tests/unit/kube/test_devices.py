"""GPUs to slices and back, quantities, and what claims hold. What the API server says is in tests/cluster."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubemaking import GIB, gpu

from podwarden.domain.inventory import DeviceHealth
from podwarden.domain.units import promisable
from podwarden.errors import Invalid
from podwarden.kube.devices import (
    Piece,
    device_slice,
    read_pieces,
    read_slice,
    semver,
    slice_name,
)
from podwarden.kube.quantity import parse_quantity, to_int, to_mib, to_milli

FULL = gpu(
    1,
    compute_capability="8.6",
    driver_version="580.95.05",
    cuda_version="13.0",
    pci_bus_id="0000:01:00.0",
    encoders=8,
)


def publish(*devices: Any) -> list[dict[str, Any]]:
    return device_slice("n3", "uid-n3", devices, 7)["spec"]["devices"]


def test_a_slice_belongs_to_its_node_and_names_its_generation() -> None:
    slice_ = device_slice("n3", "uid-n3", [gpu()], 7)
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n3", "uid": "uid-n3", "controller": True}
    assert slice_["metadata"] == {"name": "n3-gpu.podwarden.io", "ownerReferences": [owner]}
    assert slice_name("n3") == "n3-gpu.podwarden.io"
    assert slice_["spec"]["pool"] == {"name": "n3", "generation": 7, "resourceSliceCount": 1}
    assert (slice_["spec"]["driver"], slice_["spec"]["nodeName"]) == ("gpu.podwarden.io", "n3")


def test_devices_are_named_by_uuid_and_come_smallest_first() -> None:
    """P-16: two models in one machine; the order is by VRAM, then by UUID."""
    cards = [gpu(0, 24 * GIB), gpu(2, 12 * GIB), gpu(1, 12 * GIB)]
    assert [d["name"] for d in publish(*cards)] == ["gpu-0001", "gpu-0002", "gpu-0000"]


def test_a_device_says_everything_about_itself() -> None:
    (device,) = publish(FULL)
    assert device == {
        "name": "gpu-0001",
        "allowMultipleAllocations": True,
        "attributes": {
            "uuid": {"string": "gpu-0001"},
            "index": {"int": 1},
            "model": {"string": "RTX 3090"},
            "vramMiB": {"int": 24576},
            "kind": {"string": "discrete"},
            "driverVersion": {"version": "580.95.5"},
            "cudaVersion": {"version": "13.0.0"},
            "computeCapability": {"version": "8.6.0"},
            "pciBusID": {"string": "0000:01:00.0"},
        },
        "capacity": {
            "shares": {
                "value": "64",
                "requestPolicy": {"default": "64", "validRange": {"min": "1"}},
            },
            "memory": {
                "value": "23808Mi",
                "requestPolicy": {
                    "default": "23808Mi",
                    "validRange": {"min": "128Mi", "step": "128Mi"},
                },
            },
            "encoders": {
                "value": "8",
                "requestPolicy": {"default": "0", "validRange": {"min": "0"}},
            },
        },
    }


def test_what_is_unknown_is_left_out() -> None:
    (device,) = publish(gpu())
    assert set(device["attributes"]) == {"uuid", "index", "model", "vramMiB", "kind"}
    assert set(device["capacity"]) == {"shares", "memory"}
    assert "taints" not in device


@pytest.mark.parametrize(
    ("promised", "value", "allowed"),
    [
        (0, "0", None),
        (127, "0", None),
        (128, "128Mi", {"min": "128Mi"}),
        (300, "256Mi", {"min": "128Mi", "step": "128Mi"}),
    ],
)
def test_memory_is_promised_in_whole_steps(
    promised: int, value: str, allowed: dict[str, str] | None
) -> None:
    (device,) = publish(gpu(memory_mib=promised))
    memory = device["capacity"]["memory"]
    assert memory["value"] == value
    assert memory.get("requestPolicy", {}).get("validRange") == allowed


@pytest.mark.parametrize(
    ("health", "key", "effect"),
    [
        (DeviceHealth.LOST, "gpu.podwarden.io/lost", "NoExecute"),
        (DeviceHealth.UNKNOWN, "gpu.podwarden.io/unknown", "NoSchedule"),
    ],
)
def test_a_sick_gpu_stays_in_the_slice_with_a_taint(
    health: DeviceHealth, key: str, effect: str
) -> None:
    (device,) = publish(gpu(health=health))
    assert device["taints"] == [{"key": key, "value": "true", "effect": effect}]


def test_more_than_64_gpus_are_refused() -> None:
    assert len(publish(*(gpu(i) for i in range(64)))) == 64
    with pytest.raises(Invalid, match="at most 64"):
        publish(*(gpu(i) for i in range(65)))


@pytest.mark.parametrize(
    ("text", "version"),
    [("580.95.05", "580.95.5"), ("8.6", "8.6.0"), ("13", "13.0.0"), ("12.4.1.7", "12.4.1")],
)
def test_versions_have_three_numbers_without_leading_zeros(text: str, version: str) -> None:
    assert semver(text) == version


DEVICES = st.builds(
    gpu,
    index=st.integers(0, 15),
    vram_mib=st.integers(1024, 200_000),
    model=st.sampled_from(["RTX 3090", "A10", "Tesla T4", "H100 PCIe"]),
    health=st.sampled_from(DeviceHealth),
    compute_capability=st.sampled_from(["", "8.6", "12.0"]),
    driver_version=st.sampled_from(["", "580.95.5"]),
    cuda_version=st.sampled_from(["", "13.0.0"]),
    pci_bus_id=st.sampled_from(["", "0000:41:00.0"]),
    kind=st.sampled_from(["discrete", "unified", "mig", "vgpu"]),
    encoders=st.sampled_from([None, 0, 3]),
    outside_mib=st.integers(0, 4096),
)


@given(st.lists(DEVICES, max_size=8, unique_by=lambda device: device.uuid))
def test_what_is_published_is_read_back(devices: list[Any]) -> None:
    wanted = []
    for device in devices:
        memory = promisable(device.vram_mib, device.outside_mib)
        outside = promisable(device.vram_mib) - memory
        wanted.append(
            replace(device, uuid=device.uuid.lower(), memory_mib=memory, outside_mib=outside)
        )
    found = read_slice(device_slice("n3", "u", wanted, 1))
    assert [name for name, _ in found] == [device.uuid for _, device in found]
    assert [device for _, device in found] == sorted(wanted, key=lambda d: (d.vram_mib, d.uuid))


NVIDIA = {
    "spec": {
        "driver": "gpu.nvidia.com",
        "nodeName": "n1",
        "devices": [
            {
                "name": "gpu-0",
                "attributes": {
                    "type": {"string": "gpu"},
                    "uuid": {"string": "GPU-ABC"},
                    "productName": {"string": "NVIDIA GeForce RTX 3090"},
                    "cudaComputeCapability": {"version": "8.6.0"},
                    "cudaDriverVersion": {"version": "13.0.0"},
                    "driverVersion": {"version": "580.95.5"},
                    "resource.kubernetes.io/pciBusID": {"string": "0000:01:00.0"},
                    "minor": {"int": 3},
                },
                "capacity": {"memory": {"value": "24268Mi"}},
            },
            {
                "name": "gpu-0-mig-1",
                "attributes": {"type": {"string": "mig"}, "uuid": {"string": "MIG-1"}},
                "capacity": {"memory": {"value": "4864Mi"}},
                "taints": [{"key": "xid", "effect": "NoSchedule"}],
            },
            {"name": "vfio-0", "attributes": {"type": {"string": "vfio"}}, "capacity": {}},
        ],
    }
}


def test_the_slices_of_another_driver_are_read_as_they_are() -> None:
    (name, card), (_, slice_) = read_slice(NVIDIA)
    assert (name, card.node, card.uuid, card.model, card.index) == (
        "gpu-0", "n1", "gpu-abc", "RTX 3090", 3,
    )  # fmt: skip
    assert (card.vram_mib, card.memory_mib, card.whole_only) == (24268, 24268, True)
    assert (card.compute_capability, card.dra_driver) == ("8.6", "gpu.nvidia.com")
    assert (card.cuda_version, card.pci_bus_id, card.outside_mib) == ("13.0.0", "0000:01:00.0", 0)
    assert (slice_.kind, slice_.health) == ("mig", DeviceHealth.UNKNOWN)


@pytest.mark.parametrize(
    ("device", "is_gpu"),
    [
        ({"name": "a", "capacity": {"gpu.example.com/memory": {"value": "8Gi"}}}, True),
        ({"name": "b", "attributes": {"uuid": {"string": "GPU-1"}}}, True),
        ({"name": "c", "attributes": {"rdma": {"bool": True}}}, False),
        ({"name": "d", "attributes": {}, "capacity": {"bandwidth": {"value": "1"}}}, False),
    ],
)
def test_only_gpus_are_taken_from_unknown_drivers(device: dict[str, Any], *, is_gpu: bool) -> None:
    slice_ = {"spec": {"driver": "x.example.com", "nodeName": "n1", "devices": [device]}}
    assert bool(read_slice(slice_)) is is_gpu
    if is_gpu:
        _, found = read_slice(slice_)[0]
        assert found.model == "GPU"
        assert found.uuid in {"n1/a", "gpu-1"}


@pytest.mark.parametrize(
    "slice_",
    [{}, {"spec": {"driver": "gpu.nvidia.com", "allNodes": True, "devices": [{"name": "x"}]}},
     {"spec": {"driver": "gpu.podwarden.io", "nodeName": "n1"}}],
)  # fmt: skip
def test_a_slice_without_node_or_devices_has_no_gpus(slice_: dict[str, Any]) -> None:
    assert read_slice(slice_) == ()


def test_the_pieces_of_a_claim_are_read_exactly() -> None:
    """P-50: what a share holds is what was charged, not what was asked."""
    result = {"request": "gpu/here", "driver": "gpu.podwarden.io", "pool": "n3", "device": "gpu-1"}
    used = {"memory": "6Gi", "shares": "1", "encoders": "2"}
    claim = {
        "status": {
            "allocation": {
                "devices": {
                    "results": [
                        {**result, "consumedCapacity": used},
                        {**result, "device": "gpu-2", "driver": "gpu.nvidia.com"},
                        {**result, "device": "gpu-3", "adminAccess": True},
                    ]
                }
            }
        }
    }
    assert read_pieces(claim) == (
        Piece("gpu.podwarden.io", "n3", "gpu-1", "gpu/here", 6144, 1, 2),
        Piece("gpu.nvidia.com", "n3", "gpu-2", "gpu/here"),
    )


@pytest.mark.parametrize("claim", [{}, {"status": {}}, {"status": {"allocation": {"devices": {}}}}])
def test_a_claim_without_allocation_holds_nothing(claim: dict[str, Any]) -> None:
    assert read_pieces(claim) == ()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("1500m", Fraction(3, 2)), ("1e3", 1000), ("2E2", 200), ("1E", 10**18), (".5", Fraction(1, 2)),
        ("1.5Gi", 1610612736), ("-3k", -3000), ("+7", 7), ("9007199254740993", 9007199254740993),
        ("100n", Fraction(1, 10**7)), ("3u", Fraction(3, 10**6)), ("1.", 1), (5, 5), ("12Ei", 12 << 60), ("1e-3", Fraction(1, 1000)),
    ],
)  # fmt: skip
def test_quantities_are_exact(text: object, value: Fraction) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    "text", ["", "Gi", "1 Gi", "1gb", "0x10", "1e", "--1", "nan", "1KiB", None, "1" * 50]
)
def test_what_is_no_quantity_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        parse_quantity(text)


def test_memory_is_rounded_down_and_cpu_up() -> None:
    assert (to_mib("1048575"), to_mib("1048576"), to_mib("24268Mi")) == (0, 1, 24268)
    assert (to_milli("0.0001"), to_milli("1500m"), to_milli("2")) == (1, 1500, 2000)
    assert to_int("3.9") == 3
