"""A Docker Compose file as workload files: what it becomes, what changes its meaning, what is left out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from podwarden.catalog.compose_data import Ports, Volumes
from podwarden.catalog.compose_remarks import Place, Remarks
from podwarden.catalog.compose_service import Service
from podwarden.catalog.compose_values import child, filled
from podwarden.catalog.overrides import Overrides
from podwarden.catalog.parameters import Parameter, value_of
from podwarden.catalog.reader import Tree, read
from podwarden.domain.check import as_text, join, show
from podwarden.domain.document import MOST_NAME, from_document
from podwarden.domain.sections import LABEL
from podwarden.domain.workload import Spec
from podwarden.errors import Invalid, Problem, Refused

MOST_SERVICES = 50
NAMES = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")

_TOP_LEFT_OUT = {
    "name": "workloads have the names of their services",
    "version": "the form is recognised without it",
    "networks": "every workload reaches every other by its name",
    "secrets": "a secret is stored with PodWarden and named under secrets of a workload file",
    "configs": "a file cannot be mounted: put it into a storage",
    "models": "deploy a model server and name its address in environment",
}
# Keys of a workload file -> the key of a service where its fault stands.
_ORIGIN = {
    "image": "image", "command": "entrypoint", "args": "command", "env": "environment",
    "ports": "ports", "volumes": "volumes", "devices": "devices", "health": "healthcheck",
    "shm": "shm_size", "gpu": "deploy", "resources": "deploy", "replicas": "deploy",
    "job": "restart",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ComposePlan:
    """specs: one a service, those first that others depend on. notes: what is carried over and means
    something else here. unsupported: what is not carried over. Both in the order of the file, each with
    its line; `field` is the place in the file, `value` what stands there, `fix` the sentence.
    """

    specs: tuple[Spec, ...]
    notes: tuple[Problem, ...] = ()
    unsupported: tuple[Problem, ...] = ()


def is_compose(text: str) -> bool:
    """Whether the text looks like a Compose file: `services` at its left edge, and no workload file's image."""
    return bool(re.search(r"(?m)^[\"']?services[\"']?\s*:", text)) and not re.search(
        r"(?m)^image\s*:", text
    )


def wanted_env_files(text: str, source: str) -> tuple[str, ...]:
    """The files of variables that the services name, as written: what `read_compose` wants to be given."""
    tree = _tree(text, source)
    found: dict[str, None] = {}
    for entry in _services(tree, Remarks()):
        files = child(entry, "env_file")
        for one in files.entries() if files is not None else ():
            path = child(one, "path") if isinstance(one.value, dict) else one
            word = as_text(path.value) if path is not None else None
            if word:
                found[word] = None
    return tuple(found)


def read_compose(
    text: str,
    source: str,
    *,
    variables: Mapping[str, str] | None = None,
    env_files: Mapping[str, str] | None = None,
    storages: Mapping[str, str] | None = None,
    overrides: Overrides | None = None,
) -> ComposePlan:
    """What the file becomes.

    variables: for `${NAME}`, as the file .env beside it has them. env_files: path as written -> text.
    storages: source of a volume as written (`./media`, `model-cache`) -> STORAGE or STORAGE:FOLDER, the
    `--set` of the command line. overrides: name only with one service; GPU options go to the services
    that have a GPU.
    Invalid with every fault and its line; Refused (code COMPOSE_TOO_LARGE) for more than 50 services.
    """
    options = overrides or Overrides()
    places = storages or {}
    wrong = [*options.problems(), *_storage_faults(places)]
    if wrong:
        raise Invalid(wrong)
    tree = _tree(text, source)
    remarks = Remarks()
    services = [
        replace(entry, value=filled(entry, variables or {}))
        for entry in _selected(_services(tree, remarks))
    ]
    _top_level(tree, remarks)
    volumes = Volumes(places, frozenset(_declared(tree)), _shared(services))
    ports = Ports()
    documents: dict[str, dict[str, Any]] = {}
    for entry in services:
        name = _name(entry, documents)
        service = Service(name, entry, variables or {}, env_files or {}, ports, volumes)
        documents[name] = {"name": name, **service.read()}
    _unused(places, volumes, remarks)
    order = _order(services, list(documents))
    specs = _specs(documents, services, options, remarks)
    if remarks.faults:
        raise Invalid(tree.located(remarks.faults), source=source)
    return ComposePlan(
        specs=tuple(specs[name] for name in order),
        notes=tuple(tree.located(remarks.notes)),
        unsupported=tuple(tree.located(remarks.unsupported)),
    )


