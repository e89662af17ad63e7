"""Sizes, CPU, durations: accepted and refused spellings, and that what is shown or written reads back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwarden.domain import units
from podwarden.domain.writing import write_cpu, write_duration, write_size, write_vram


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("16", 16384), (16, 16384), (7.5, 7680), ("16G", 16384), ("16GB", 16384), ("16Gi", 16384),
        ("16GiB", 16384), (" 16 GB ", 16384), ("0.25GB", 256), ("512Mi", 512), ("512MB", 512),
        ("512 MiB", 512), ("512M", 512), ("22.5GB", 23040),
    ],
)  # fmt: skip
def test_vram_is_what_people_buy(text, mib):
    assert units.parse_vram(text) == mib


@pytest.mark.parametrize(
    "text",
    ["16 gigs", "-1GB", "1e30GB", "", "0", "0GB", "0.1GB", "128Mi", "GB", "16GBs", "\u0661\u0666GB", "16.1234GB",
     "9999999GB", "999999GB999", "16\n17", True, False, float("inf"), float("nan"), 1e30, -4, "16TB"],
)  # fmt: skip
def test_vram_refuses_with_the_fix(text):
    with pytest.raises(ValueError) as caught:
        units.parse_vram(text)
    assert str(caught.value) == units.VRAM_FIX


def test_a_card_with_ecc_counts_as_what_it_was_sold_as():
    assert units.vram_floor(24 * 1024) <= 22.5 * 1024 < 24 * 1024
    assert units.vram_floor(16 * 1024) > 12 * 1024
    # The ratio that the documentation names, computed differently.
    assert units.vram_floor(1000) == 935


@pytest.mark.parametrize(
    ("total", "reserve"), [(8192, 256), (24576, 738), (81920, 2458), (1024, 256)]
)
def test_reserve_is_three_percent_or_256_mib(total, reserve):
    assert units.driver_reserve(total) == reserve


@pytest.mark.parametrize(
    ("total", "outside", "left"),
    [(24576, 0, 23808), (8192, 0, 7936), (8192, 1, 7808), (8192, 9000, 0), (200, 0, 0)],
)
def test_promisable_moves_in_steps_and_is_never_negative(total, outside, left):
    assert units.promisable(total, outside) == left


@given(st.integers(256, 400_000))
def test_every_card_that_counts_as_its_size_passes_its_own_floor(mib):
    smallest = units.vram_floor(mib)
    assert units.promisable(smallest) >= units.promised_floor(mib)
    assert units.promised_floor(mib) % 128 == 0


@pytest.mark.parametrize(
    ("text", "mib"),
    [("8Gi", 8192), ("8GiB", 8192), ("500Mi", 500), ("1G", 954), ("1GB", 954), ("1T", 953675), ("1.5Gi", 1536),
     ("2048Ki", 2), ("1048577", 2), (1048576, 1), ("1Ti", 1048576), ("1 MB", 1), ("2000k", 2), ("2000K", 2)],
)  # fmt: skip
def test_sizes_are_strict_and_rounded_up(text, mib):
    if text == "1 MB":  # below one MiB: a forgotten unit or a typing error
        with pytest.raises(ValueError):
            units.parse_size(text)
    else:
        assert units.parse_size(text) == mib


@pytest.mark.parametrize(
    "text", ["8", "", "8 gigs", "-8Gi", "8Pi", "1e9", True, "0Gi", "99999999Ti", "8gi"]
)
def test_sizes_refuse(text):
    with pytest.raises(ValueError, match=units.SIZE_FIX):
        units.parse_size(text)


@pytest.mark.parametrize(
    ("text", "milli"), [("2", 2000), (2, 2000), ("500m", 500), (0.5, 500), ("0.25", 250), ("1m", 1)]
)
def test_cpu(text, milli):
    assert units.parse_cpu(text) == milli


@pytest.mark.parametrize(
    "text", ["0", "", "-1", "two", "0.0001", "1.5m", True, "4097", "0m", 0.1 + 0.2]
)
def test_cpu_refuses(text):
    with pytest.raises(ValueError, match=units.CPU_FIX):
        units.parse_cpu(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("2h", 7200), ("1h30m", 5400), ("1d", 86400), ("1d2h3m4s", 93784)],
)
def test_durations(text, seconds):
    assert units.parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "10", 10, "10 m", "-1h", "1m1h", "0s", "99999d", True, "1w", "5min"]
)
def test_durations_refuse(text):
    with pytest.raises(ValueError, match=units.DURATION_FIX):
        units.parse_duration(text)


@given(st.integers(1, units.MAX_MIB))
def test_written_sizes_read_back(mib):
    assert units.parse_size(write_size(mib)) == mib


@given(st.integers(256, 999_999 * 1024))
def test_written_vram_reads_back(mib):
    assert units.parse_vram(write_vram(mib)) == mib


@given(st.integers(1, 4_096_000))
def test_written_cpu_reads_back(milli):
    assert units.parse_cpu(write_cpu(milli)) == milli


@given(st.integers(1, 10 * 366 * 86400))
def test_written_durations_read_back(seconds):
    assert units.parse_duration(write_duration(seconds)) == seconds


@given(st.text() | st.floats() | st.integers())
def test_no_parser_does_anything_but_accept_or_refuse(value):
    fixes = {
        units.parse_vram: units.VRAM_FIX,
        units.parse_size: units.SIZE_FIX,
        units.parse_cpu: units.CPU_FIX,
        units.parse_duration: units.DURATION_FIX,
    }
    for parser, fix in fixes.items():
        said, result = "", 1
        try:
            result = parser(value)
        except ValueError as error:
            said = str(error)
        assert result > 0
        assert said in ("", fix)


@pytest.mark.parametrize(
    ("mib", "text"),
    [(0, "0"), (11878, "11.5 GiB"), (24576, "24.0 GiB"), (1023, "0.9 GiB"), (50, "0.0 GiB")],
)
def test_measured_memory_is_rounded_down(mib, text):
    assert units.show_gib(mib) == text


@pytest.mark.parametrize(
    ("mib", "text"), [(16384, "16 GB"), (7680, "7.5 GB"), (512, "0.5 GB"), (6272, "6.12 GB")]
)
def test_asked_vram(mib, text):
    assert units.show_gb(mib) == text


@pytest.mark.parametrize(("milli", "text"), [(2000, "2"), (500, "0.5"), (1250, "1.25")])
def test_shown_cpu(milli, text):
    assert units.show_cpu(milli) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.4, "1.4 s"), (42, "42 s"), (119, "119 s"), (600, "10 min"), (7200, "2 h"), (7500, "2 h 5 min"),
     (172800, "2 d"), (273600, "3 d 4 h")],
)  # fmt: skip
def test_shown_durations(seconds, text):
    assert units.show_duration(seconds) == text
