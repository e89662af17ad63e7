"""The control plane in memory, with the face that web needs: enough behaviour to talk to, no decisions
worth testing. Faults are asked for by `fail`.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from podwarden import catalog
from podwarden.control.answers import (
    Adoption,
    Chance,
    ClusterView,
    Fit,
    Gpu,
    Made,
    Queued,
    SecretView,
    Status,
    StorageView,
    Submitted,
    Updated,
)
from podwarden.control.feed import Feed
from podwarden.domain.access import Role, Token, User, may_change
from podwarden.domain.cluster import Cluster
from podwarden.domain.event import Event, EventKind
from podwarden.domain.inventory import DEVICE_SHARES, Device, Holder, Holding, Node
from podwarden.domain.placement import Placement, Slot, Snapshot, Verdict
from podwarden.domain.reason import Code, Note, Reason
from podwarden.domain.storage import Storage
from podwarden.domain.units import promisable
from podwarden.domain.workload import Desire, Revision, State, Workload
from podwarden.errors import Conflict, Forbidden, NotFound, Unauthenticated


def now() -> datetime:
    return datetime.now(UTC)


def device(node: str, index: int, model: str, gib: int) -> Device:
    return Device(node, index, f"gpu-{node}-{index}", model, gib * 1024, promisable(gib * 1024))


NODES = (
    Node("n2", 8000, 32768, simulated=True),
    Node("n3", 16000, 65536, simulated=True, devices=(device("n3", 0, "RTX 3060", 12), device("n3", 1, "RTX 3090", 24))),
    Node("n4", 16000, 65536, simulated=True, devices=(device("n4", 0, "RTX A4000", 16), device("n4", 1, "RTX A4000", 16))),
    Node("n5", 8000, 16384, simulated=True, devices=(device("n5", 0, "GTX 1070", 8),)),
)  # fmt: skip


class Workloads:
    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.rows: dict[str, Workload] = {}
        self.history: dict[str, list[Event]] = {}
        self.kept: dict[str, list[Revision]] = {}
        self.verdicts: dict[str, Verdict] = {}
        self.once: dict[tuple[str, str], tuple[str, str]] = {}
        self.lines: list[str] = ["first line", "second line"]
        self.made: tuple[Made, ...] = ()  # by the next submits
        self.fail: Exception | None = None
        self.calls = 0
        self.log_open = 0

    # ---- for tests

    def put(self, workload: Workload) -> Workload:
        self.rows[workload.id] = workload
        self.feed.publish("workload", workload.id)
        return workload

    def event(
        self, workload: Workload, kind: EventKind, text: str, actor: str = "podwarden"
    ) -> None:
        events = self.history.setdefault(workload.id, [])
        number = sum(len(e) for e in self.history.values()) + 1
        events.append(Event(now(), workload.id, kind, text, actor, id=number, name=workload.name))

    def run(self, id_: str) -> Workload:
        row = self.rows[id_]
        placement = row.placement
        assert placement is not None
        return self.put(
            replace(
                row,
                state=State.RUNNING,
                reason=None,
                started_at=now(),
                nodes=tuple(s.node for s in placement.slots),
                devices=tuple(d for s in placement.slots for d in s.devices),
            )
        )

    # ---- the face

    def _held(self) -> set[str]:
        return {
            d
            for w in self.rows.values()
            if w.placement and w.state not in (State.STOPPED, State.SUCCEEDED, State.FAILED)
            for s in w.placement.slots
            for d in s.devices
        }

    def _room(self, spec) -> Placement | Reason:
        if spec.gpu is None:
            return Placement("", (Slot("n2"),))
        want = spec.gpu.vram_mib or 0
        fitting = sorted(
            (d for n in NODES for d in n.devices if d.vram_mib >= want), key=lambda d: d.vram_mib
        )
        if not fitting:
            return Reason(
                Code.NO_DEVICE_LARGE_ENOUGH,
                f"vram {want // 1024}GB, the largest GPU here has 24 GB (n3, RTX 3090).",
            )
        free = [d for d in fitting if d.uuid not in self._held()]
        if not free:
            return Reason(
                Code.WAITS_FOR_SERVICE,
                f"needs 1 GPU with {want // 1024} GB. n3 RTX 3090 is held by vllm, a service without an end.",
                "Stop vllm, or ask for 16 GB to start now on n4.",
                (Note("n3", "gpu-n3-1", Code.WAITS_FOR_SERVICE, "n3 RTX 3090 is held by vllm"),),
            )
        return Placement("", (Slot(free[0].node, (free[0].uuid,)),))

    async def submit_all(self, actor, offers, *, dry_run=False, idempotency=None):
        return tuple([await self.submit(actor, o.spec, dry_run=dry_run) for o in offers])

    async def fit(self, actor, wishes, cluster=""):
        found = []
        for name, spec in wishes.items():
            room = self._room(spec)
            chance = Chance(None, room) if isinstance(room, Reason) else Chance(room, None)
            never = isinstance(room, Reason) and room.code is Code.NO_DEVICE_LARGE_ENOUGH
            found.append(Fit(name, cluster or "home", chance, chance, never=never))
        return tuple(found)

    async def submit(
        self, actor, spec, *, dry_run=False, idempotency=None, generated=()
    ) -> Submitted:
        self.calls += 1
        if self.fail:
            raise self.fail
        if actor.role is Role.VIEWER:
            raise Forbidden("A viewer may look, not deploy.")
        if idempotency is not None and (actor.name, idempotency[0]) in self.once:
            body, id_ = self.once[actor.name, idempotency[0]]
            if body != idempotency[1]:
                raise Conflict(
                    "This key was used for another request.", code="IDEMPOTENCY_KEY_REUSED"
                )
            return Submitted(self.rows[id_], self.verdicts.get(id_), self.rows[id_].placement)
        room = self._room(spec)
        if isinstance(room, Reason) and room.code is Code.NO_DEVICE_LARGE_ENOUGH:
            return Submitted(refusal=room)
        waiting = sum(w.state is State.QUEUED for w in self.rows.values())
        starts = isinstance(room, Placement)
        verdict = Verdict("", 0 if starts else waiting + 1, None if starts else room)
        placement = room if isinstance(room, Placement) else None
        if dry_run:
            return Submitted(None, verdict, placement)
        if any(w.name == spec.name for w in self.rows.values()):
            raise Conflict(f"{spec.name} is taken. Choose another with --name.", code="NAME_TAKEN")
        id_ = secrets.token_hex(8)
        row = Workload(
            id=id_, name=spec.name, owner=actor.name, cluster="demo", spec=spec, revision=1,
            state=State.QUEUED, desire=Desire.RUN, created_at=now(), changed_at=now(),
            queued_at=now(), placement=placement,
        )  # fmt: skip
        self.verdicts[id_] = verdict
        self.kept[id_] = [Revision(id_, 1, spec, now(), actor.name)]
        if idempotency is not None:
            self.once[actor.name, idempotency[0]] = (idempotency[1], id_)
        self.put(row)
        self.event(row, EventKind.SUBMITTED, f"{actor.name} deployed {spec.name}.", actor.name)
        self.feed.publish("queue", "demo")
        return Submitted(row, verdict, placement, made=self.made)

    async def list(
        self, actor, *, states=frozenset(), owner="", cluster="", search="", limit=100, after=""
    ):
        rows = list(self.rows.values())
        if after:
            ids = [w.id for w in rows]
            rows = rows[ids.index(after) + 1 :]
        return tuple(
            w
            for w in rows
            if (not states or w.state in states)
            and (not owner or w.owner == owner)
            and search in w.name
        )[:limit]

    async def show(self, actor, ref, cluster="") -> Workload:
        for row in self.rows.values():
            if ref in (row.id, row.name):
                return row
        raise NotFound(f"There is no workload {ref!r}.")

    def verdict(self, workload):
        return self.verdicts.get(workload)

    def urls(self, workload):
        return tuple(f"http://192.168.1.33:{p.port}" for p in workload.spec.ports)

    async def _change(self, actor, ref, **fields):
        row = await self.show(actor, ref)
        if not may_change(actor, row.owner):
            raise Forbidden(f"{row.name} belongs to {row.owner}.")
        return self.put(replace(row, **fields))

    async def stop(self, actor, ref, cluster=""):
        return await self._change(actor, ref, state=State.STOPPING, desire=Desire.STOP)

    async def start(self, actor, ref, cluster=""):
        return await self._change(actor, ref, state=State.QUEUED, desire=Desire.RUN)

    async def delete(self, actor, ref, cluster="", *, keep_volumes=True):
        row = await self._change(actor, ref, desire=Desire.DELETE, keep_volumes=keep_volumes)
        del self.rows[row.id]
        return row

    async def set_priority(self, actor, ref, cluster="", *, priority):
        row = await self.show(actor, ref)
        return await self._change(actor, ref, spec=replace(row.spec, priority=priority))

    async def update(
        self, actor, ref, spec, cluster="", *, recreate=False, dry_run=False, generated=()
    ) -> Updated:
        row = await self.show(actor, ref)
        if spec.gpu and not recreate:
            raise Conflict("No room for both: use --recreate.", code="UPDATE_NEEDS_DOWNTIME")
        if dry_run:
            return Updated(row, "recreate", "would be updated with an outage")
        self.kept[row.id].append(Revision(row.id, row.revision + 1, spec, now(), actor.name))
        row = await self._change(actor, ref, spec=spec, revision=row.revision + 1)
        return Updated(row, "recreate", f"revision {row.revision}, with a short outage.")

    async def rollback(self, actor, ref, cluster="", *, revision=None, recreate=False) -> Updated:
        row = await self.show(actor, ref)
        target = revision or row.revision - 1
        found = [r for r in self.kept[row.id] if r.number == target]
        if not found:
            raise NotFound(f"{row.name} has no revision {target}.")
        return await self.update(actor, ref, found[0].spec, recreate=True)

    async def revisions(self, actor, ref, cluster=""):
        return tuple(self.kept[(await self.show(actor, ref)).id])

    async def events(self, actor, ref, cluster="", *, after=0, limit=200):
        row = await self.show(actor, ref)
        return tuple(e for e in self.history.get(row.id, []) if e.id > after)[:limit]

    async def logs(self, actor, ref, cluster="", *, instance, follow, tail) -> AsyncIterator[str]:
        await self.show(actor, ref)
        return self._lines(follow=follow, tail=tail)

    async def _lines(self, *, follow, tail):
        self.log_open += 1
        try:
            for line in self.lines[-tail:] if tail else self.lines:
                yield line
            if follow:
                async with self.feed.subscribe() as subscription:
                    while (notice := await subscription.next(60)) is not None:
                        yield f"news of {notice.subject}"
        finally:
            self.log_open -= 1

    async def queue(self, actor, cluster=""):
        return tuple(
            Queued(w, self.verdicts.get(w.id))
            for w in self.rows.values()
            if w.state is State.QUEUED
        )

    async def gpus(self, actor, cluster=""):
        if self.fail:
            raise self.fail
        holders = {d: w for w in self.rows.values() for d in w.devices}
        return tuple(
            Gpu(
                "demo",
                d,
                (Holding(d.uuid, d.node, d.memory_mib, DEVICE_SHARES, Holder(w.name, w.id)),)
                if (w := holders.get(d.uuid))
                else (),
                simulated=True,
            )
            for n in NODES
            for d in n.devices
        )

    async def snapshot(self, actor, cluster) -> Snapshot:
        return Snapshot("demo", now(), NODES)


class Clusters:
    def __init__(self) -> None:
        cluster = Cluster("demo", "https://127.0.0.1:6443", now(), "v1.37.2", simulated=True)
        self.views = {"demo": ClusterView(cluster, 4, 5)}

    async def adopt(self, actor, name, kubeconfig, *, simulated=False) -> Adoption:
        if actor.role is not Role.ADMIN:
            raise Forbidden("Only an admin adopts clusters.")
        cluster = Cluster(name, "https://127.0.0.1:1", now(), "v1.37.2", simulated)
        self.views[name] = ClusterView(cluster, 0, 0, reachable=False, trouble="does not answer")
        return Adoption(cluster, ("ollama",))

    async def list(self, actor):
        return tuple(self.views.values())

    async def show(self, actor, name):
        if name not in self.views:
            raise NotFound(f"There is no cluster {name!r}.")
        return self.views[name]

    async def kubeconfig(self, actor, name):
        await self.show(actor, name)
        if actor.role is not Role.ADMIN:
            raise Forbidden("Only an admin sees it.")
        return "apiVersion: v1\n"

    async def remove(self, actor, name):
        await self.show(actor, name)
        del self.views[name]

    async def nodes(self, actor, cluster=""):
        return tuple(("demo", n) for n in NODES)


class Access:
    def __init__(self) -> None:
        self.passwords = {"admin": "right horse", "mel": "member pass", "vic": "viewer pass"}
        self.people = {
            "admin": User("admin", Role.ADMIN, now()),
            "mel": User("mel", Role.MEMBER, now()),
            "vic": User("vic", Role.VIEWER, now()),
        }
        self.secrets: dict[str, Token] = {}
        self.checks = 0

    def _make(self, user: str, label: str, ttl: timedelta | None, *, session=False):
        secret = "pw_" + secrets.token_hex(16)
        expires = None if ttl is None else now() + ttl
        token = Token(secrets.token_hex(4), user, label, now(), expires, session=session)
        self.secrets[secret] = token
        return token, secret

    async def login(self, name, password):
        self.checks += 1
        if self.passwords.get(name) != password:
            raise Unauthenticated("Name or password is wrong.")
        return self._make(name, "", timedelta(hours=12), session=True)

    async def logout(self, token):
        self.secrets = {s: t for s, t in self.secrets.items() if t.id != token.id}

    async def authenticate(self, secret):
        token = self.secrets.get(secret)
        if token is None or (token.expires_at and token.expires_at <= now()):
            return None
        user = self.people.get(token.user)
        return None if user is None else (token, user)

    async def tokens(self, actor):
        return tuple(t for t in self.secrets.values() if t.user == actor.name)

    async def create_token(self, actor, label, ttl):
        return self._make(actor.name, label, ttl)

    async def revoke_token(self, actor, token):
        if token not in [t.id for t in self.secrets.values()]:
            raise NotFound(f"There is no token {token!r}.")
        self.secrets = {s: t for s, t in self.secrets.items() if t.id != token}

    async def users(self, actor):
        return tuple(self.people.values())

    async def add_user(self, actor, name, role, password):
        if actor.role is not Role.ADMIN:
            raise Forbidden("Only an admin adds users.")
        if name in self.people:
            raise Conflict(f"{name} is taken.")
        self.people[name] = User(name, role, now())
        self.passwords[name] = password
        return self.people[name]

    async def remove_user(self, actor, name):
        if name not in self.people:
            raise NotFound(f"There is no user {name!r}.")
        del self.people[name]

    async def set_password(self, actor, name, password):
        self.passwords[name] = password


class Storages:
    def __init__(self) -> None:
        self.views: dict[str, StorageView] = {}

    async def list(self, actor):
        return tuple(self.views.values())

    async def add(self, actor, name, *, nfs="", host="", cluster="", check=True):
        if actor.role is not Role.ADMIN:
            raise Forbidden("Only admins may add a storage.")
        at, _, path = (nfs or host).partition(":")
        place = {"server": at} if nfs else {"node": at, "cluster": cluster or "home"}
        noun = Storage(name, path, now(), actor.name, checked=check, **place)
        self.views[name] = StorageView(noun)
        return self.views[name]

    async def remove(self, actor, name):
        view = self.views.get(name)
        if view is None:
            raise NotFound(f"There is no storage named {name}.")
        if view.used_by:
            raise Conflict(
                f"The storage {name} is used by {view.used_by[0]}.", code="STORAGE_IN_USE"
            )
        del self.views[name]


class Secrets:
    def __init__(self) -> None:
        self.views: dict[str, SecretView] = {}
        self.values: dict[str, str] = {}

    async def list(self, actor):
        return tuple(self.views.values())

    async def set(self, actor, name, value, *, registry="", user=""):
        used = self.views[name].used_by if name in self.views else ()
        self.values[name] = value
        self.views[name] = SecretView(name, actor.name, now(), registry, used)
        return self.views[name]

    async def delete(self, actor, name):
        if self.views.pop(name, None) is None:
            raise NotFound(f"There is no secret named {name}.")


class ControllerDouble:
    def __init__(self) -> None:
        self.feed = Feed()
        self.workloads = Workloads(self.feed)
        self.clusters = Clusters()
        self.access = Access()
        self.storage = Storages()
        self.secrets = Secrets()
        self.catalogue = catalog.load()

    async def status(self) -> Status:
        return Status(
            True, "this one", tuple(self.clusters.views.values()), ("admission: nothing to do.",)
        )

    def token(self, user: str = "admin", ttl: timedelta | None = None) -> str:
        return self.access._make(user, "test", ttl)[1]


__all__ = ["ControllerDouble"]
