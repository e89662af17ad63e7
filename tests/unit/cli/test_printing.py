from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from podwarden.cli.printing import safe, table, width


@given(st.text())
def test_nothing_that_drives_a_terminal_gets_through(text):
    shown = safe(text)
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in shown)
    assert not any(
        unicodedata.bidirectional(c)
        in ("RLO", "LRO", "RLE", "LRE", "RLI", "LRI", "FSI", "PDF", "PDI")
        for c in shown
    )


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "Zs"])))
def test_ordinary_text_stays_as_it_is(text):
    assert safe(text) == text


def test_escapes_can_be_read():
    assert safe("\x1b[2J\x07\u202e\x9b") == r"\x1b[2J\x07\u202e\x9b"
    assert safe("a\tb") == r"a\tb"
    assert safe("a\tb", tabs=True) == "a\tb"
    assert safe("grün, 日本") == "grün, 日本"


def test_columns_line_up_and_sizes_by_their_whole_part():
    made = table(
        ("NAME", "FREE", "X"), [("a", "24.0 GiB", "1"), ("long", "8.1 GiB", "2"), ("b", "0", "")]
    )
    assert made.split("\n") == [
        "NAME  FREE      X",
        "a     24.0 GiB  1",
        "long   8.1 GiB  2",
        "b      0",
    ]


def test_wide_letters_take_two_columns():
    assert width("日本") == 4
    assert width("e\u0301") == 1
    lines = table(("A", "B"), [("日本", "x"), ("abc", "y")]).split("\n")
    assert width(lines[1].partition("x")[0]) == width(lines[2].partition("y")[0])


def test_a_cell_with_line_ends_stays_one_line():
    assert len(table(("A",), [("x\ny\r\x1bz",)]).split("\n")) == 2


def test_an_empty_table_has_its_heads():
    assert table(("A", "B"), []) == "A  B"
