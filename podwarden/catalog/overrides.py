"""What the command line changes in a template or a file: `--vram 20GB`, `--name`, … in the user's words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from podwarden.domain.check import Problems, Section, show
from podwarden.domain.document import MOST_NAME, PRIORITIES
from podwarden.domain.sections import MODEL, MODEL_FIX, MOST_GPUS, label
from podwarden.domain.units import parse_vram
from podwarden.errors import Problem

_FLAGS = {
    "name": "--name",
    "cluster": "--cluster",
    "gpu.count": "--gpus",
    "gpu.vram": "--vram",
    "gpu.sharing": "--shared",
    "gpu.model": "--model",
    "priority": "--priority",
}


@dataclass(frozen=True, slots=True)
class Overrides:
    """As typed; "" = not given. sharing: `shared` or `dedicated`. model: GPU models, separated by commas."""

    name: str = ""
    cluster: str = ""
    gpus: str = ""
    vram: str = ""
    sharing: str = ""
    model: str = ""
    priority: str = ""

    def problems(self) -> list[Problem]:
        """What is wrong with the options themselves."""
        found = []
        for flag, text, fault in self._checks():
            fix = fault(text) if text else ""
            if fix:
                found.append(Problem(flag, show(text), fix))
        return found

    def _checks(self) -> tuple[tuple[str, str, Callable[[str], str]], ...]:
        return (
            ("--name", self.name, lambda text: _label_fault(text, MOST_NAME)),
            ("--cluster", self.cluster, lambda text: _label_fault(text, 63)),
            ("--gpus", self.gpus, _gpus_fault),
            ("--vram", self.vram, _vram_fault),
            ("--shared", self.sharing, _sharing_fault),
            ("--model", self.model, _model_fault),
            ("--priority", self.priority, _priority_fault),
        )

    def apply(self, document: dict[str, Any]) -> dict[str, Any]:
        """The workload file with the options in it. Only for options without `problems`."""
        changed = dict(document)
        for key in ("name", "cluster", "priority"):
            if getattr(self, key):
                changed[key] = getattr(self, key)
        gpu: dict[str, Any] = {}
        if self.gpus:
            gpu["count"] = int(self.gpus)
        if self.vram:
            gpu["vram"] = self.vram
        if self.sharing:
            gpu["sharing"] = self.sharing
        if self.model:
            gpu["model"] = _models(self.model)
        before = document.get("gpu")
        if gpu and (before is None or isinstance(before, dict)):
            changed["gpu"] = {**(before or {}), **gpu}
        return changed

    def in_their_words(self, problem: Problem) -> Problem:
        """A problem of the whole file, named by the option that caused it."""
        given = {
            "name": self.name,
            "cluster": self.cluster,
            "gpu.count": self.gpus or self.sharing,
            "gpu.vram": self.vram or self.sharing,
            "gpu.sharing": self.sharing,
            "gpu.model": self.model,
            "priority": self.priority,
        }
        place = problem.field.partition("[")[0]
        return replace(problem, field=_FLAGS[place], line=None) if given.get(place) else problem


def _label_fault(text: str, most: int) -> str:
    problems = Problems()
    label(Section(problems, {"name": text}, "", ("name",)), "name", most)
    return problems.found[0].fix if problems.found else ""


def _gpus_fault(text: str) -> str:
    good = text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= MOST_GPUS
    return "" if good else f"a whole number of GPUs from 1 to {MOST_GPUS}"


def _vram_fault(text: str) -> str:
    try:
        parse_vram(text)
    except ValueError as error:
        return str(error)
    return ""


def _sharing_fault(text: str) -> str:
    return "" if text in ("shared", "dedicated") else "one of shared, dedicated"


def _models(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _model_fault(text: str) -> str:
    return "" if all(MODEL.fullmatch(part) for part in _models(text)) else MODEL_FIX


def _priority_fault(text: str) -> str:
    return "" if text in PRIORITIES else "one of " + ", ".join(PRIORITIES)
