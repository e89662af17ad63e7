"""What a spec asks of the things that all workloads share: ports of the local network, secrets, storages.

Asked inside the transaction that stores the spec, so that two who ask for one port at the same moment cannot both
get it; and before it, for a preview.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from podwarden.domain.workload import (
    ENDED,
    Desire,
    Expose,
    Kind,
    Spec,
    State,
    VolumeKind,
    Workload,
)
from podwarden.errors import Conflict, Invalid, Problem
from podwarden.store import Unit

PORT_TAKEN = "PORT_TAKEN"
PAGE = 1000
_RESTING = frozenset({State.STOPPED, State.FAILED})


def check(unit: Unit, row: Workload, spec: Spec, *, coming: Collection[str] = ()) -> Spec:
    """The spec as it may be stored for this workload: a port of a template that somebody else has on the local
    network stays inside the cluster, since nobody typed it. coming: secrets that will be made with it.

    Conflict PORT_TAKEN names the holder of one that was typed; Invalid: unknown secrets and storages.
    """
    _check_known(unit, spec, coming)
    asked = [port for port in spec.ports if port.expose is Expose.LAN]
    if not asked:
        return spec
    taken = _holders(unit, row)
    clashes = [port for port in asked if port.port in taken]
    if clashes and not spec.template:
        raise _taken(clashes[0].port, taken)
    if not clashes:
        return spec
    return replace(
        spec,
        ports=tuple(
            replace(port, expose=Expose.CLUSTER) if port in clashes else port for port in spec.ports
        ),
    )


def check_start(unit: Unit, row: Workload) -> None:
    """Before a start of what has ended: somebody may have taken its port meanwhile. Conflict PORT_TAKEN."""
    asked = [port.port for port in row.spec.ports if port.expose is Expose.LAN]
    taken = _holders(unit, row) if asked else {}
    for port in asked:
        if port in taken:
            raise _taken(port, taken)


def inside(asked: Spec, stored: Spec) -> list[int]:
    """The ports that stay inside the cluster though the local network was asked for."""
    return [
        new.port
        for old, new in zip(asked.ports, stored.ports, strict=True)
        if old.expose is not new.expose
    ]


def _holders(unit: Unit, row: Workload) -> Mapping[int, str]:
    """Who has which port on the local network: whatever runs or waits, and stopped services, whose address stays."""
    return {
        port.port: other.name
        for other in _others(unit, row)
        for port in other.spec.ports
        if port.expose is Expose.LAN
    }


def _others(unit: Unit, row: Workload) -> Iterator[Workload]:
    for other in unit.workloads.active(row.cluster):
        if other.id != row.id and other.desire is not Desire.DELETE and other.state not in ENDED:
            yield other
    after = ""
    while page := unit.workloads.list(
        states=_RESTING, cluster=row.cluster, limit=PAGE, after=after
    ):
        after = page[-1].id
        for other in page:
            if (
                other.id != row.id
                and other.kind is Kind.SERVICE
                and other.desire is not Desire.DELETE
            ):
                yield other


def _taken(port: int, taken: Mapping[int, str]) -> Conflict:
    return Conflict(
        f"Port {port} on the local network is taken by {taken[port]}: choose another port.",
        code=PORT_TAKEN,
    )


def _check_known(unit: Unit, spec: Spec, coming: Collection[str]) -> None:
    known = set(unit.secrets.names()) if spec.secrets or spec.image_pull_secret else set()
    known.update(coming)
    problems = [
        Problem(f"secrets.{variable}", name, "the name of a stored secret")
        for variable, name in spec.secrets
        if name not in known
    ]
    pull = spec.image_pull_secret
    if pull and pull not in known:
        problems.append(Problem("image_pull_secret", pull, "the name of a stored secret"))
    problems.extend(_unknown_storages(spec))
    if problems:
        raise Invalid(problems)


def _unknown_storages(spec: Spec) -> Iterable[Problem]:
    for number, volume in enumerate(spec.volumes):
        if volume.kind is VolumeKind.STORAGE:
            yield Problem(
                f"volumes[{number}].storage",
                volume.storage,
                "a kind of volume that this PodWarden has: disk, cache or scratch",
            )
