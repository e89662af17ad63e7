"""A cluster in memory that records what it is told: objects appear, instances start, devices are held.

Faults: `fail` gives errors for the next calls of a verb; `silent` makes it unreachable; `hide` stops the watch.
It shares no code with podwarden.kube.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from podwarden.domain.inventory import Capabilities, Device, Holder, Holding, Node
from podwarden.domain.observation import Instance, LastWords, Observation, Presence
from podwarden.errors import FenceLost, NotFound, Unavailable


@dataclass(frozen=True)
class Given:
    """What the tests' renderer makes of a row."""

    row: object
    secrets: tuple[str, ...] = ()
    storages: tuple[str, ...] = ()


def give(row, revisions, needs, seen):
    return Given(row, tuple(sorted(needs.secrets)), tuple(sorted(needs.storages)))


def gpu_node(name, *vram_gb, **changes):
    devices = tuple(
        Device(name, i, f"gpu-{name}-{i}", f"RTX {gb}", gb * 1024, gb * 1024 - 512)
        for i, gb in enumerate(vram_gb)
    )
    return replace(Node(name, 16000, 65536, devices=devices), **changes)


class Cluster:
    """auto: instances become ready by themselves as soon as they are made."""

    def __init__(self, *nodes, auto=True):
        self.nodes = {node.name: node for node in nodes}
        self.auto = auto
        self.calls = []
        self.carried = 0
        self.silent = False
        self.hidden = False
        self.half_open = None  # open_gates opens so many of the next call's gates, then breaks
        self.adopted = ()
        self.damaged = ()
        self.words = {}  # workload -> what its copies said last
        self.asked_words = []
        self._fail = defaultdict(list)
        self._presences = {}
        self._instances = {}
        self._rows = {}
        self._given = {}
        self._able, self._lan_taken = Capabilities(), {}
        self._holds = ()
        self._revision = 1
        self._changed = asyncio.Event()
        self._shown = None
        self._made = 0

    # what tests do to it

    def fail(self, verb, *errors):
        self._fail[verb].extend(errors)

    def instances(self, workload):
        return self._instances.get(workload, ())

    def given(self, workload):
        """What it was last applied with."""
        return self._given[workload]

    def able(self, capabilities, lan_taken=()):
        """What the cluster can do, and which LAN ports are other people's."""
        self._able, self._lan_taken = capabilities, dict(lan_taken)
        self.touch()

    def presence(self, workload):
        return self._presences.get(workload)

    def finish(self, workload, **changes):
        """The job's only instance ends well and gives its GPU back."""
        ended = {"phase": "succeeded", "allocated": False, "devices": (), "ended_at": _now()}
        self.set_instances(
            workload, *(replace(i, ready=False, **ended) for i in self.instances(workload))
        )
        shown = self._presences[workload]
        self._presences[workload] = replace(shown, complete=True, succeeded=1, **changes)
        self.touch()

    def end_task(self, workload, name):
        """One task of an array ends well; the job counts it, and makes the next task if there is one."""
        ended = {"phase": "succeeded", "allocated": False, "devices": (), "ended_at": _now()}
        self.set_instances(
            workload,
            *(
                replace(i, ready=False, **ended) if i.name == name else i
                for i in self.instances(workload)
            ),
        )
        shown = self._presences[workload]
        done = shown.succeeded + 1
        total = self._rows[workload].spec.job.tasks
        self._presences[workload] = replace(shown, succeeded=done, complete=done == total)
        self._make_tasks(workload)
        self.touch()

    def set_instances(self, workload, *instances):
        self._instances[workload] = tuple(instances)
        self.touch()

    def set_presence(self, workload, **changes):
        self._presences[workload] = replace(self._presences[workload], **changes)
        self.touch()

    def lose(self, workload):
        """Somebody deletes its objects."""
        del self._presences[workload]
        self._instances.pop(workload, None)
        self.touch()

    def set_node(self, name, **changes):
        self.nodes[name] = replace(self.nodes[name], **changes)
        self.touch()

    def touch(self):
        self._revision += 1
        self._changed.set()
        self._changed = asyncio.Event()

    def told(self, verb):
        return [call for call in self.calls if call[0] == verb]

    # the face of a link

    async def start(self):
        pass

    async def close(self):
        pass

    def observe(self):
        if self.hidden and self._shown is not None:
            return self._shown
        if self._shown is None or self._shown.revision != self._revision:
            self._shown = Observation(
                "home",
                _now(),
                self._revision,
                reachable=not self.silent,
                trouble="The cluster does not answer." if self.silent else "",
                nodes=tuple(self.nodes[name] for name in sorted(self.nodes)),
                holdings=tuple(self._holdings()),
                instances=dict(self._instances),
                presences=dict(self._presences),
                holds=tuple((h.device, h.workload) for h in self._holds),
                capabilities=self._able,
                lan_taken=self._lan_taken,
            )
        return self._shown

    async def wait_change(self, after, timeout):  # noqa: ASYNC109 - part of the face
        try:
            async with asyncio.timeout(timeout):
                while self._revision <= after or self.hidden:
                    await self._changed.wait()
        except TimeoutError:
            pass
        return self._revision

    async def fence(self):
        return self.carried

    async def raise_fence(self, fence):
        self._check("raise_fence", fence)
        self.carried = fence

    async def apply(self, rendered, fence):
        row = rendered.row
        self._check("apply", fence, row.id, row.revision)
        replaced = self._rows.get(row.id)
        self._rows[row.id] = row
        self._given[row.id] = rendered
        kind = "Deployment" if row.spec.endless else "Job"
        self._presences[row.id] = Presence(
            row.id, row.name, row.revision, objects=((kind, row.name),),
            desired=row.spec.replicas if row.spec.endless else _tasks(row),
        )  # fmt: skip
        if row.spec.job is not None and row.spec.job.array is not None:
            self._make_tasks(row.id)
        elif (
            replaced is None or replaced.revision != row.revision or not self._instances.get(row.id)
        ):
            self._instances[row.id] = tuple(self._new(row, slot) for slot in row.placement.slots)
        self.touch()

    async def remove(self, workload, *, keep_volumes, fence):
        self._check("remove", fence, workload, keep_volumes)
        for part in (self._presences, self._instances, self._rows):
            part.pop(workload, None)
        self.touch()

    async def scale(self, workload, replicas, fence):
        self._check("scale", fence, workload, replicas)
        if workload not in self._presences:
            raise NotFound("no such workload")
        shown = self._presences[workload]
        is_job = self._rows[workload].spec.job is not None
        self._presences[workload] = replace(
            shown, desired=replicas, suspended=is_job and replicas == 0
        )
        if replicas == 0:
            self._instances.pop(workload, None)
        elif is_job:
            self._make_tasks(workload)
        self.touch()

    async def open_gates(self, workload, slots, fence):
        self._check("open_gates", fence, workload, tuple(slots))
        nodes = dict(slots)
        free = self._free_devices()
        opened, done, most = [], 0, self.half_open
        self.half_open = None
        for instance in self.instances(workload):
            if instance.name in nodes and instance.gated and done != most:
                done += 1
                node = nodes[instance.name]
                device = next(d for d in free if d.startswith(f"gpu-{node}-"))
                free.remove(device)
                instance = replace(  # noqa: PLW2901 - the changed one takes its place
                    instance, gated=False, node=node, devices=(device,), allocated=True,
                    phase="running", ready=True, started_at=_now(),
                )  # fmt: skip
            opened.append(instance)
        self._instances[workload] = tuple(opened)
        self.touch()
        if most is not None:
            raise Unavailable("the connection broke")

    async def set_holds(self, holds, fence):
        self._check("set_holds", fence, tuple((h.device, h.workload) for h in holds))
        self._holds = tuple(holds)
        self.touch()

    async def adoptable(self):
        return self.adopted

    async def last_words(self, instance, *, previous, lines):
        self.asked_words.append((instance.name, previous))
        if self._fail["last_words"]:
            raise self._fail["last_words"].pop(0)
        return self.words.get(instance.workload, LastWords())

    async def logs(self, workload, *, instance, follow, tail):
        for line in ("one", "two"):
            yield line

    # inside

    def _check(self, verb, fence, *said):
        if fence < self.carried:
            raise FenceLost(f"fence {fence} is below {self.carried}")
        if self._fail[verb]:
            raise self._fail[verb].pop(0)
        if self.silent:
            raise Unavailable("The cluster does not answer.")
        self.calls.append((verb, *said))

    def _new(self, row, slot):
        self._made += 1
        fresh = Instance(
            row.id, f"{row.name}-{self._made}", f"uid-{self._made}", row.revision, "pending", created_at=_now(),
        )  # fmt: skip
        if not self.auto:
            return fresh
        return replace(
            fresh, phase="running", node=slot.node, devices=slot.devices, allocated=True, ready=True,
            started_at=_now(),
        )  # fmt: skip

    def _make_tasks(self, workload):
        row, have = self._rows[workload], list(self.instances(workload))
        live = [i for i in have if i.phase in ("pending", "running")]
        made = {i.index for i in have}
        for index in range(row.spec.job.tasks):
            if len(live) >= self._presences[workload].desired:
                break
            if index not in made:
                self._made += 1
                task = Instance(
                    row.id, f"{row.name}-{index}", f"uid-{self._made}", row.revision, "pending",
                    gated=True, index=index, created_at=_now(),
                )  # fmt: skip
                have.append(task)
                live.append(task)
        self._instances[workload] = tuple(have)

    def _holdings(self):
        for workload, instances in self._instances.items():
            row = self._rows.get(workload)
            for instance in instances:
                for uuid in instance.devices:
                    shared = row is not None and row.spec.gpu is not None and row.spec.gpu.shared
                    yield Holding(
                        uuid, instance.node, row.spec.gpu.vram_mib if shared else 0, 1 if shared else 64,
                        Holder(row.name if row else "?", workload, "podwarden", instance.name),
                    )  # fmt: skip

    def _free_devices(self):
        held = {
            uuid for instances in self._instances.values() for i in instances for uuid in i.devices
        }
        return [d.uuid for node in self.nodes.values() for d in node.devices if d.uuid not in held]


def _tasks(row):
    if row.spec.job.array is None:
        return 1
    return min(row.spec.job.tasks, len(row.placement.slots) + 2)


def _now():
    return datetime.now(UTC)
