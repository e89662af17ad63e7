"""Requests as claims. That the scheduler does with them what is meant is in tests/cluster/test_render_real.py."""

from __future__ import annotations

from typing import Any

import pytest
from kubemaking import GIB

from podwarden.domain.placement import Placement, Slot
from podwarden.domain.request import Request, Sharing
from podwarden.domain.units import promised_floor, vram_floor
from podwarden.errors import Invalid
from podwarden.kube.claims import NVIDIA, claim_spec, dialect_of

ANY = Placement("w1", ())


def wishes(request: Request, placement: Placement = ANY, **more: Any) -> list[dict[str, Any]]:
    (asked,) = claim_spec(request, placement, **more)["devices"]["requests"]
    assert asked["name"] == "gpu"
    return asked["firstAvailable"]


def cel(wish: dict[str, Any]) -> str:
    return wish["selectors"][0]["cel"]["expression"] if "selectors" in wish else ""


def planned(*devices: str, bands: tuple[int, ...] = ()) -> Placement:
    return Placement("w1", (Slot("n3", devices),), ("n3",), bands)


def test_a_whole_gpu_asks_for_no_capacity() -> None:
    """So it takes all shares, whatever memory is promised."""
    (wish,) = wishes(Request())
    assert "capacity" not in wish
    assert "selectors" not in wish
    assert (wish["deviceClassName"], wish["count"]) == ("gpu.podwarden.io", 1)


def test_the_floor_is_tolerant_and_looks_at_outside_use() -> None:
    (wish,) = wishes(Request(1, 16 * GIB))
    total = f'device.attributes["gpu.podwarden.io"].vramMiB >= {vram_floor(16 * GIB)}'
    free = f'quantity("{promised_floor(16 * GIB)}Mi")'
    assert total in cel(wish)
    assert f'device.capacity["gpu.podwarden.io"].memory.compareTo({free}) >= 0' in cel(wish)
    assert vram_floor(16 * GIB) < 15_356, "a 16 GB card with ECC passes"


def test_the_planned_gpus_come_first_then_ascending_bands() -> None:
    placement = planned("GPU-B", "GPU-A", bands=(48 * GIB, 12 * GIB, 24 * GIB, 12 * GIB, 8 * GIB))
    found = wishes(Request(1, 10 * GIB), placement)
    assert [wish["name"] for wish in found] == ["here", "any-0", "any-1", "any-2"]
    assert '.uuid.lowerAscii() in ["gpu-a", "gpu-b"]' in cel(found[0])
    assert cel(found[1]).endswith(f"vramMiB <= {12 * GIB}")
    assert cel(found[2]).endswith(f"vramMiB <= {24 * GIB}")
    assert "<=" not in cel(found[3]), "the last takes any that fits"
    assert all("vramMiB >= " in cel(wish) for wish in found)


def test_many_bands_are_cut_to_what_the_api_takes() -> None:
    bands = tuple(GIB * size for size in range(8, 40))
    found = wishes(Request(1, 8 * GIB), planned("a", bands=bands))
    assert len(found) == 8
    assert [wish["name"] for wish in found][-1] == "any-6"
    assert cel(found[6]).endswith(f"<= {13 * GIB}")
    assert "<=" not in cel(found[7])


def test_very_many_planned_gpus_are_not_listed() -> None:
    """A selector holds 10 KiB; above that the bands alone steer."""
    many = Placement("w1", tuple(Slot("n", (f"gpu-{i}",)) for i in range(129)))
    assert [wish["name"] for wish in wishes(Request(), many)] == ["any-0"]
    most = Placement("w1", many.slots[:128])
    assert [wish["name"] for wish in wishes(Request(), most)] == ["here", "any-0"]


def test_without_steering_there_is_no_here() -> None:
    assert [w["name"] for w in wishes(Request(), planned("a"), steer=False)] == ["any-0"]


def test_a_shared_gpu_is_charged_its_budget_and_one_share() -> None:
    for wish in wishes(Request(1, 6 * GIB, Sharing.SHARED), planned("a", bands=(8192, 12288))):
        assert wish["capacity"] == {"requests": {"memory": "6144Mi", "shares": "1"}}
        assert ">=" not in cel(wish), "a budget is charged, not compared"


def test_a_budget_is_rounded_up_to_a_step() -> None:
    (wish,) = wishes(Request(1, 1000, Sharing.SHARED))
    assert wish["capacity"]["requests"]["memory"] == "1024Mi"


