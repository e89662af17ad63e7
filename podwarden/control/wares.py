"""What a spec asks of the things that all workloads share: ports of the local network, secrets, storages.

Asked inside the transaction that stores the spec, so that two who ask for one port at the same moment cannot both
get it; and before it, for a preview.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from podwarden.control import needs
from podwarden.domain.observation import Observation
from podwarden.domain.workload import (
    ENDED,
    Desire,
    Expose,
    Kind,
    Port,
    Spec,
    State,
    Workload,
)
from podwarden.errors import Conflict, Invalid
from podwarden.store import Unit

PORT_TAKEN = "PORT_TAKEN"
PAGE = 1000
Number = tuple[str, int]  # protocol and port
_RESTING = frozenset({State.STOPPED, State.FAILED})


@dataclass(frozen=True, slots=True)
class Lan:
    """The nodes' addresses in the local network. shared: a port has the same number there, so that two workloads cannot
    both have it; else the cluster chooses a number for each. taken: by work that is not PodWarden's.
    """

    shared: bool = True
    taken: Mapping[Number, str] = field(default_factory=dict)


def lan_of(seen: Observation) -> Lan:
    """What was not seen completely yet may be shared."""
    return Lan(seen.capabilities.lan_ports or not seen.complete, seen.lan_taken)


def _claims(spec: Spec, lan: Lan) -> Iterator[tuple[Number, Port]]:
    """The numbers on the nodes' addresses that a spec takes for itself."""
    for port in spec.ports:
        if spec.host_network or (port.expose is Expose.LAN and lan.shared):
            yield (port.protocol, port.port), port


def check(unit: Unit, row: Workload, spec: Spec, lan: Lan, *, coming: Collection[str] = ()) -> Spec:
    """The spec as it may be stored for this workload: a port of a template that somebody else has on the local
    network stays inside the cluster, since nobody typed it. coming: secrets that will be made with it.

    Conflict PORT_TAKEN names the holder of one that was typed; Invalid: unknown secrets and storages.
    """
    _check_known(unit, spec, coming)
    asked = list(_claims(spec, lan))
    if not asked:
        return spec
    taken = _holders(unit, row, lan)
    numbers = [number for number, _ in asked if number in taken]
    if numbers and (spec.host_network or not spec.template):
        raise _taken(numbers[0], taken)
    if not numbers:
        return spec
    clashes = [port for number, port in asked if number in taken]
    return replace(
        spec,
        ports=tuple(
            replace(port, expose=Expose.CLUSTER) if port in clashes else port for port in spec.ports
        ),
    )


def check_start(unit: Unit, row: Workload, lan: Lan) -> None:
    """Before a start of what has ended: somebody may have taken its port meanwhile. Conflict PORT_TAKEN."""
    asked = [number for number, _ in _claims(row.spec, lan)]
    taken = _holders(unit, row, lan) if asked else {}
    for number in asked:
        if number in taken:
            raise _taken(number, taken)


def inside(asked: Spec, stored: Spec) -> list[int]:
    """The ports that stay inside the cluster though the local network was asked for."""
    return [
        new.port
        for old, new in zip(asked.ports, stored.ports, strict=True)
        if old.expose is not new.expose
    ]


def _holders(unit: Unit, row: Workload, lan: Lan) -> Mapping[Number, str]:
    """Who has which port on the local network: whatever runs or waits, and stopped services, whose address stays."""
    own = {
        number: other.name for other in _others(unit, row) for number, _ in _claims(other.spec, lan)
    }
    return {**lan.taken, **own}


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


def _taken(number: Number, taken: Mapping[Number, str]) -> Conflict:
    protocol, port = number
    which = f"Port {port}" if protocol == "TCP" else f"{protocol} port {port}"
    return Conflict(
        f"{which} on the local network is taken by {taken[number]}: choose another port.",
        code=PORT_TAKEN,
    )


def _check_known(unit: Unit, spec: Spec, coming: Collection[str]) -> None:
    problems = needs.problems(unit, spec, coming)
    if problems:
        raise Invalid(problems)
