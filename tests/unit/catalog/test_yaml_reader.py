"""YAML reading: scalars stay what was typed, lines are kept, everything that fools or floods a reader is refused."""

import pytest
import yaml

from podwarden.catalog import reader
from podwarden.catalog.reader import MOST_BYTES, MOST_DEPTH, Tree, read
from podwarden.errors import Invalid, Problem


def refusal(text):
    with pytest.raises(Invalid) as caught:
        read(text, "f.yaml")
    assert caught.value.source == "f.yaml"
    assert len(caught.value.problems) == 1
    return caught.value.problems[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), ("-5", -5), ("0", 0), ("1.5", 1.5), ("true", True), ("false", False), ("null", None), ("~", None), ("", None),
        ("1.10", "1.10"), ("010", "010"), ("0x1F", "0x1F"), ("1e3", "1e3"), ("10:20", "10:20"), ("no", "no"), ("yes", "yes"),
        ("on", "on"), ("True", "True"), ("2026-01-02", "2026-01-02"), ("1_000", "1_000"), ("-0", "-0"), ("-0.0", -0.0),
        (".5", ".5"), (".inf", ".inf"), ("1-250", "1-250"), ("9" * 30, "9" * 30), ("0.1234567890123456789", "0.1234567890123456789"),
        ('"1"', "1"), ("'true'", "true"), ('""', ""), ("|\n  a\n  b\n", "a\nb\n"), ("12345678901234567.5", "12345678901234567.5"),
    ],
)  # fmt: skip
def test_scalars_stay_what_was_typed(text, value):
    found = read(f"key: {text}\n", "f").value["key"]
    assert found == value
    assert type(found) is type(value)


def test_keys_are_always_text():
    assert read("1: a\ntrue: b\nno: c\n", "f").value == {"1": "a", "true": "b", "no": "c"}


def test_lines_of_keys_and_entries():
    tree = read(
        "name: a\nports:\n  - port: 1\n  -\n    port: 2\ngpu: {count: 1,\n  vram: 8}\n", "f"
    )
    assert tree.lines == {
        "name": 1, "ports": 2, "ports[0]": 3, "ports[0].port": 3, "ports[1]": 5, "ports[1].port": 5,
        "gpu": 6, "gpu.count": 6, "gpu.vram": 7,
    }  # fmt: skip
    assert tree.line("gpu.model[3]") == 6
    assert tree.line("ports[1].name") == 5
    assert tree.line("image") is None


def test_problems_get_lines_in_the_order_of_the_file():
    tree = Tree({}, {"b": 1, "a": 2})
    found = tree.located(
        [Problem("a", "", ""), Problem("c", "", ""), Problem("b", "", ""), Problem("x", "", "", 9)]
    )
    assert [(p.field, p.line) for p in found] == [("c", None), ("b", 1), ("a", 2), ("x", 9)]


def test_json_and_a_byte_order_mark_are_fine():
    assert read('{"name": "a", "n": [1, null]}', "f").value == {"name": "a", "n": [1, None]}
    assert read("\ufeffname: a\n", "f").value == {"name": "a"}


@pytest.mark.parametrize(
    ("text", "line", "fix"),
    [
        ("a: 1\nb: &x 2\n", 2, "no anchors"),
        ("a: 1\nb: *x\n", 2, "no anchors"),
        ("a: &a [*a]\n", 1, "no anchors"),
        ("&k a: 1\n", 1, "no anchors"),
        ("a: 1\nb: !!python/object/apply:os.system [x]\n", 2, "no tags"),
        ("a: !x y\n", 1, "no tags"),
        ("a: ! y\n", 1, "no tags"),
        ("a: 1\nb:\n  <<: {c: 1}\n", 3, "no merge keys"),
        ("a: 1\nb: 2\na: 3\n", 3, "stands twice, first in line 1"),
        ("? [a]\n: 1\n", 1, "a key must be a word"),
        ("? {a: 1}\n: 1\n", 1, "a key must be a word"),
        ("a: 1\n---\nb: 2\n", 2, "one document per file"),
        ("a:\n\tb: 1\n", 2, "YAML does not take tabs"),
        ("a:\n  b: 1\n \tc: 2\n", 3, "YAML does not take tabs"),
        ("a: [1\nb: 2\n", 2, "cannot be read as YAML"),
        ("a: {b: ${c}}\n", 1, "put text with ${…} in quotes"),
        ("a: 'x\n", 2, "cannot be read as YAML"),
        ("a: b: c\n", 1, "cannot be read as YAML"),
        ("a: 1\nb: \x01\n", 2, "without control characters"),
        ("a: \0\n", 1, "without control characters"),
        ("a: \x7f\n", 1, "without control characters"),
        ("a: \x9f\n", None, "without control characters"),
        ("", None, "the file is empty"),
        ("# nothing\n", None, "the file is empty"),
        ("null\n", None, "the file is empty"),
        ("a: \ud800\n", None, "valid Unicode"),
    ],
)  # fmt: skip
def test_refused_with_the_line(text, line, fix):
    problem = refusal(text)
    assert problem.line == line
    assert fix in problem.fix


def test_the_billion_laughs_are_refused_at_the_first():
    bomb = "a: &a [x, x]\n" + "".join(
        f"{c}: &{c} [*{p}, *{p}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert refusal(bomb).line == 1


def test_depth_is_bounded():
    deep = "[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1)
    assert read("[" * MOST_DEPTH + "]" * MOST_DEPTH, "f").value != []
    assert "nested deeper" in refusal(f"a: {deep}").fix
    assert refusal("[" * 100_000).line == 1
    assert "{" not in refusal("{a: " * 50_000).value


def test_size_and_number_of_entries_are_bounded():
    assert refusal("a" * (MOST_BYTES + 1)).value == f"{MOST_BYTES + 1:,} bytes"
    assert "more than 50,000 entries" in refusal("[" + "1," * 60_000 + "]").fix
    assert len(read("a: " + "x" * (MOST_BYTES - 10), "f").value["a"]) == MOST_BYTES - 10


def test_both_parsers_read_the_same(request):
    # The pure parser is what runs where PyYAML was built without libyaml.
    text = "a: 1\nb: [x, '1', 1.10]\nc: {d: null}\ne: |\n  x\n"
    reading = reader._Reading("f")
    tree = reading.document(yaml.parse(text, Loader=yaml.SafeLoader))
    assert tree == read(text, "f")
    assert tree.value == {"a": 1, "b": ["x", "1", "1.10"], "c": {"d": None}, "e": "x\n"}
