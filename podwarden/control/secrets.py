"""Named secrets: values that workloads are given by name, and logins of registries. Never shown again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from podwarden.control import needs
from podwarden.control.answers import SecretView
from podwarden.control.ground import allow_look
from podwarden.control.ledger import Entry, Ledger
from podwarden.domain.access import Role, User
from podwarden.domain.event import EventKind
from podwarden.domain.workload import Workload
from podwarden.errors import Conflict, Forbidden, Invalid, NotFound, Problem
from podwarden.kube.registry import docker_config
from podwarden.store import Unit
from podwarden.store.book import check_name

LONGEST = 64 * 1024  # characters of a value: an environment variable has 128 KiB at most
Login = Callable[[str, str, str], Awaitable[str]]  # registry, user, password -> its host; Invalid


class Secrets:
    """login: one try to log in to a registry, in bounded time."""

    def __init__(self, ledger: Ledger, login: Login) -> None:
        self._ledger = ledger
        self._login = login

    async def set(
        self, actor: User, name: str, value: str, *, registry: str = "", user: str = ""
    ) -> SecretView:
        """Stores it, or its new value. registry: the value is the password of `user` there, and is tried first.

        Members add secrets and change their own, admins change all. Invalid names the field, never quotes the value.
        """
        _may_write(actor)
        _check(name, value, registry, user)
        await self._ledger.store.read(lambda unit: _own(unit, actor, name))
        host = ""
        if registry:
            host = await self._login(registry, user, value)
            value = docker_config(host, user, value)

        def work(entry: Entry) -> SecretView:
            before = _own(entry.unit, actor, name)
            used = needs.users(entry.unit, needs.secrets_of).get(name, [])
            if before is not None and before.registry and not host:
                _stays_a_login(name, used)
            entry.unit.secrets.set(name, value, actor.name, registry=host)
            did = "was stored" if before is None else "has a new value"
            entry.tell(
                f"secret/{name}", EventKind.ACCESS, f"Secret {name} {did}.", actor=actor.name, name=name
            )  # fmt: skip
            return _views(entry.unit, {name: used})[name]

        return await self._ledger.write(work)

    async def list(self, actor: User) -> tuple[SecretView, ...]:
        """By name, without values, each with the workloads that refer to it."""
        allow_look(actor)

        def read(unit: Unit) -> tuple[SecretView, ...]:
            return tuple(_views(unit, needs.users(unit, needs.secrets_of)).values())

        return await self._ledger.store.read(read)

    async def delete(self, actor: User, name: str) -> None:
        """Conflict SECRET_IN_USE names the workloads; NotFound."""
        _may_write(actor)

        def work(entry: Entry) -> None:
            if _own(entry.unit, actor, name) is None:
                raise NotFound(f"There is no secret named {name}.")
            used = needs.users(entry.unit, needs.secrets_of).get(name, [])
            if used:
                raise Conflict(
                    f"The secret {name} is used by {_names(used)}: delete them or give them another one first.",
                    code="SECRET_IN_USE",
                )
            entry.unit.secrets.delete(name)
            entry.tell(
                f"secret/{name}", EventKind.ACCESS, f"Secret {name} was deleted.", actor=actor.name, name=name
            )  # fmt: skip

        await self._ledger.write(work)


def _check(name: str, value: str, registry: str, user: str) -> None:
    found: list[Problem] = []
    try:
        check_name("name", name)
    except Invalid as invalid:
        found.extend(invalid.problems)
    if not value or len(value) > LONGEST or "\0" in value:
        found.append(
            Problem("value", "", f"between 1 and {LONGEST:,} characters, without NUL characters")
        )
    if registry and (not user or ":" in user or not user.isprintable()):
        found.append(Problem("user", user, "the name at the registry, without a colon"))
    if user and not registry:
        found.append(Problem("registry", "", "which registry this user logs in to"))
    if found:
        raise Invalid(found)


def _own(unit: Unit, actor: User, name: str) -> SecretView | None:
    """None: there is none of this name. Forbidden: it belongs to somebody else."""
    found = _views(unit, {}).get(name)
    if found is not None and actor.role is not Role.ADMIN and found.owner != actor.name:
        raise Forbidden(f"The secret {name} belongs to {found.owner}.")
    return found


def _views(unit: Unit, users: dict[str, list[Workload]]) -> dict[str, SecretView]:
    return {
        each.name: SecretView(
            each.name,
            each.owner,
            each.changed_at,
            each.registry,
            tuple(row.name for row in users.get(each.name, ())),
        )
        for each in unit.secrets.list()
    }


def _stays_a_login(name: str, used: Sequence[Workload]) -> None:
    pulled = [row for row in used if row.spec.image_pull_secret == name]
    if pulled:
        raise Conflict(
            f"{name} is the registry login of {_names(pulled)}: give its registry and user with the new password.",
            code="SECRET_IN_USE",
        )


def _names(rows: Sequence[Workload]) -> str:
    return needs.listed(row.name for row in rows)


def _may_write(actor: User) -> None:
    if actor.role is Role.VIEWER:
        raise Forbidden("Viewers may look at everything and change nothing.")
