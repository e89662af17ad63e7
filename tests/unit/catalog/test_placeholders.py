"""Placeholders: filled on the tree, never as text that could become structure."""

from hypothesis import given
from hypothesis import strategies as st

from podwarden.catalog.filling import Hole, fill, holes

VALUES = {"name": "web", "port": 80, "on": True, "off": False, "empty": ""}


def filled(tree, **values):
    return fill(tree, {**VALUES, **values}).value


def test_alone_it_keeps_its_type_and_inside_it_is_written_out():
    assert filled({"a": "${port}", "b": "x-${name}:${port}", "c": "${on}", "d": "is ${off}"}) == {
        "a": 80, "b": "x-web:80", "c": True, "d": "is false",
    }  # fmt: skip


def test_an_entry_of_nothing_but_an_empty_parameter_is_left_out():
    assert filled({"a": "${empty}", "b": ["${empty}", "x"], "c": "-${empty}", "d": "${off}"}) == {
        "b": ["x"],
        "c": "-",
        "d": False,
    }


def test_two_dollars_mean_the_characters_themselves():
    assert filled("$${name} costs $5 ${name}") == "${name} costs $5 web"


def test_what_is_no_text_stays():
    tree = {"a": 1, "b": None, "c": [True, 2.5]}
    assert filled(tree) == tree


def test_conditions_in_lists():
    tree = [{"when": "name", "a": "${name}"}, {"unless": "name", "b": 1}, {"when": "empty", "c": 1}, {"unless": "empty", "d": 1},
            {"when": "name", "unless": "port", "e": 1}]  # fmt: skip
    assert filled(tree) == [{"a": "web"}, {"d": 1}]


def test_a_value_is_never_read_as_a_placeholder_or_structure():
    assert filled({"a": "${name}"}, name="${port}") == {"a": "${port}"}
    assert filled({"a": "x ${name}"}, name="$${port} ]}\n- b") == {"a": "x $${port} ]}\n- b"}


@given(st.text())
def test_any_text_goes_through_unchanged(text):
    result = filled({"a": "${name}", "b": ["<${name}>"]}, name=text)
    assert result["b"] == [f"<{text}>"]
    assert result.get("a", "") == text


def test_the_parameters_that_shaped_a_place_are_known():
    result = fill(
        {"a": [{"when": "empty", "x": 1}, {"b": "${name}-${port}"}], "c": "plain"}, VALUES
    )
    assert result.value == {"a": [{"b": "web-80"}], "c": "plain"}
    assert result.used == {"a[0].b": ("name", "port")}


def test_holes_are_listed_in_order():
    tree = {"a": "${one} $${not} ${two", "b": [{"when": "three", "x${four}": 1}], "when": 5}
    assert list(holes(tree, "w")) == [
        Hole("w.a", "one"), Hole("w.a", ""), Hole("w.b[0].when", "three"), Hole("w.b[0].x${four}", "x${four}", in_key=True),
    ]  # fmt: skip
