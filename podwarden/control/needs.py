"""What a spec names and the store keeps: secrets, logins of registries, storages. Whether it has them, and who uses what."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from podwarden.domain.storage import Storage
from podwarden.domain.workload import Desire, Spec, VolumeKind, Workload
from podwarden.errors import Problem, Refused
from podwarden.store import Unit

PAGE = 1000
MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Needs:
    """By name, as far as the spec refers to them. secrets: their values."""

    secrets: Mapping[str, str]
    storages: Mapping[str, Storage]


def secrets_of(spec: Spec) -> frozenset[str]:
    names = {name for _, name in spec.secrets}
    return frozenset(names | {spec.image_pull_secret}) - {""}


def storages_of(spec: Spec) -> frozenset[str]:
    return frozenset(v.storage for v in spec.volumes if v.kind is VolumeKind.STORAGE)


def read(unit: Unit, spec: Spec) -> Needs:
    """Refused: one is gone, as after a lost disk: asking the cluster again would not bring it back."""
    wanted = secrets_of(spec)
    missing = sorted(wanted - set(unit.secrets.names())) if wanted else []
    if missing:
        raise Refused(
            f"PodWarden does not have the secret {missing[0]}: store it again, then start it again."
        )
    names = storages_of(spec)
    storages = {s.name: s for s in unit.storages.list(names)} if names else {}
    missing = sorted(names - storages.keys())
    if missing:
        raise Refused(
            f"PodWarden does not have the storage {missing[0]}: add it again, then start it again."
        )
    return Needs({name: unit.secrets.get(name) for name in sorted(wanted)}, storages)


def problems(unit: Unit, spec: Spec, coming: Collection[str] = ()) -> list[Problem]:
    """What the spec names and nobody stored, or what cannot be had in its cluster. coming: secrets made with it."""
    found = list(_secret_problems(unit, spec, coming)) if secrets_of(spec) else []
    names = storages_of(spec)
    if names:
        known = {storage.name: storage for storage in unit.storages.list()}
        found += _storage_problems(known, spec)
    return found


def _secret_problems(unit: Unit, spec: Spec, coming: Collection[str]) -> Iterator[Problem]:
    logins = {**dict.fromkeys(coming, ""), **{s.name: s.registry for s in unit.secrets.list()}}
    for variable, name in spec.secrets:
        if name not in logins:
            yield Problem(
                f"secrets.{variable}",
                name,
                f"the name of a stored secret; store it with podwarden secret set {name}",
            )
    pull = spec.image_pull_secret
    if pull and not logins.get(pull):
        what = "this secret is none" if pull in logins else "there is none of this name"
        yield Problem(
            "image_pull_secret",
            pull,
            f"the login of a registry; {what}: podwarden secret set {pull} --registry HOST --user USER",
        )


def _storage_problems(known: Mapping[str, Storage], spec: Spec) -> Iterator[Problem]:
    bound = (spec.node, f"the workload asks for node {spec.node}") if spec.node else None
    for number, volume in enumerate(spec.volumes):
        if volume.kind is not VolumeKind.STORAGE:
            continue
        field = f"volumes[{number}].storage"
        storage = known.get(volume.storage)
        if storage is None:
            yield Problem(field, volume.storage, _unknown(known))
        elif storage.nfs:
            continue
        elif storage.cluster != spec.cluster:
            yield Problem(
                field,
                storage.name,
                f"a storage of cluster {spec.cluster}; this one lies in cluster {storage.cluster}",
            )
        elif bound is not None and bound[0] != storage.node:
            yield Problem(
                field, storage.name, f"it lies on {storage.node}, and {bound[1]}: no node has both"
            )
        elif storage.node in spec.avoid:
            yield Problem(field, storage.name, f"it lies on {storage.node}, which stands in avoid")
        elif bound is None:
            bound = (storage.node, f"{storage.name} lies on {storage.node}")


def _unknown(known: Iterable[str]) -> str:
    names = sorted(known)
    if not names:
        return (
            "the name of a storage; there is none yet, an admin adds one with podwarden storage add"
        )
    return f"the name of a storage; there is {listed(names)}"


def users(unit: Unit, names: Callable[[Spec], frozenset[str]]) -> dict[str, list[Workload]]:
    """Which workloads refer to each name, oldest first: whatever is not deleted, for it may be started again."""
    found: dict[str, list[Workload]] = {}
    after = ""
    while page := unit.workloads.list(limit=PAGE, after=after):
        after = page[-1].id
        for row in page:
            if row.desire is not Desire.DELETE:
                for name in names(row.spec):
                    found.setdefault(name, []).append(row)
    return found


def listed(names: Iterable[str]) -> str:
    """`a, b and c`; after ten only how many more."""
    every = list(names)
    shown = every[:MOST_NAMED]
    rest = len(every) - len(shown)
    if rest:
        return f"{', '.join(shown)} and {rest} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)
