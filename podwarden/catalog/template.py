"""One catalogue entry: read from YAML, checked as a whole, turned into a spec."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from podwarden.catalog.filling import GPUS, fill, holes
from podwarden.catalog.generated import Generated
from podwarden.catalog.overrides import Overrides
from podwarden.catalog.parameters import KINDS, PARTS, Parameter, Value, parts_of, value_of
from podwarden.catalog.reader import Tree
from podwarden.domain.check import MOST_PROBLEMS, Problems, Section, nearest, show
from podwarden.domain.document import from_document
from podwarden.domain.sections import label
from podwarden.domain.workload import Spec
from podwarden.errors import Invalid, Problem

KEYS = ("template", "title", "purpose", "homepage", "parameters", "workload", "notes")
PARAMETER_KEYS = (
    "name", "title", "type", "default", "required", "choices", "min", "max", "help", "example",
    "generate",
)  # fmt: skip
MOST_PARAMETERS = 40
MOST_GENERATED = 20  # characters of its name: with the workload's it must still name a secret

_PARAMETER_NAME = re.compile(r"[a-z][a-z0-9_]{0,29}", re.ASCII)
_HOMEPAGE = re.compile(r"https://[a-z0-9.-]+(?:/[^\s]*)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Template:
    """document: the workload file with `${name}` placeholders. lines: where its entries stand in the file."""

    name: str
    title: str
    purpose: str
    homepage: str
    parameters: tuple[Parameter, ...]
    notes: str
    document: Mapping[str, Any]
    source: str = ""
    lines: Tree = field(default_factory=lambda: Tree(None))

    def resolve(self, parameters: Mapping[str, str], overrides: Overrides) -> Spec:
        """The spec; Invalid with every problem, named as the user typed it."""
        problems = [*overrides.problems(), *self._unknown(parameters)]
        values: dict[str, Value] = {}
        made = {one.parameter: one.secret for one in self.generated(parameters, overrides)}
        for parameter in self.parameters:
            text = parameters.get(parameter.name, parameter.default)
            text = made.get(parameter.name, text)
            try:
                values[parameter.name] = value_of(parameter, text)
            except ValueError as error:
                # What was given in place of a secret's name may be the secret itself.
                given = "…" if text and parameter.kind == "secret" else text
                shown = f"{parameter.name}={show(given) if given else ''}"
                problems.append(Problem("--set", shown, str(error)))
        if problems:
            raise Invalid(problems)
        return self.spec(values, parameters, overrides)

    @property
    def asks_first(self) -> tuple[str, ...]:
        """The parameters that must be given."""
        return tuple(parameter.name for parameter in self.parameters if parameter.required)

    def sample(self) -> Spec:
        """The workload it makes with its defaults, and a sample value where something must be given."""
        given = {p.name: p.sample() for p in self.parameters if p.required}
        return self.resolve(given, Overrides())

    def generated(
        self, parameters: Mapping[str, str], overrides: Overrides
    ) -> tuple[Generated, ...]:
        """The secrets that the workload needs and nobody gave: to be made before it is stored."""
        workload = overrides.name or str(self.document.get("name") or self.name)
        return tuple(
            Generated(parameter.name, parameter.title, parameter.secret_name(workload))
            for parameter in self.parameters
            if parameter.generate and not parameters.get(parameter.name)
        )

    def _unknown(self, parameters: Mapping[str, str]) -> list[Problem]:
        known = [parameter.name for parameter in self.parameters]
        problems: list[Problem] = []
        for name, text in parameters.items():
            if name not in known and len(problems) < MOST_PROBLEMS:
                close = nearest(name, known)
                fix = f"{self.name} has no such parameter"
                if close:
                    fix += f": did you mean {' or '.join(close)}?"
                else:
                    fix += f"; it has {', '.join(known)}" if known else "; it has none"
                problems.append(Problem("--set", show(f"{name}={text}"), fix))
        return problems

    def spec(
        self, values: Mapping[str, Value], typed: Mapping[str, str], overrides: Overrides
    ) -> Spec:
        """The spec with these checked values; a problem is named by its parameter if that was typed."""
        document = overrides.apply({"name": self.name, **self.document})
        document = _as_shared(document, overrides)
        values = {**values, **_parts(self.parameters, values)}
        count = _gpu_count(fill(document.get("gpu"), {GPUS: 1, **values}).value)
        filled = fill(document, {**values, GPUS: count})
        try:
            return from_document({**filled.value, "template": self.name})
        except Invalid as error:
            raise Invalid(
                [self._named(p, filled.used, typed, overrides) for p in error.problems]
            ) from error

    def _named(
        self,
        problem: Problem,
        used: Mapping[str, tuple[str, ...]],
        typed: Mapping[str, str],
        overrides: Overrides,
    ) -> Problem:
        """The problem by the option or parameter that caused it, else by its place in the template."""
        named = overrides.in_their_words(problem)
        names = [name.partition(".")[0] for name in used.get(problem.field, ())]
        guilty = [name for name in names if name in typed]
        if named is problem and guilty:
            return Problem("--set", show(f"{guilty[0]}={typed[guilty[0]]}"), problem.fix)
        return named


def _as_shared(document: dict[str, Any], overrides: Overrides) -> dict[str, Any]:
    """`budget` in a template's gpu section is what `--shared` alone asks for: whoever is content with a
    part of a GPU needs less than the size of the whole one that the template asks for.
    """
    gpu = document.get("gpu")
    if not isinstance(gpu, dict) or "budget" not in gpu:
        return document
    rest = {key: value for key, value in gpu.items() if key != "budget"}
    if overrides.sharing == "shared" and not overrides.vram:
        rest["vram"] = gpu["budget"]
    return {**document, "gpu": rest}


def _parts(parameters: tuple[Parameter, ...], values: Mapping[str, Value]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for parameter in parameters:
        if parameter.name in values:
            found.update(parts_of(parameter, values[parameter.name]))
    return found


def _gpu_count(gpu: Any) -> int:
    count = gpu.get("count", 1) if isinstance(gpu, dict) else 0
    return count if isinstance(count, int) else 1


def read_template(tree: Tree, source: str) -> Template:
    """A template that works with its defaults; Invalid with every problem and its line otherwise."""
    if not isinstance(tree.value, dict):
        raise Invalid(
            [Problem("template", "", "a section with keys: " + ", ".join(KEYS))], source=source
        )
    problems = Problems()
    top = Section(problems, tree.value, "", KEYS)
    template = Template(
        name=label(top, "template", 40, required=True),
        title=_sentence(top, "title", required=True),
        purpose=_sentence(top, "purpose", required=True),
        homepage=_homepage(top),
        parameters=_parameters(top),
        notes=top.text("notes", lines=True, most=8192),
        document=_workload(top),
        source=source,
        lines=tree,
    )
    _check_holes(problems, template)
    if not problems.found:
        _try_out(problems, template)
    if problems.found:
        raise Invalid(tree.located(problems.found), source=source)
    return template


def _sentence(top: Section, key: str, *, required: bool = False) -> str:
    text = top.text(key, most=300)
    if required and not text and not top.problems.has(key):
        top.refuse(key, "is missing: one line of text")
    return text


def _homepage(top: Section) -> str:
    return top.match("homepage", _HOMEPAGE, "an address that starts with https://", most=200)


def _workload(top: Section) -> dict[str, Any]:
    workload = top.data.get("workload")
    if not isinstance(workload, dict):
        top.problems.add("workload", show(workload), "a section: the workload file")
        return {}
    for key in ("template", "cluster"):
        if key in workload:
            top.problems.add(f"workload.{key}", "", "does not belong in a template: leave it out")
    return workload


def _parameters(top: Section) -> tuple[Parameter, ...]:
    found: list[Parameter] = []
    for entry in top.sections("parameters", PARAMETER_KEYS, MOST_PARAMETERS):
        parameter = _parameter(entry)
        if parameter.name in {other.name for other in found}:
            entry.refuse("name", "two parameters have this name: give each its own")
        found.append(parameter)
    return tuple(found)


def _parameter(entry: Section) -> Parameter:
    name = entry.match("name", _PARAMETER_NAME, "lower-case letters, digits and underscores")
    if not name and not entry.problems.has(f"{entry.path}.name"):
        entry.refuse("name", "is missing: lower-case letters, digits and underscores")
    if name == GPUS:
        entry.refuse("name", "gpus is the number of GPUs: choose another name")
    kind = entry.choice("type", {kind: kind for kind in KINDS}, "string")
    choices = tuple(entry.texts("choices", 50))
    if (kind == "choice") != bool(choices):
        fix = "goes with type: choice" if choices else "is missing: the list of choices"
        entry.refuse("choices", fix)
    parameter = Parameter(
        name=name,
        kind=kind,
        title=_sentence(entry, "title"),
        default=entry.text("default"),
        required=entry.flag("required"),
        choices=choices,
        low=entry.whole("min", -(10**9), 10**9, 0),
        high=entry.whole("max", -(10**9), 10**9, 10**9),
        help=_sentence(entry, "help"),
        example=entry.text("example"),
        generate=entry.flag("generate"),
    )
    if parameter.low > parameter.high:
        entry.refuse("min", f"at most max, which is {parameter.high}")
    _check_default(entry, parameter)
    return parameter


def _check_default(entry: Section, parameter: Parameter) -> None:
    if parameter.generate and (kind_fault := _generate_fault(parameter)):
        entry.refuse("generate", kind_fault)
    if parameter.required and parameter.default:
        entry.refuse("default", "a required parameter has no default: leave one of them out")
    for key, text in (("default", parameter.default), ("example", parameter.example)):
        try:
            value_of(replace(parameter, required=False), text)
        except ValueError as error:
            entry.refuse(key, str(error))


def _generate_fault(parameter: Parameter) -> str:
    if parameter.kind != "secret":
        return "goes with type: secret"
    if parameter.required or parameter.default:
        return "is made where none is given: leave required and default out"
    if len(parameter.name) > MOST_GENERATED:
        return f"the name of a generated one has at most {MOST_GENERATED} characters"
    return ""


def _check_holes(problems: Problems, template: Template) -> None:
    """Each placeholder names a parameter, each parameter is named by a placeholder."""
    known = {parameter.name for parameter in template.parameters}
    known |= {f"{p.name}.{part}" for p in template.parameters if p.placed for part in PARTS}
    named = set()
    for hole in holes(template.document, "workload"):
        if hole.in_key:
            problems.add(hole.path, "", "a placeholder stands in a value, never in a key")
        elif hole.name in known or hole.name == GPUS:
            named.add(hole.name.partition(".")[0])
        else:
            close = nearest(hole.name, known, 1)
            also = f": did you mean {close[0]}?" if close else ""
            word = show(f"${{{hole.name}}}")
            problems.add(hole.path, word, f"no parameter has this name{also}")
    for place, parameter in enumerate(template.parameters):
        if parameter.name and parameter.name not in named:
            path = f"parameters[{place}].name"
            problems.add(path, parameter.name, "no placeholder uses it: remove it or use it")


def _try_out(problems: Problems, template: Template) -> None:
    """The workload must be right with the defaults, and with every parameter set."""
    samples = {p.name: value_of(p, p.sample()) for p in template.parameters}
    defaults = {
        p.name: samples[p.name] if p.required else value_of(p, p.default)
        for p in template.parameters
    }
    trials = [(defaults, Overrides()), (samples, Overrides())]
    gpu = template.document.get("gpu")
    if isinstance(gpu, dict) and "budget" in gpu:
        trials.append((defaults, Overrides(sharing="shared")))
    for values, options in trials:
        try:
            template.spec(values, {}, options)
        except Invalid as error:
            for problem in error.problems:
                place = "gpu.budget" if problem.field.startswith("--") else problem.field
                problems.add(f"workload.{place}", problem.value, problem.fix)
            return
