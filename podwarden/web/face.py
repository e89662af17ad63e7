"""What the API and the pages need of the control plane, and nothing more.

`podwarden.control` has this shape; the tests pass an in-memory one. `ref` is a workload's id or its name;
`cluster` tells apart two of one name. Everything raises `podwarden.errors` only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Protocol

from podwarden.catalog import Catalogue, Generated
from podwarden.control.answers import (
    Adoption,
    ClusterView,
    Fit,
    Gpu,
    Queued,
    SecretView,
    Status,
    StorageView,
    Submitted,
    Updated,
)
from podwarden.control.feed import Notice
from podwarden.control.made import Offer
from podwarden.domain.access import Role, Token, User
from podwarden.domain.event import Event
from podwarden.domain.inventory import Node
from podwarden.domain.placement import Snapshot, Verdict
from podwarden.domain.workload import Priority, Revision, Spec, State, Workload


class Workloads(Protocol):
    async def submit(
        self,
        actor: User,
        spec: Spec,
        *,
        dry_run: bool = False,
        idempotency: tuple[str, str] | None = None,
        generated: Sequence[Generated] = (),
    ) -> Submitted:
        """idempotency: (key, hash of the body); a repeat answers what the first one made. generated: secrets to
        be made with it.
        """
        ...

    async def submit_all(
        self,
        actor: User,
        offers: Sequence[Offer],
        *,
        dry_run: bool = False,
        idempotency: tuple[str, str] | None = None,
    ) -> tuple[Submitted, ...]:
        """All or none."""
        ...

    async def fit(
        self, actor: User, wishes: Mapping[str, Spec], cluster: str = ""
    ) -> tuple[Fit, ...]: ...

    async def list(
        self,
        actor: User,
        *,
        states: frozenset[State] = frozenset(),
        owner: str = "",
        cluster: str = "",
        search: str = "",
        limit: int = 100,
        after: str = "",
    ) -> tuple[Workload, ...]:
        """after: the id of the last one of the page before."""
        ...

    async def show(self, actor: User, ref: str, cluster: str = "") -> Workload: ...

    def verdict(self, workload: str) -> Verdict | None:
        """What the last plan said; from memory."""
        ...

    def urls(self, workload: Workload) -> tuple[str, ...]: ...

    async def stop(self, actor: User, ref: str, cluster: str = "") -> Workload: ...

    async def start(self, actor: User, ref: str, cluster: str = "") -> Workload: ...

    async def delete(
        self, actor: User, ref: str, cluster: str = "", *, keep_volumes: bool = True
    ) -> Workload: ...

    async def set_priority(
        self, actor: User, ref: str, cluster: str = "", *, priority: Priority
    ) -> Workload: ...

    async def update(
        self,
        actor: User,
        ref: str,
        spec: Spec,
        cluster: str = "",
        *,
        recreate: bool = False,
        dry_run: bool = False,
        generated: Sequence[Generated] = (),
    ) -> Updated: ...

    async def rollback(
        self,
        actor: User,
        ref: str,
        cluster: str = "",
        *,
        revision: int | None = None,
        recreate: bool = False,
    ) -> Updated: ...

    async def revisions(self, actor: User, ref: str, cluster: str = "") -> tuple[Revision, ...]: ...

    async def events(
        self, actor: User, ref: str, cluster: str = "", *, after: int = 0, limit: int = 200
    ) -> tuple[Event, ...]: ...

    async def logs(
        self,
        actor: User,
        ref: str,
        cluster: str = "",
        *,
        instance: str | None,
        follow: bool,
        tail: int | None,
    ) -> AsyncIterator[str]:
        """Awaited once, so that errors come before the first line; then lines without their ends."""
        ...

    async def queue(self, actor: User, cluster: str = "") -> tuple[Queued, ...]: ...

    async def gpus(self, actor: User, cluster: str = "") -> tuple[Gpu, ...]: ...

    async def snapshot(self, actor: User, cluster: str) -> Snapshot: ...


class Clusters(Protocol):
    async def adopt(
        self, actor: User, name: str, kubeconfig: str, *, simulated: bool = False
    ) -> Adoption: ...

    async def list(self, actor: User) -> tuple[ClusterView, ...]: ...

    async def show(self, actor: User, name: str) -> ClusterView: ...

    async def kubeconfig(self, actor: User, name: str) -> str: ...

    async def remove(self, actor: User, name: str) -> None: ...

    async def nodes(self, actor: User, cluster: str = "") -> tuple[tuple[str, Node], ...]: ...


class Access(Protocol):
    async def login(self, name: str, password: str) -> tuple[Token, str]: ...

    async def logout(self, token: Token) -> None: ...

    async def authenticate(self, secret: str) -> tuple[Token, User] | None: ...

    async def tokens(self, actor: User) -> tuple[Token, ...]: ...

    async def create_token(
        self, actor: User, label: str, ttl: timedelta | None
    ) -> tuple[Token, str]: ...

    async def revoke_token(self, actor: User, token: str) -> None: ...

    async def users(self, actor: User) -> tuple[User, ...]: ...

    async def add_user(self, actor: User, name: str, role: Role, password: str) -> User: ...

    async def remove_user(self, actor: User, name: str) -> None: ...

    async def set_password(self, actor: User, name: str, password: str) -> None: ...


class Storages(Protocol):
    async def add(
        self,
        actor: User,
        name: str,
        *,
        nfs: str = "",
        host: str = "",
        cluster: str = "",
        check: bool = True,
    ) -> StorageView: ...

    async def list(self, actor: User) -> tuple[StorageView, ...]: ...

    async def remove(self, actor: User, name: str) -> None: ...


class Secrets(Protocol):
    async def set(
        self, actor: User, name: str, value: str, *, registry: str = "", user: str = ""
    ) -> SecretView: ...

    async def list(self, actor: User) -> tuple[SecretView, ...]: ...

    async def delete(self, actor: User, name: str) -> None: ...


class Subscription(Protocol):
    @property
    def closed(self) -> bool:
        """The feed has ended: nothing more comes."""
        ...

    async def next(self, timeout: float) -> Notice | None:  # noqa: ASYNC109
        """The next change; None when `timeout` seconds passed without one."""
        ...


class Feed(Protocol):
    def subscribe(self, after: int | None = None) -> AbstractAsyncContextManager[Subscription]:
        """after: the last notice the listener knows; what it missed comes first, or a `reset`."""
        ...


class Controller(Protocol):
    @property
    def workloads(self) -> Workloads: ...

    @property
    def clusters(self) -> Clusters: ...

    @property
    def access(self) -> Access: ...

    @property
    def storage(self) -> Storages: ...

    @property
    def secrets(self) -> Secrets: ...

    @property
    def feed(self) -> Feed: ...

    @property
    def catalogue(self) -> Catalogue: ...

    async def status(self) -> Status: ...
