"""A file that somebody gives to `deploy` or `plan`: a workload file, and what it is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podwarden.catalog.overrides import Overrides
from podwarden.catalog.reader import read
from podwarden.domain.check import show
from podwarden.domain.document import KEYS, from_document
from podwarden.domain.workload import Spec
from podwarden.errors import Invalid, Problem, Refused


def read_file(
    text: str,
    source: str,
    *,
    overrides: Overrides | None = None,
    parameters: Mapping[str, str] | None = None,
) -> Spec:
    """The spec of a workload file (YAML or JSON), with the options of the command line in it.

    source: the file's name, for messages. parameters: refused, a file has none. Invalid with every
    problem and its line; Refused (code COMPOSE_FILE) for a Compose file.
    """
    options = overrides or Overrides()
    problems = options.problems()
    for name, value in (parameters or {}).items():
        fix = "goes with a template; write the value into the file"
        problems.append(Problem("--set", show(f"{name}={value}"), fix))
    if problems:
        raise Invalid(problems)
    tree = read(text, source)
    _refuse_others(tree.value, source)
    try:
        return from_document(options.apply(tree.value))
    except Invalid as error:
        problems = [options.in_their_words(p) for p in error.problems]
        files = [p for p in problems if not p.field.startswith("--")]
        theirs = [p for p in problems if p.field.startswith("--")]
        raise Invalid([*theirs, *tree.located(files)], source="" if theirs else source) from error


def _refuse_others(value: Any, source: str) -> None:
    if not isinstance(value, dict):
        fix = "a workload file, a section with keys: " + ", ".join(KEYS)
        raise Invalid([Problem("file", show(value), fix, 1)], source=source)
    if isinstance(value.get("services"), dict):
        raise Refused(
            f"{source} is a Compose file. It becomes a workload for each of its services: "
            "`podwarden deploy` takes it, and with --dry-run it shows what it becomes.",
            code="COMPOSE_FILE",
        )
    if "workload" in value and "template" in value:
        fix = "this is a template: put it into the folder of templates, then deploy it by its name"
        raise Invalid([Problem("template", show(value["template"]), fix, 1)], source=source)
