"""Size and shape of the code: budgets, forbidden names, forbidden places."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULE_LINES = 400
FUNCTION_LINES = 60
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
# The outer edge of a loop or a request, where anything may arrive and is recorded once.
BROAD_EXCEPT_ALLOWED = 8


def tracked(*patterns: str) -> list[Path]:
    out = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", *patterns],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    return sorted(ROOT / name for name in out.split("\0") if name and (ROOT / name).is_file())


PYTHON = tracked("podwarden/*.py")


def functions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def is_broad(caught: ast.expr | None) -> bool:
    return caught is None or (
        isinstance(caught, ast.Name) and caught.id in {"Exception", "BaseException"}
    )


def test_there_is_something_to_measure() -> None:
    assert len(PYTHON) > 30


@pytest.mark.parametrize("path", PYTHON, ids=lambda p: str(p.relative_to(ROOT)))
def test_module_and_functions_within_budget(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= MODULE_LINES
    long = {
        f.name: f.end_lineno - f.lineno + 1
        for f in functions(ast.parse(text))
        if f.end_lineno and f.end_lineno - f.lineno + 1 > FUNCTION_LINES
    }
    assert not long


def test_no_bag_of_helpers() -> None:
    bags = [p for p in tracked() if FORBIDDEN_NAMES & {part.split(".")[0] for part in p.parts}]
    assert not bags


def test_broad_excepts_stand_only_at_outer_edges() -> None:
    broad = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in PYTHON
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ExceptHandler) and is_broad(node.type)
    ]
    assert len(broad) <= BROAD_EXCEPT_ALLOWED, broad


def test_each_package_says_its_duty() -> None:
    silent = [
        str(p.relative_to(ROOT))
        for p in PYTHON
        if p.name == "__init__.py" and not ast.get_docstring(ast.parse(p.read_text()))
    ]
    assert not silent


def test_no_registry_host_and_no_path_of_a_machine_in_the_tree() -> None:
    hosts = "npmjs[.]org|pythonhosted[.]org|pypi[.]org|proxy[.]golang[.]org|deb[.]debian[.]org"
    pattern = re.compile(rf"{hosts}|/work/|[.][.]/shared")
    found = []
    for path in tracked():
        if path == Path(__file__) or path.suffix in {".sum", ".png"}:
            continue
        for number, line in enumerate(
            path.read_text(encoding="utf-8", errors="replace").splitlines(), 1
        ):
            if pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}")
    assert not found


def test_nothing_binary_or_large_is_tracked() -> None:
    wrong = [
        str(p.relative_to(ROOT))
        for p in tracked()
        if p.suffix != ".png" and (b"\0" in p.read_bytes() or p.stat().st_size > 1_500_000)
    ]
    assert not wrong
