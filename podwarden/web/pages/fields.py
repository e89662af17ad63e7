"""The deploy form: fields made from a template's parameters, and faults sent to the field they belong to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from podwarden.catalog import Overrides, Template
from podwarden.catalog.parameters import Parameter
from podwarden.domain.units import show_gb
from podwarden.domain.workload import Priority, Spec
from podwarden.errors import Problem

_BY_FLAG = {
    "--name": "name",
    "--cluster": "cluster",
    "--gpus": "gpus",
    "--vram": "vram",
    "--shared": "sharing",
    "--model": "model",
    "--priority": "priority",
    "name": "name",
    "cluster": "cluster",
    "priority": "priority",
    "gpu.count": "gpus",
    "gpu.vram": "vram",
    "gpu.sharing": "sharing",
}
_SET = re.compile(r"([a-z][a-z0-9_]*)=")
_HINTS = {
    "size": "a size such as 8Gi or 500Mi",
    "vram": "a VRAM size such as 16GB",
    "cpu": "CPU cores such as 2 or 500m",
    "duration": "a duration such as 90s, 10m or 2h",
    "range": "first and last, such as 1-250",
    "secret": "the name of a stored secret",
    "storage": "a storage such as media, or a folder in it such as media:films",
    "file": "a file in a storage such as renders:shot7/scene.blend",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One line of the form. value: as typed. choices: (value, word) of a list. error: the fix.

    offers: values to pick from, others may be typed.
    """

    name: str
    label: str
    value: str
    kind: str = "string"
    opt: str = ""
    hint: str = ""
    placeholder: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    error: str = ""
    offers: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return "f-" + self.name.replace(".", "-")

    @property
    def numeric(self) -> bool:
        return self.kind == "int"


def overrides_of(form: Mapping[str, str]) -> Overrides:
    def text(name: str) -> str:
        return form.get(name, "").strip()

    return Overrides(
        name=text("name"),
        cluster=text("cluster"),
        gpus=text("gpus"),
        vram=text("vram"),
        sharing=text("sharing"),
        model=text("model"),
        priority=text("priority"),
    )


def parameters_of(template: Template, form: Mapping[str, str]) -> dict[str, str]:
    """What was typed for its parameters, by their names; a field left empty counts as cleared."""
    return {
        p.name: form[f"p.{p.name}"].strip() for p in template.parameters if f"p.{p.name}" in form
    }


def fields_of(
    template: Template,
    form: Mapping[str, str],
    plain: Spec | None,
    *,
    clusters: Sequence[str],
    faults: Mapping[str, str],
    offers: Mapping[str, tuple[str, ...]] | None = None,
) -> list[Field]:
    """plain: the spec with nothing set, for what the template asks by itself; None where it needs settings.

    offers: kind of a parameter -> names to pick from.
    """

    def said(name: str, default: str = "") -> str:
        return form.get(name, default)

    found = [
        Field("name", "Name", said("name", template.name), error=faults.get("name", ""),
              hint="small letters, digits and hyphens; it becomes part of its addresses"),
    ]  # fmt: skip
    if len(clusters) > 1:
        options = tuple((c, c) for c in clusters)
        found.append(
            Field("cluster", "Cluster", said("cluster", clusters[0]), choices=options, error=faults.get("cluster", ""))
        )  # fmt: skip
    picks = offers or {}
    found += [_parameter(p, form, faults, picks.get(p.kind, ())) for p in template.parameters]
    if template.document.get("gpu"):
        found += _gpu(form, plain, faults)
    words = tuple((p.word, p.word) for p in reversed(Priority))
    usual = plain.priority.word if plain else "normal"
    found.append(
        Field("priority", "Priority", said("priority", usual), choices=words, error=faults.get("priority", ""))
    )  # fmt: skip
    return found


def _parameter(
    p: Parameter, form: Mapping[str, str], faults: Mapping[str, str], offers: tuple[str, ...]
) -> Field:
    name = f"p.{p.name}"
    choices = tuple((c, c) for c in p.choices)
    if choices and not p.required and not p.default:
        choices = (("", "not set"), *choices)
    bounds = f"{p.low:,} to {p.high:,}" if p.kind == "int" else _HINTS.get(p.kind, "")
    hint = p.help or bounds
    if p.example:
        hint += f" For example {p.example}."
    return Field(
        name=name,
        label=p.title or p.name.replace("_", " ").capitalize(),
        value=form.get(name, p.default),
        kind=p.kind,
        opt=_need(p),
        offers=offers,
        hint=hint,
        placeholder="" if p.default else p.example,
        choices=choices,
        error=faults.get(name, ""),
    )


def _need(p: Parameter) -> str:
    if p.required:
        return "needed"
    if p.generate:
        return "made for you when empty, and shown once"
    return "" if p.default else "may stay empty"


def _gpu(form: Mapping[str, str], plain: Spec | None, faults: Mapping[str, str]) -> Iterable[Field]:
    request = plain.gpu if plain else None
    size = show_gb(request.vram_mib) if request and request.vram_mib else ""
    usual = "shared" if request and request.shared else "dedicated"
    yield Field(
        "vram", "VRAM", form.get("vram", ""), opt="of each GPU", placeholder=size or "any size",
        hint="such as 8GB, 16GB, 24GB; a GPU of at least this size, or this much of a shared one",
        error=faults.get("vram", ""),
    )  # fmt: skip
    yield Field(
        "sharing", "Sharing", form.get("sharing", usual),
        choices=(("dedicated", "a whole GPU"), ("shared", "a part of a GPU, others beside it")),
        hint="A part needs a VRAM size: it is a budget, and who exceeds it is restarted, never its neighbour.",
        error=faults.get("sharing", ""),
    )  # fmt: skip
    if request is None or request.count != 1 or "gpus" in form or usual == "dedicated":
        yield Field(
            "gpus", "GPUs", form.get("gpus", ""), kind="int",
            placeholder=str(request.count if request else 1), error=faults.get("gpus", ""),
        )  # fmt: skip
    yield Field(
        "model", "GPU model", form.get("model", ""), placeholder="any",
        hint="one or several, separated by commas, such as RTX 3090", error=faults.get("model", ""),
    )  # fmt: skip


def faults_of(
    problems: Sequence[Problem], known: Iterable[str]
) -> tuple[dict[str, str], list[str]]:
    """Faults by field of the form, and the sentences that belong to none."""
    there = set(known)
    by_field: dict[str, str] = {}
    others: list[str] = []
    for problem in problems:
        name = _BY_FLAG.get(problem.field, "")
        given = _SET.match(problem.value) if problem.field == "--set" else None
        if given:
            name = f"p.{given[1]}"
        text = problem.fix[:1].upper() + problem.fix[1:]
        if name in there:
            by_field.setdefault(name, text)
        else:
            others.append(f"{problem.field}: {problem.fix}")
    return by_field, others