# --- the file as a whole ---------------------------------------------------------------------------


def _tree(text: str, source: str) -> Tree:
    _refuse_many(_count(text), source)
    tree = read(text, source, aliases=True)
    services = tree.value.get("services") if isinstance(tree.value, dict) else None
    if not isinstance(services, dict) or not services:
        raise Invalid(
            [Problem("services", "", "is missing: a section with services")], source=source
        )
    _refuse_many(len(services), source)  # written in another style than the count knows
    return tree


def _refuse_many(count: int, source: str) -> None:
    if count > MOST_SERVICES:
        raise Refused(
            f"{source} has {count:,} services. PodWarden takes at most {MOST_SERVICES} from one Compose "
            "file: split it into several, or write a job with an array for many equal tasks.",
            code="COMPOSE_TOO_LARGE",
        )


def _count(text: str) -> int:
    """Services of a file in the usual style, counted without reading it: it may be huge."""
    start = re.search(r"(?m)^[\"']?services[\"']?:[ \t]*(?:#.*)?$", text)
    if not start:
        return 0
    rest = text[start.end() :]
    first = re.search(r"(?m)^([ \t]+)[^\s#]", rest)
    if not first:
        return 0
    end = re.search(r"(?m)^[^\s#]", rest)
    body = rest[: end.start()] if end else rest
    return len(re.findall(rf"(?m)^{re.escape(first[1])}[^\s#-][^\n]*:", body))


def _services(tree: Tree, remarks: Remarks) -> list[Place]:
    whole = Place("services", tree.value["services"], remarks)
    found = []
    for entry in whole.items():
        if isinstance(entry.value, dict):
            found.append(entry)
        else:
            entry.fault("a section with an image")
    return found


def _top_level(tree: Tree, remarks: Remarks) -> None:
    for entry in Place("", tree.value, remarks).items():
        key = entry.key
        if key in ("services", "volumes") or key.startswith("x-"):
            continue
        if key == "include":
            entry.fault("give the included files one by one")
        else:
            entry.leave_out(_TOP_LEFT_OUT.get(key, "PodWarden does not know this key"))
    declared = Place("volumes", tree.value.get("volumes"), remarks)
    for volume in declared.items():
        if isinstance(volume.value, dict):
            for option in volume.items():
                option.leave_out(
                    "options of a volume are not carried over; NFS is added as a storage"
                )


def _declared(tree: Tree) -> list[str]:
    volumes = tree.value.get("volumes")
    return [str(name) for name in volumes] if isinstance(volumes, dict) else []


def _selected(services: list[Place]) -> list[Place]:
    """Services with `profiles` start only when asked for; those that extend others cannot be read alone."""
    kept = []
    for entry in services:
        profiles, extends = child(entry, "profiles"), child(entry, "extends")
        if extends is not None:
            extends.fault("write out what is taken from the other service", "")
        if profiles is not None:
            profiles.leave_out("this service starts only with a profile, so it is left out whole")
        else:
            kept.append(entry)
    if services and not kept:
        services[0].fault("every service needs a profile: remove profiles from those to deploy", "")
    return kept


def _shared(services: list[Place]) -> dict[str, tuple[str, ...]]:
    """Named volumes with more than one service: volume -> services."""
    users: dict[str, list[str]] = {}
    for entry in services:
        volumes = child(entry, "volumes")
        for one in volumes.entries() if volumes is not None else ():
            part = child(one, "source") if isinstance(one.value, dict) else one
            text = (as_text(part.value) or "") if part is not None else ""
            name = text.partition(":")[0]
            service = entry.key
            if name and not name.startswith(("/", ".", "~")):
                users.setdefault(name, [])
                if service not in users[name]:
                    users[name].append(service)
    return {name: tuple(found) for name, found in users.items() if len(found) > 1}


