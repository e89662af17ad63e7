"""What this hardware can run, now and if it were empty: the planner's word on many specs at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial

from podwarden import scheduling
from podwarden.control.answers import Chance, Fit
from podwarden.control.charges import LIVE
from podwarden.control.ground import UseCases, allow_look
from podwarden.control.sight import Sight
from podwarden.control.snapshot import merge_known, new_claimant
from podwarden.domain.access import User
from podwarden.domain.inventory import Node
from podwarden.domain.placement import Claimant, Snapshot
from podwarden.domain.workload import Desire, Spec, State, Workload

ALIKE = 4  # equal unused nodes that are looked at, more where a wish needs more at once
FRESH = 2.0  # seconds for which an answer is given again


class Fits(UseCases):
    async def fit(
        self, actor: User, wishes: Mapping[str, Spec], cluster: str = ""
    ) -> tuple[Fit, ...]:
        """For each wish and cluster, in their order. At most 2 s old; planned in a thread. NotFound: the cluster."""
        allow_look(actor)
        found: list[Fit] = []
        for name in self._clusters(cluster):
            found.extend(
                await self._recent.get(
                    name,
                    wishes,
                    partial(self._judged, name, wishes),
                    now=self._clock.monotonic,
                    fresh=FRESH,
                )
            )
        return tuple(found)

    async def _judged(self, cluster: str, wishes: Mapping[str, Spec]) -> tuple[Fit, ...]:
        sight = await self._sight(cluster)
        now = self._clock.now()
        rows = {name: _row(name, replace(s, cluster=cluster), now) for name, s in wishes.items()}
        await sight.past.know(list(rows.values()))
        asked = {
            name: new_claimant(row, sight.seen, sight.past, now.astimezone())
            for name, row in rows.items()
        }
        view = self._snapshot(sight)
        empty = _emptied(view, sight)
        return await asyncio.to_thread(_judge, cluster, view, empty, asked, now)


def _judge(
    cluster: str,
    view: Snapshot,
    empty: Snapshot,
    asked: Mapping[str, Claimant],
    now: datetime,
) -> tuple[Fit, ...]:
    found = []
    if all(claimant.nodes is None and not claimant.avoid for claimant in asked.values()):
        alike = max([ALIKE, *(claimant.at_least for claimant in asked.values())])
        empty = _thinned(empty, alike)
        if not view.claimants and not view.foreign:
            view = _thinned(view, alike)
    for name, claimant in asked.items():
        refusal = scheduling.refusal(empty, claimant)
        if refusal is not None:
            never = Chance(None, refusal)
            found.append(Fit(name, cluster, never, never, never=True))
            continue
        found.append(
            Fit(name, cluster, _chance(view, claimant, now), _chance(empty, claimant, now))
        )
    return tuple(found)


def _thinned(view: Snapshot, alike: int) -> Snapshot:
    """With at most so many of the nodes that nobody uses and that are the same but for their names: one answers for all,
    and hundreds would only cost time.
    """
    used = {h.node for h in view.holdings} | {r.node for r in view.reserved}
    kept_free = {device for device, _ in view.holds}
    seen: Counter[Node] = Counter()
    nodes = []
    for node in view.nodes:
        if node.name not in used and not any(d.uuid in kept_free for d in node.devices):
            kind = _kind(node)
            seen[kind] += 1
            if seen[kind] > alike:
                continue
        nodes.append(node)
    return replace(view, nodes=tuple(nodes))


def _kind(node: Node) -> Node:
    devices = tuple(replace(d, node="", index=0, uuid="", pci_bus_id="") for d in node.devices)
    return replace(node, name="", address="", labels=(), changed_at=None, devices=devices)


def _chance(view: Snapshot, claimant: Claimant, now: datetime) -> Chance:
    _, verdict, placement = scheduling.preview(view, claimant, now)
    return Chance(placement, None if placement is not None else verdict.reason)


def _row(name: str, spec: Spec, now: datetime) -> Workload:
    """As if it had just been submitted."""
    return Workload(
        id=f"fit/{name}",
        name=spec.name,
        owner="",
        cluster=spec.cluster,
        spec=spec,
        revision=1,
        state=State.QUEUED,
        desire=Desire.RUN,
        created_at=now,
        changed_at=now,
        queued_at=now,
    )


def _emptied(view: Snapshot, sight: Sight) -> Snapshot:
    """As if nothing ran and nobody waited: GPUs are free, and so is what our own work takes of CPU and memory."""
    used: dict[str, tuple[int, int]] = {}
    for row in sight.books.holding.values():
        for instance in sight.seen.instances.get(row.id, ()):
            if instance.phase in LIVE and instance.node:
                cpu, memory = used.get(instance.node, (0, 0))
                ours = row.spec.cpu_milli, row.spec.instance_memory_mib
                used[instance.node] = (cpu + ours[0], memory + ours[1])
    nodes = tuple(
        _without(node, *used.get(node.name, (0, 0)))
        for node in merge_known(sight.seen.nodes, sight.known)
    )
    return replace(view, nodes=nodes, holdings=(), reserved=(), claimants=(), foreign=(), holds=())


def _without(node: Node, cpu_milli: int, memory_mib: int) -> Node:
    return replace(
        node,
        used_cpu_milli=max(node.used_cpu_milli - cpu_milli, 0),
        used_memory_mib=max(node.used_memory_mib - memory_mib, 0),
    )
