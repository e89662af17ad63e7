"""All templates there are: the built-in ones, and those of one's own folder over them."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from podwarden.catalog.generated import Generated
from podwarden.catalog.overrides import Overrides
from podwarden.catalog.reader import MOST_BYTES, read
from podwarden.catalog.template import Template, read_template
from podwarden.domain.check import nearest, show
from podwarden.domain.workload import Spec
from podwarden.errors import Invalid, NotFound, Problem

BUILT_IN = Path(__file__).parent / "templates"
MOST_FILES = 1000
_ENDINGS = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Broken:
    """A file of one's own folder that is no template: which, and every fault with its line."""

    source: str
    problems: tuple[Problem, ...]

    def __str__(self) -> str:
        return f"{self.source}: " + "; ".join(str(problem) for problem in self.problems)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """templates: by name, in alphabetical order. broken: own files that were skipped."""

    templates: Mapping[str, Template]
    broken: tuple[Broken, ...] = ()

    def get(self, name: str) -> Template:
        """The template of that name. NotFound with the nearest names; Invalid: its file was skipped, and why."""
        template = self.templates.get(name)
        if template is not None:
            return template
        for skipped in self.broken:
            if Path(skipped.source).stem == name:
                raise Invalid(list(skipped.problems), source=skipped.source)
        close = nearest(name, self.templates)
        hint = f" Did you mean {' or '.join(close)}?" if close else ""
        raise NotFound(
            f"No template is called {show(name)}.{hint} "
            "`podwarden template list` shows the templates there are."
        )

    def resolve(
        self,
        name: str,
        *,
        parameters: Mapping[str, str] | None = None,
        overrides: Overrides | None = None,
    ) -> Spec:
        """The spec of template `name` with `--set` values and options as the user typed them.

        NotFound for an unknown template; Invalid with every problem, named by option or parameter.
        """
        return self.get(name).resolve(parameters or {}, overrides or Overrides())

    def generated(
        self,
        name: str,
        *,
        parameters: Mapping[str, str] | None = None,
        overrides: Overrides | None = None,
    ) -> tuple[Generated, ...]:
        """The secrets that `resolve` with the same arguments names and nobody gave. NotFound."""
        return self.get(name).generated(parameters or {}, overrides or Overrides())


def load(folder: Path | None = None, *, built_in: Path = BUILT_IN) -> Catalogue:
    """The catalogue. Invalid when a built-in template is broken; a broken own one is only named."""
    templates: dict[str, Template] = {}
    for path in _files(built_in):
        template = read_template(read(_text(path), path.name), path.name)
        templates[template.name] = template
    own, broken = _own(folder) if folder is not None else ({}, [])
    return Catalogue(dict(sorted({**templates, **own}.items())), tuple(broken))


def _own(folder: Path) -> tuple[dict[str, Template], list[Broken]]:
    found: dict[str, Template] = {}
    try:
        paths = _files(folder)
    except OSError as error:
        fix = f"cannot be read ({error.strerror}): give a folder of templates"
        return {}, [Broken(str(folder), (Problem("folder", "", fix),))]
    broken: list[Broken] = []
    for path in paths:
        try:
            template = read_template(read(_text(path), str(path)), str(path))
        except Invalid as error:
            broken.append(Broken(str(path), tuple(error.problems)))
            continue
        if template.name in found:
            first = Path(found[template.name].source).name
            fix = f"{first} has this name too: rename one"
            problem = Problem("template", template.name, fix, template.lines.line("template"))
            broken.append(Broken(str(path), (problem,)))
            continue
        found[template.name] = template
    return found, broken


def _files(folder: Path) -> list[Path]:
    paths = sorted(folder.iterdir())[:MOST_FILES]
    return [p for p in paths if p.suffix in _ENDINGS and not p.name.startswith(".")]


def _text(path: Path) -> str:
    """The file's text; Invalid for links, pipes, folders, large files and other encodings."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        fix = f"cannot be read ({error.strerror}): put the file itself here, readable, not a link"
        raise Invalid([Problem("file", "", fix)]) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise Invalid([Problem("file", "", "is no ordinary file: put a YAML file here")])
    with os.fdopen(handle, "rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise Invalid([Problem("file", "", f"at most {MOST_BYTES:,} bytes")])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Invalid([Problem("file", "", "text in UTF-8")]) from error
