"""Numbers as people know them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from short_notation import NOW, claimant, device

from podwarden.scheduling.need import compute_matches, mismatch, need_of
from podwarden.scheduling.words import (
    TIMES,
    asked_gb,
    both,
    card,
    clock,
    either,
    gpu,
    need_words,
    short,
)


@pytest.mark.parametrize(
    ("mib", "text"),
    [
        (24268, "24 GB"), (23028, "24 GB"), (24576, "24 GB"), (22528, "22 GB"), (12041, "12 GB"),
        (11019, "11 GB"), (16376, "16 GB"), (15360, "16 GB"), (8105, "8 GB"), (32607, "32 GB"),
        (46068, "48 GB"), (81559, "80 GB"), (97871, "96 GB"), (143771, "141 GB"), (124546, "128 GB"),
        (7000, "6 GB"), (512, "512 MiB"), (0, "0 MiB"), (-5, "0 MiB"), (1 << 20, "1024 GB"),
    ],
)  # fmt: skip
def test_nominal_sizes(mib, text):
    assert card(mib) == text


def test_times_do_not_change_from_minute_to_minute():
    assert clock(NOW + timedelta(hours=2), NOW) == "14:00 UTC"
    assert clock(NOW + timedelta(days=3), NOW) == "5 Jan 12:00 UTC"


def test_lists_and_names_stay_short():
    assert both(["a"]) == "a"
    assert either(["a", "b", "c"]) == "a, b or c"
    assert both(list("abcdef")) == "a, b, c and 3 more"
    assert short("x" * 100) == "x" * 39 + "…"
    assert short("a\nb\x1b[31m") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}[31m"
    assert gpu(device("n1", 2, "A10 24GB"), 2) == "n1 A10 #2"
    assert asked_gb(80 * 1024) == "80GB"


@pytest.mark.parametrize(
    ("request_", "at_once", "text"),
    [
        ("20GB", 1, "1 GPU with 20 GB"),
        ("any", 1, "1 GPU"),
        ("2x16GB", 1, "2 GPUs with 16 GB each on one node"),
        ("6GB shared", 1, "6 GB of a shared GPU"),
        ("2x6GB shared", 3, f"3 {TIMES} 6 GB on each of 2 shared GPUs of one node at the same time"),
        ("8GB model=A10|L4 compute=>=8.6 enc=1", 1, "1 GPU with 8 GB, model A10 or L4, compute capability >=8.6, 1 encoder session"),
        ("none", 1, "1 CPU core and 1.0 GiB of memory"),
    ],
)  # fmt: skip
def test_needs_in_words(request_, at_once, text):
    assert need_words(need_of(claimant("a", request_)), at_once) == text


def test_no_memory_asked():
    assert need_words(need_of(claimant("a", {"memory": 0, "cpu": 0.5}))) == (
        "0.5 CPU cores and 0 GiB of memory"
    )


@pytest.mark.parametrize(
    ("wanted", "have", "fits"),
    [
        (">=8.9", "8.10", True), (">=8.9", "8.6", False), ("8.6", "8.6", True), ("8.6", "8.60", False),
        ("==8.6", "8.6", True), ("=8.6", "8.6", True), ("8", "8.0", True), (">8.6", "8.6", False),
        (">8.6", "9", True), ("<8.6", "8.5", True), ("<8.6", "8.6", False), ("<=8.6", "8.6", True),
        ("<=8.6", "8.7", False), ("around 8", "8.0", False), (">=8.0", "", False), (">=8.0", "x", False),
        (">= 8.0", "12.0", True),
    ],
)  # fmt: skip
def test_compute_capability(wanted, have, fits):
    assert compute_matches(wanted, have) is fits


def test_a_budget_counts_in_whole_steps():
    need = need_of(claimant("a", "1.1GB shared"))
    assert need.budget_mib == 1152
    assert need_of(claimant("a", "0.25GB shared")).budget_mib == 256
    assert mismatch(need, device("n1", 0, "A10 24GB")) is None


def test_a_request_for_no_gpu_is_none():
    assert need_of(claimant("a", "0x8GB")).count == 0
