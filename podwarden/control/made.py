"""Secrets that a template has made for its workload: stored with it, shown once, gone with its volumes.

No value of one may reach an event, a log or the row of a workload.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from podwarden import catalog
from podwarden.control.answers import Made
from podwarden.domain.workload import Spec, Workload
from podwarden.errors import Conflict
from podwarden.store import Unit

SECRET_TAKEN = "SECRET_TAKEN"  # noqa: S105 - a code, no secret
PAGE = 1000


@dataclass(frozen=True, slots=True)
class Offer:
    """What somebody wants to deploy, with the secrets that its template has made where they are missing."""

    spec: Spec
    generated: tuple[catalog.Generated, ...] = ()

    @property
    def coming(self) -> frozenset[str]:
        return frozenset(one.secret for one in self.generated)


def check(unit: Unit, workload: str, owner: str, wanted: Sequence[catalog.Generated]) -> None:
    """Conflict SECRET_TAKEN: somebody else stored a secret of such a name, whose value they know."""
    known = {secret.name: secret for secret in unit.secrets.list()} if wanted else {}
    for one in wanted:
        there = known.get(one.secret)
        if there is not None and there.made_for != workload and there.owner != owner:
            raise Conflict(
                f"{workload} needs a secret named {one.secret}, and {there.owner} has one of that name: choose another "
                f"name for the workload, or name a secret of your own with --set {one.parameter}=SECRET.",
                code=SECRET_TAKEN,
            )


def make(
    unit: Unit, workload: str, owner: str, wanted: Sequence[catalog.Generated]
) -> tuple[Made, ...]:
    """Stores those that do not exist; only these are given back, with their values.

    One that was made for an earlier workload of this name is kept, since its data may need it. Conflict SECRET_TAKEN.
    """
    check(unit, workload, owner, wanted)
    known = set(unit.secrets.names()) if wanted else set()
    made = []
    for one in wanted:
        if one.secret not in known:
            value = catalog.generate()
            unit.secrets.make(one.secret, value, owner, workload)
            made.append(Made(one.secret, one.parameter, one.title, value))
    return tuple(made)


def told_again(unit: Unit, workload: str, told: Iterable[Sequence[str]]) -> tuple[Made, ...]:
    """For the repeat of a request whose answer was lost. told: (secret, parameter, title) of what it had made."""
    names = {one.name for one in unit.secrets.list() if one.made_for == workload} if told else ()
    return tuple(
        Made(name, parameter, title, unit.secrets.get(name))
        for name, parameter, title in told
        if name in names
    )


def kept(offer: Offer, before: Spec) -> Offer:
    """The offer for an update: a variable that has a secret keeps it where the template would have made one."""
    current = dict(before.secrets)
    secrets = tuple(
        (variable, current.get(variable, name) if name in offer.coming else name)
        for variable, name in offer.spec.secrets
    )
    named = {name for _, name in secrets}
    still = tuple(one for one in offer.generated if one.secret in named)
    return Offer(replace(offer.spec, secrets=secrets), still)


def forget(unit: Unit, row: Workload) -> None:
    """With a workload that goes with its volumes; what another workload names stays."""
    mine = {secret.name for secret in unit.secrets.list() if secret.made_for == row.name}
    if not mine:
        return
    for name in sorted(mine - _named_by_others(unit, row, mine)):
        unit.secrets.delete(name)


def _named_by_others(unit: Unit, row: Workload, names: Collection[str]) -> set[str]:
    return {
        name
        for other in _all(unit)
        if other.id != row.id
        for _, name in other.spec.secrets
        if name in names
    }


def _all(unit: Unit) -> Iterator[Workload]:
    after = ""
    while page := unit.workloads.list(limit=PAGE, after=after):
        yield from page
        after = page[-1].id
