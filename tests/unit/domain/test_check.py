"""The reader of untrusted mappings: what it shows, names and bounds."""

import re

import pytest

from podwarden.domain.check import (
    MOST_PROBLEMS,
    Problems,
    Section,
    as_text,
    join,
    nearest,
    show,
    text_fault,
)


def section(data, keys=("a", "b"), **more):
    return Section(Problems(), data, "", keys, **more)


def faults(part):
    return [(p.field, p.value, p.fix) for p in part.problems.found]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("text", "text"), ("", '""'), (True, "true"), (False, "false"), (3, "3"), (2.5, "2.5"), (None, "null"),
        ({"a": 1}, "a section"), ([1], "a list"), ((1,), "a list"), (float("nan"), "nan"), (b"x", "something that is no text"),
        ("a\x00\u202eb", "a\ufffd\ufffdb"), ("x" * 500, "x" * 59 + "…"),
    ],
)  # fmt: skip
def test_show_prints_one_safe_line(value, shown):
    assert show(value) == shown


def test_numbers_too_long_to_print_are_named():
    # Python itself refuses to print them.
    assert show(10**5000) == "a very large number"


def test_show_never_walks_into_a_container():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert show(deep) == "a list"


def test_join_writes_dotted_paths():
    assert join("", "gpu") == "gpu"
    assert join("gpu", "vram") == "gpu.vram"
    assert join("ports", 0) == "ports[0]"
    assert join("", "x" * 100) == "x" * 39 + "…"


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), (True, "true"), (False, "false"), (7, "7"), (7.5, "7.5"), (None, None), ([], None), (10**50, None),
     (float("inf"), None)],
)  # fmt: skip
def test_as_text(value, text):
    assert as_text(value) == text


@pytest.mark.parametrize(
    ("text", "lines", "fault"),
    [
        ("fine", False, ""), ("two\nlines", True, ""), ("two\nlines", False, "one line"), ("\0", True, "NUL"),
        ("\ud800", True, "surrogates"), ("\u202e", False, "invisible"), ("x" * 11, True, "at most 10 bytes"),
        ("ä" * 6, True, "at most 10 bytes"),
    ],
)  # fmt: skip
def test_text_faults(text, lines, fault):
    found = text_fault(text, lines=lines, most=10)
    assert fault in found
    assert bool(found) == bool(fault)


def test_nearest_is_cheap_for_huge_words():
    assert nearest("x" * 10**6, ["vram"]) == []
    assert nearest("VRAMM", ["vram", "count"]) == ["vram"]


def test_unknown_keys_are_named_with_the_nearest_or_the_place_where_they_belong():
    part = section({"vramm": 1, "zzz": 1, "cpu": 1, "over-budget": 1, 5: 1}, ("vram",), elsewhere={"cpu": "resources.cpu", "over_budget": "gpu.over_budget"})  # fmt: skip
    assert faults(part) == [
        ("vramm", "", "no such key: did you mean vram?"),
        ("zzz", "", "no such key; known are vram"),
        ("cpu", "", "no such key here: write resources.cpu"),
        ("over-budget", "", "no such key here: write gpu.over_budget"),
        ("5", "", "a key must be a word: quote it"),
    ]


def test_null_is_left_out():
    part = section({"a": None})
    assert not part.has("a")
    assert part.text("a", "d") == "d"
    assert part.whole("a", 1, 2, 2) == 2
    assert part.flag("a") is False
    assert part.parsed("a", int) is None
    assert part.section("a", ()) is None
    assert part.items("a", 1) == []
    assert part.pairs("a", re.compile("x"), "", lines=True, most=1, longest=1) == []
    assert faults(part) == []


def test_wrong_types_are_named_and_a_default_goes_on():
    part = section({"a": [1], "b": {"x": 1}})
    assert part.text("a", "d") == "d"
    assert part.flag("b") is False
    assert part.whole("a", 1, 5, 3) == 3
    assert part.parsed("b", int) is None
    assert part.section("a", ("k",)) is None
    assert part.items("b", 5) == []
    assert part.pairs("a", re.compile("x"), "", lines=True, most=1, longest=1) == []
    assert [f[0] for f in faults(part)] == ["a", "b", "a", "b", "a", "b", "a"]
    assert not part.good("a")


def test_numbers_that_are_none():
    for value in (True, "2", 2.0, 0, 6, float("nan")):
        part = section({"a": value})
        assert part.whole("a", 1, 5, 1) == 1
        assert faults(part) == [("a", show(value), "a whole number from 1 to 5")]


@pytest.mark.parametrize(
    ("value", "flag"),
    [(True, True), ("true", True), ("True", True), (False, False), ("FALSE", False)],
)
def test_flags(value, flag):
    part = section({"a": value})
    assert part.flag("a") is flag
    assert faults(part) == []


def test_lists_are_bounded_and_each_entry_is_named():
    part = section({"a": list(range(4)), "b": ["x", {"y": 1}, "x\0", "UP", "x"]})
    assert part.items("a", 3) == []
    assert part.names("b", 9, re.compile("[a-z]+"), "lower-case letters") == ("x",)
    assert faults(part) == [
        ("a", "4 entries", "at most 3"),
        ("b[1]", "a section", "a text"),
        ("b[2]", "x\ufffd", "text without NUL characters"),
        ("b[1]", "UP", "lower-case letters"),
        ("b[2]", "x", "named twice: keep one"),
    ]


def test_pairs_name_each_fault_but_never_quote_a_value():
    part = section(
        {"a": {"B": "2", "A": 1, "c d": 1, "E": ["secret"], "F": "hush\0", 7: "x", "G": None}}
    )
    assert part.pairs("a", re.compile("[A-Z]"), "a capital", lines=True, most=9, longest=99) == [
        ("A", "1"),
        ("B", "2"),
        ("G", ""),
    ]
    assert [f[:2] for f in faults(part)] == [("a.c d", ""), ("a.E", ""), ("a.F", ""), ("a.7", "")]
    many = section({"a": {str(n): "" for n in range(10)}})
    assert many.pairs("a", re.compile("."), "", lines=True, most=9, longest=9) == []
    assert faults(many) == [("a", "10 entries", "at most 9")]


def test_sections_in_a_list():
    part = section({"a": [{"k": 1}, "no"]})
    assert [s.path for s in part.sections("a", ("k",), 5)] == ["a[0]"]
    assert faults(part) == [("a[1]", "no", "a section with keys: k")]


def test_a_hostile_file_gets_a_short_answer():
    known = tuple(f"known{n}" for n in range(50))
    part = section({f"key{n}" * 10: 1 for n in range(200_000)}, known)
    assert len(part.problems.found) == MOST_PROBLEMS


def test_faults_beyond_the_limit_are_counted_as_faults_but_not_listed():
    part = section({"a": ["x\0"] * 200}, ("a",))
    assert part.texts("a", 1000) == []
    assert len(part.problems.found) == MOST_PROBLEMS
    assert part.problems.has("a[199]")
