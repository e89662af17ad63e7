"""Who may come in, with what: logins, tokens, users."""

from __future__ import annotations

from datetime import timedelta

from podwarden.control.ground import allow_look
from podwarden.control.ledger import Entry, Ledger
from podwarden.domain.access import Role, Token, User
from podwarden.domain.event import EventKind
from podwarden.errors import Conflict, Forbidden, NotFound, Unauthenticated
from podwarden.store import Unit

SESSION = timedelta(days=14)


class Access:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def login(self, name: str, password: str) -> tuple[Token, str]:
        """A session token and its secret. Unauthenticated: the same words for whatever was wrong."""
        user = await self._ledger.store.read(lambda unit: unit.users.verify(name, password))
        if user is None:
            raise Unauthenticated("The name or the password is wrong.")
        return await self._ledger.store.write(
            lambda unit: unit.tokens.create(user.name, "login", SESSION, session=True)
        )

    async def logout(self, token: Token) -> None:
        def work(unit: Unit) -> None:
            try:
                unit.tokens.revoke(token.id)
            except NotFound:
                return

        await self._ledger.store.write(work)

    async def authenticate(self, secret: str) -> tuple[Token, User] | None:
        """None: no such token, or it has ended."""
        return await self._ledger.store.authenticate(secret)

    async def tokens(self, actor: User) -> tuple[Token, ...]:
        """One's own; admins see everybody's."""
        owner = None if actor.role is Role.ADMIN else actor.name
        return await self._ledger.store.read(lambda unit: unit.tokens.list(owner))

    async def create_token(
        self, actor: User, label: str, ttl: timedelta | None
    ) -> tuple[Token, str]:
        def work(entry: Entry) -> tuple[Token, str]:
            made = entry.unit.tokens.create(actor.name, label, ttl)
            entry.tell(
                f"user/{actor.name}",
                EventKind.ACCESS,
                f"Token “{label}” was made.",
                actor=actor.name,
            )
            return made

        return await self._ledger.write(work)

    async def revoke_token(self, actor: User, token: str) -> None:
        """NotFound: none of that id among those that the actor may see."""

        def work(entry: Entry) -> None:
            found = entry.unit.tokens.get(token)
            if actor.role is not Role.ADMIN and found.user != actor.name:
                raise NotFound(f"There is no token with the id {token}.")
            entry.unit.tokens.revoke(token)
            text = f"Token “{found.label}” was revoked."
            entry.tell(f"user/{found.user}", EventKind.ACCESS, text, actor=actor.name)

        await self._ledger.write(work)

    async def users(self, actor: User) -> tuple[User, ...]:
        allow_look(actor)
        return await self._ledger.store.read(lambda unit: unit.users.list())

    async def add_user(self, actor: User, name: str, role: Role, password: str) -> User:
        """Admins only. Invalid names `name` or `password`; Conflict: the name is taken."""
        _admins(actor)
        return await self._ledger.write(lambda entry: _add(entry, name, role, password, actor.name))

    async def first_user(self, name: str, password: str) -> User:
        """The first admin. Conflict when there are users already."""

        def work(entry: Entry) -> User:
            if entry.unit.users.count():
                raise Conflict("There are users already: an admin adds more.", code="USERS_EXIST")
            return _add(entry, name, Role.ADMIN, password, name)

        return await self._ledger.write(work)

    async def remove_user(self, actor: User, name: str) -> None:
        """Admins only. What they own stays and belongs to their name. Conflict: the last admin."""
        _admins(actor)

        def work(entry: Entry) -> None:
            user = entry.unit.users.get(name)
            others = [u for u in entry.unit.users.list() if u.name != name]
            if user.role is Role.ADMIN and not any(_is_admin(other) for other in others):
                raise Conflict(f"{name} is the last admin: add another one first.")
            entry.unit.users.remove(name)
            entry.tell(
                f"user/{name}", EventKind.ACCESS, f"User {name} was removed.", actor=actor.name
            )

        await self._ledger.write(work)

    async def set_password(self, actor: User, name: str, password: str) -> None:
        """One's own, or anybody's for admins."""
        if actor.role is not Role.ADMIN and actor.name != name:
            raise Forbidden("Only admins may change somebody else's password.")

        def work(entry: Entry) -> None:
            entry.unit.users.set_password(name, password)
            text = f"The password of {name} was changed."
            entry.tell(f"user/{name}", EventKind.ACCESS, text, actor=actor.name)

        await self._ledger.write(work)


def _is_admin(user: User) -> bool:
    return user.role is Role.ADMIN and not user.disabled


def _admins(actor: User) -> None:
    if actor.role is not Role.ADMIN:
        raise Forbidden("Only admins may do this.")


def _add(entry: Entry, name: str, role: Role, password: str, actor: str) -> User:
    user = entry.unit.users.add(name, role, password)
    text = f"User {name} was added as {role.value}."
    entry.tell(f"user/{name}", EventKind.ACCESS, text, actor=actor)
    return user
