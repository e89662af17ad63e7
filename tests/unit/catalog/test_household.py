"""One machine with a 12 GB and a 24 GB GPU, and what a household runs on it, planned by the real planner."""

from datetime import UTC, datetime, timedelta

import pytest

from podwarden.catalog import Overrides, load
from podwarden.domain.inventory import Device, Node
from podwarden.domain.placement import Claimant, Snapshot
from podwarden.domain.units import promisable
from podwarden.scheduling.plan import plan

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SMALL, LARGE = "gpu-rtx-3060", "gpu-rtx-3090"


def device(index, uuid, model, vram_mib):
    return Device(
        "n3", index, uuid, model, vram_mib, promisable(vram_mib), compute_capability="8.6"
    )


def claimant(place, spec):
    job = spec.job
    return Claimant(
        workload=spec.name,
        name=spec.name,
        endless=spec.endless,
        priority=int(spec.priority),
        queued_at=NOW - timedelta(minutes=10 - place),
        request=spec.gpu,
        cpu_milli=spec.cpu_milli,
        memory_mib=spec.instance_memory_mib,
        slots=job.tasks if job else spec.replicas,
        time_limit=timedelta(seconds=job.time_limit_s) if job and job.time_limit_s else None,
        preemptible=spec.preemptible,
    )


def deploy(*wanted):
    """What the planner does with (template, options) on the machine alone: name -> GPUs of its instances."""
    catalogue = load()
    specs = [
        catalogue.resolve(name, overrides=Overrides(**options) if options else None)
        for name, options in wanted
    ]
    devices = (device(0, SMALL, "RTX 3060", 12288), device(1, LARGE, "RTX 3090", 24576))
    node = Node("n3", cpu_milli=16_000, memory_mib=64 * 1024, devices=devices)
    claimants = tuple(claimant(place, spec) for place, spec in enumerate(specs))
    made = plan(Snapshot("home", NOW, nodes=(node,), claimants=claimants), NOW)
    assert made.refusals == ()
    placed = {p.workload: [d for slot in p.slots for d in slot.devices] for p in made.placements}
    return placed, {spec.name: spec for spec in specs}


def test_ollama_frigate_and_jellyfin_share_one_gpu_and_blender_uses_the_other():
    placed, specs = deploy(
        ("frigate", {}), ("jellyfin", {}), ("ollama", {"sharing": "shared"}), ("blender-render", {})
    )
    assert placed["frigate"] == placed["jellyfin"] == placed["ollama"] == [SMALL]
    assert placed["blender-render"] == [LARGE], "one frame at a time, on the GPU that is left"
    promised = sum(specs[name].gpu.vram_mib for name in ("frigate", "jellyfin", "ollama"))
    assert promised == 8 * 1024
    assert promised <= promisable(12288)


@pytest.mark.parametrize("media", ["jellyfin", "plex", "tdarr"])
def test_more_of_the_household_fits_beside_them(media):
    placed, _ = deploy(
        ("frigate", {}), ("ollama", {"sharing": "shared"}), ("text-to-speech", {}), (media, {}),
        ("blender-render", {}),
    )  # fmt: skip
    assert set(placed) == {"frigate", "ollama", "text-to-speech", media, "blender-render"}


def test_ollama_alone_takes_the_smallest_gpu_that_fits_whole():
    placed, _ = deploy(("ollama", {}))
    assert placed == {"ollama": [SMALL]}


def test_vllm_takes_the_large_one_and_leaves_the_small_one_to_the_household():
    placed, _ = deploy(
        ("vllm", {}), ("jellyfin", {}), ("frigate", {}), ("ollama", {"sharing": "shared"})
    )
    assert placed["vllm"] == [LARGE]
    assert placed["jellyfin"] == placed["frigate"] == placed["ollama"] == [SMALL]
