"""The reference pages list exactly what the code knows, and their examples work."""

import re
from pathlib import Path

import pytest

from podwarden.catalog import load, read_file
from podwarden.catalog.parameters import KINDS
from podwarden.catalog.template import KEYS as TEMPLATE_KEYS
from podwarden.catalog.template import PARAMETER_KEYS
from podwarden.domain.document import KEYS, PRIORITIES, RESOURCE_KEYS
from podwarden.domain.reason import Code
from podwarden.domain.request import OverBudget, Sharing
from podwarden.domain.sections import GPU_KEYS, HEALTH_KEYS, JOB_KEYS, PORT_KEYS, VOLUME_KEYS
from podwarden.domain.workload import Expose, Kind, Update, VolumeKind

DOCS = Path(__file__).parents[3] / "docs"


def page(name):
    return (DOCS / name).read_text(encoding="utf-8")


def rows(name):
    """(first cell without its backticks, the whole row) of every table row whose first cell is code."""
    return [
        (found[1], found[0])
        for found in re.finditer(r"^\| `([^`]+)` \|.*$", page(name), re.MULTILINE)
    ]


def test_the_workload_file_page_has_every_key_in_order():
    expected = [
        *KEYS,
        *(f"gpu.{key}" for key in GPU_KEYS),
        *(f"resources.{key}" for key in RESOURCE_KEYS),
        *(f"ports[].{key}" for key in PORT_KEYS),
        *(f"volumes[].{key}" for key in VOLUME_KEYS),
        *(f"health.{key}" for key in HEALTH_KEYS),
        *(f"job.{key}" for key in JOB_KEYS),
    ]
    assert [key for key, _ in rows("workload-file.md")] == expected


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("kind", Kind), ("update", Update), ("gpu.sharing", Sharing), ("gpu.over_budget", OverBudget),
        ("ports[].expose", Expose), ("volumes[].kind", VolumeKind), ("priority", PRIORITIES),
    ],
)  # fmt: skip
def test_the_workload_file_page_has_every_word(key, words):
    row = dict(rows("workload-file.md"))[key]
    assert all(f"`{word}`" in row for word in words)


def test_the_examples_of_the_workload_file_page_are_read():
    examples = re.findall(r"```yaml\n(.*?)```", page("workload-file.md"), re.DOTALL)
    assert [read_file(text, "example").name for text in examples] == ["ollama", "render"]


def test_the_templates_page_has_every_key_and_its_example_works(tmp_path):
    expected = [*TEMPLATE_KEYS, *(f"parameters[].{key}" for key in PARAMETER_KEYS)]
    built_in = sorted(load().templates)
    assert [key for key, _ in rows("templates.md")] == [*expected, *built_in]
    types = dict(rows("templates.md"))["parameters[].type"]
    assert all(f"`{kind}`" in types for kind in KINDS)
    (example,) = re.findall(r"```yaml\n(.*?)```", page("templates.md"), re.DOTALL)
    (tmp_path / "files.yaml").write_text(example)
    found = load(tmp_path)
    assert found.broken == ()
    assert found.resolve("files", parameters={"storage": "media"}).volumes[0].storage == "media"
    assert found.templates["files"].parameters[0].sample() == "media:site"


def test_the_reason_codes_page_has_every_code_once_in_order():
    assert [code for code, _ in rows("reason-codes.md")] == [code.value for code in Code]


def test_every_reason_code_is_explained_and_answered():
    for code, row in rows("reason-codes.md"):
        _, _, means, helps, _ = (cell.strip() for cell in row.split("|"))
        assert means.endswith("."), code
        assert helps.endswith("."), code


@pytest.mark.parametrize(
    "name", ["workload-file.md", "templates.md", "reason-codes.md", "compose.md"]
)
def test_the_pages_use_no_words_of_the_engine(name):
    words = re.findall(r"[a-z]+", page(name).lower())
    assert not {
        "pod",
        "pods",
        "pvc",
        "taint",
        "taints",
        "namespace",
        "claim",
        "claims",
        "deployment",
    } & set(words)