def _name(entry: Place, taken: Mapping[str, object]) -> str:
    """The service's own name where it may name a workload: others reach it by that name."""
    text = entry.key
    name = re.sub(r"[^a-z0-9]+", "-", text.lower())[:MOST_NAME].strip("-")
    if not LABEL.fullmatch(name):
        name = f"s-{name}".strip("-")[:MOST_NAME]
    if name in taken:
        entry.fault(f"two services would be called {name}: rename one", text)
    elif name != text:
        entry.note(f"is called {name} here: others reach it by that name", text)
    return name


def _order(services: list[Place], names: list[str]) -> list[str]:
    """Names of workloads, each after those that its service depends on. A circle is a fault."""
    by_service = dict(zip((s.key for s in services), names, strict=False))
    needs: dict[str, list[str]] = {}
    for entry, name in zip(services, names, strict=False):
        place = child(entry, "depends_on")
        found: list[str] = []
        if place is not None:
            place.note("all start at once here; a program tries again until the others answer")
            keys = place.value if isinstance(place.value, (dict, list)) else []
            for other in keys:
                if other in by_service:
                    found.append(by_service[other])
                else:
                    place.leave_out("is no service of this file, or is left out", other)
        needs[name] = found
    ordered: list[str] = []
    while len(ordered) < len(needs):
        ready = [n for n in needs if n not in ordered and all(m in ordered for m in needs[n])]
        if not ready:
            rest = [n for n in needs if n not in ordered]
            services[0].remarks.fault("services", None, f"{', '.join(rest)} depend on each other")
            return [*ordered, *rest]
        ordered += ready
    return ordered


# --- the workloads ---------------------------------------------------------------------------------


def _specs(
    documents: Mapping[str, dict[str, Any]],
    services: list[Place],
    options: Overrides,
    remarks: Remarks,
) -> dict[str, Spec]:
    if options.name and len(documents) > 1:
        fix = f"the file has {len(documents)} services, which keep their names: leave --name out"
        raise Invalid([Problem("--name", show(options.name), fix)])
    if _gpu_options(options) and not any("gpu" in one for one in documents.values()):
        fix = "no service of the file asks for a GPU: leave the option out"
        raise Invalid([Problem(_gpu_options(options), "", fix)])
    found: dict[str, Spec] = {}
    for (name, document), entry in zip(documents.items(), services, strict=False):
        here = options if "gpu" in document else _without_gpu(options)
        try:
            found[name] = from_document(here.apply(document))
        except Invalid as error:
            for problem in error.problems:
                named = here.in_their_words(problem)
                if named is not problem:
                    raise Invalid([named]) from error
                remarks.fault(_origin(entry, problem.field), None, f"{_said(problem)}")
    return found


def _said(problem: Problem) -> str:
    value = f" {problem.value}" if problem.value else ""
    return f"{problem.field}{value}: {problem.fix}"


def _origin(entry: Place, field: str) -> str:
    key = re.split(r"[.\[]", field, maxsplit=1)[0]
    return join(entry.path, _ORIGIN[key]) if key in _ORIGIN else entry.path


def _gpu_options(options: Overrides) -> str:
    given = {
        "--gpus": options.gpus, "--vram": options.vram, "--shared": options.sharing,
        "--model": options.model,
    }  # fmt: skip
    return next((flag for flag, text in given.items() if text), "")


def _without_gpu(options: Overrides) -> Overrides:
    return Overrides(name=options.name, cluster=options.cluster, priority=options.priority)


# --- storages --------------------------------------------------------------------------------------

_STORAGE = Parameter("storage", "storage")


def _storage_faults(places: Mapping[str, str]) -> list[Problem]:
    found = []
    for source, text in places.items():
        try:
            value_of(_STORAGE, text)
        except ValueError as error:
            found.append(Problem("--set", show(f"{source}={text}"), str(error)))
    return found


def _unused(places: Mapping[str, str], volumes: Volumes, remarks: Remarks) -> None:
    for source in places:
        if source not in volumes.used:
            known = "write it as it stands in the file, before the colon"
            remarks.fault("--set", source, f"no volume of the file has this source: {known}")