def test_several_gpus_are_different_ones() -> None:
    claim = claim_spec(Request(2), ANY)["devices"]
    assert claim["requests"][0]["firstAvailable"][0]["count"] == 2
    assert claim["constraints"] == [
        {"requests": ["gpu"], "distinctAttribute": "gpu.podwarden.io/uuid"}
    ]
    assert "constraints" not in claim_spec(Request(1), ANY)["devices"]


def test_only_its_own_holds_are_tolerated() -> None:
    for wish in wishes(Request(), planned("a")):
        assert wish["tolerations"] == [
            {"key": "podwarden.io/hold", "operator": "Equal", "value": "w1", "effect": "NoSchedule"}
        ]


def test_models_are_compared_without_case_and_cannot_break_out() -> None:
    (wish,) = wishes(Request(model=("NVIDIA GeForce RTX 3090", 'a"] || true || x in ["')))
    assert cel(wish) == (
        'device.attributes["gpu.podwarden.io"].model.lowerAscii() in '
        '["rtx 3090", "a\\"] || true || x in [\\""]'
    )


@pytest.mark.parametrize(
    ("text", "condition"),
    [(">=8.9", 'semver("8.9.0")) >= 0'), ("8.6", 'semver("8.6.0")) == 0'), (">=10.0", 'semver("10.0.0")) >= 0')],
)  # fmt: skip
def test_compute_capability_is_compared_by_number(text: str, condition: str) -> None:
    (wish,) = wishes(Request(compute=text))
    attribute = 'device.attributes["gpu.podwarden.io"].computeCapability'
    assert cel(wish) == f"has({attribute}) && {attribute}.compareTo({condition}"


def test_shared_encoder_sessions_are_charged_where_they_are_counted() -> None:
    """P-59: a card that counts sessions, and one without a limit, which has no such capacity."""
    request = Request(1, 2 * GIB, Sharing.SHARED, encoder_sessions=3)
    found = wishes(request, planned("a", bands=(8192, 12288, 16384, 24576)))
    names = [wish["name"] for wish in found]
    assert names[:4] == ["here-counted", "here-free", "any-0-counted", "any-0-free"]
    assert len(names) == 8
    for wish in found:
        counted = wish["name"].endswith("counted")
        assert wish["capacity"]["requests"].get("encoders") == ("3" if counted else None)
        assert ('!("encoders" in' in cel(wish)) is not counted


def test_a_whole_card_needs_enough_encoder_sessions_but_pays_none() -> None:
    (wish,) = wishes(Request(encoder_sessions=3))
    capacity = 'device.capacity["gpu.podwarden.io"]'
    assert cel(wish) == (
        f'(!("encoders" in {capacity}) || {capacity}.encoders.compareTo(quantity("3")) >= 0)'
    )
    assert "capacity" not in wish


def test_another_driver_is_asked_in_its_own_words() -> None:
    dialect = dialect_of("gpu.nvidia.com")
    assert dialect == NVIDIA
    request = Request(2, 16 * GIB, model=("RTX 3090",), compute=">=8.0", encoder_sessions=2)
    placement = planned("GPU-A", bands=(16 * GIB, 24 * GIB))
    here, small, any_ = wishes(request, placement, dialect=dialect)
    assert here["deviceClassName"] == "gpu.nvidia.com"
    assert '["rtx 3090"].exists(m, device.attributes["gpu.nvidia.com"].productName' in cel(here)
    assert f'memory.compareTo(quantity("{vram_floor(16 * GIB)}Mi")) >= 0' in cel(any_)
    assert f'memory.compareTo(quantity("{16 * GIB}Mi")) <= 0' in cel(small)
    assert 'device.attributes["gpu.nvidia.com"].cudaComputeCapability' in cel(any_)
    assert "vramMiB" not in cel(any_)
    assert "encoders" not in cel(any_)


def test_a_shared_piece_of_another_driver_has_no_shares() -> None:
    request = Request(1, 4 * GIB, Sharing.SHARED)
    (wish,) = wishes(request, dialect=dialect_of("gpu.example.com"))
    assert wish["capacity"]["requests"] == {"memory": "4096Mi"}
    assert wish["deviceClassName"] == "gpu.example.com"


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (Request(sharing=Sharing.SHARED), "gpu.vram"),
        (Request(0), "gpu.count"),
        (Request(33), "gpu.count"),
        (Request(compute="eight"), "gpu.compute"),
        (Request(compute="<9.0"), "gpu.compute"),
    ],
)
def test_what_no_claim_can_say_is_refused(request_: Request, field: str) -> None:
    with pytest.raises(Invalid) as caught:
        claim_spec(request_, ANY)
    assert [problem.field for problem in caught.value.problems] == [field]
