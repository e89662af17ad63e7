"""The index of a cluster as an Observation, in PodWarden's words. Only what changed is made again."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain

from podwarden.domain.inventory import Capabilities, Device, Holding, Node
from podwarden.domain.observation import Instance, Observation, Presence
from podwarden.domain.placement import ForeignDemand
from podwarden.kube.capabilities import capabilities
from podwarden.kube.index import Index
from podwarden.kube.observe import claim_holdings, classic_devices, classic_holdings
from podwarden.kube.pods import PodFacts, demand_nodes
from podwarden.kube.presence import presence_of, with_note
from podwarden.kube.watch import Key


@dataclass(frozen=True, slots=True)
class Health:
    """How the connection is, as the link sees it. served: plurals of resource.k8s.io/v1."""

    complete: bool
    reachable: bool
    trouble: str
    version: tuple[int, int]
    served: frozenset[str]


class View:
    """Makes observations of one index."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._device_of: dict[tuple[str, str, str], Device] = {}
        self._devices_on: dict[str, tuple[Device, ...]] = {}
        self._built_nodes: dict[str, Node] = {}
        self._built_holdings: dict[Key, tuple[Holding, ...]] = {}
        self._classic: dict[str, tuple[Holding, ...]] = {}
        self._holding_order: list[Key] = []
        self._built_instances: dict[str, tuple[Instance, ...]] = {}
        self._built_presences: dict[str, Presence] = {}
        self._lan = ""
        self._lan_ports = False
        self._lan_taken: dict[tuple[str, int], str] = {}
        self._foreign: tuple[ForeignDemand, ...] = ()
        self._volume_nodes: dict[str, str] = {}
        self._nodes: tuple[Node, ...] = ()
        self._holdings: tuple[Holding, ...] = ()
        self._kinds: tuple[Device, ...] = ()  # one device for each way in which drivers differ
        self._last: tuple[Health, Observation] | None = None

    def observation(self, health: Health, now: datetime) -> Observation:
        ix = self._index
        if (
            self._last is not None
            and self._last[0] == health
            and self._last[1].revision == ix.revision
        ):
            return self._last[1]
        self._refresh()
        made = Observation(
            cluster=ix.cluster,
            taken_at=now,
            revision=ix.revision,
            complete=health.complete,
            reachable=health.reachable,
            trouble=health.trouble,
            nodes=self._nodes,
            holdings=self._holdings,
            foreign=self._foreign,
            capabilities=self._able(health),
            instances=dict(self._built_instances),
            presences=dict(self._built_presences),
            holds=tuple(sorted(ix.rules.values())),
            volume_nodes=self._volume_nodes,
            lan_taken=self._lan_taken,
        )
        self._last = (health, made)
        return made

    def _refresh(self) -> None:
        ix = self._index
        if ix.dirty.devices:
            self._refresh_devices()
        for key in ix.dirty.claims:
            self._refresh_claim(key)
        for name in ix.dirty.nodes:
            self._refresh_node(name)
        for workload in ix.dirty.workloads:
            self._refresh_instances(workload)
        if ix.dirty.nodes:
            self._gather_nodes()
        if ix.dirty.nodes or ix.dirty.claims:
            self._gather_holdings()
        for workload in ix.dirty.presences:
            self._refresh_presence(workload)
        if ix.dirty.foreign:
            self._refresh_foreign()
        if ix.dirty.volumes:
            self._refresh_volumes()
        if ix.dirty.nodes or ix.dirty.exposed:
            self._refresh_lan()
        for dirty in (
            ix.dirty.claims,
            ix.dirty.nodes,
            ix.dirty.workloads,
            ix.dirty.presences,
        ):
            dirty.clear()
        ix.dirty.devices = ix.dirty.foreign = ix.dirty.volumes = ix.dirty.exposed = False

    def _refresh_devices(self) -> None:
        """A pool being rewritten has slices of two generations: only the newest counts."""
        ix = self._index
        newest: dict[tuple[str, str], int] = {}
        for _, driver, pool, generation, _ in ix.slices.values():
            newest[driver, pool] = max(newest.get((driver, pool), 0), generation)
        on: defaultdict[str, list[Device]] = defaultdict(list)
        self._device_of = {}
        for node, driver, pool, generation, devices in ix.slices.values():
            if generation == newest[driver, pool]:
                for name, device in devices:
                    self._device_of[driver, pool, name] = device
                    on[node].append(device)
        self._devices_on = {
            node: tuple(sorted(found, key=lambda device: (device.vram_mib, device.uuid)))
            for node, found in on.items()
        }

    def _refresh_claim(self, key: Key) -> None:
        ix = self._index
        claim = ix.claims.get(key)
        held: tuple[Holding, ...] = ()
        if claim is not None:
            uids = [uid for _, uid in claim.reserved_for] or [claim.owner]
            pods = [ix.pods[ix.pod_by_uid[uid]] for uid in uids if uid in ix.pod_by_uid]
            held = claim_holdings(claim, pods, self._device_of)
        place = bisect_left(self._holding_order, key)
        listed = place < len(self._holding_order) and self._holding_order[place] == key
        if held:
            self._built_holdings[key] = held
            if not listed:
                insort(self._holding_order, key)
        elif listed:
            del self._holding_order[place]
            del self._built_holdings[key]

    def _refresh_node(self, name: str) -> None:
        ix = self._index
        facts = ix.nodes.get(("", name))
        if facts is None:
            self._built_nodes.pop(name, None)
            self._classic.pop(name, None)
            return
        devices = self._devices_on.get(name, ())
        if devices or not facts.gpus:
            self._classic.pop(name, None)
        else:
            devices = classic_devices(facts)
            pods = [ix.pods[key] for key in ix.pods_on.get(name, ())]
            self._classic[name] = tuple(classic_holdings(facts, pods))
        cpu, memory, pods_used = ix.used.get(name, (0, 0, 0))
        self._built_nodes[name] = replace(
            facts.node,
            used_cpu_milli=cpu,
            used_memory_mib=memory,
            used_pods=pods_used,
            devices=devices,
        )

    def _gather_nodes(self) -> None:
        """All nodes in order, what their devices can do, and where a node port can be reached."""
        self._nodes = tuple(self._built_nodes[name] for name in sorted(self._built_nodes))
        ways = {
            (d.dra_driver, d.whole_only, d.vram_mib > 0): d
            for node in self._nodes
            for d in node.devices
        }
        self._kinds = tuple(ways[way] for way in sorted(ways))
        reachable = [node for node in self._nodes if node.address]
        ready = [node for node in reachable if node.ready]
        lan = next((node.address for node in ready or reachable), "")
        if lan != self._lan:
            self._lan = lan
            self._index.dirty.presences |= self._index.own_parts.keys()

    def _gather_holdings(self) -> None:
        by_claims = map(self._built_holdings.__getitem__, self._holding_order)
        classic = (self._classic[node] for node in sorted(self._classic))
        self._holdings = tuple(chain(chain.from_iterable(by_claims), chain.from_iterable(classic)))

    def _refresh_instances(self, workload: str) -> None:
        """A tuple that says the same stays the same object: readers skip it by identity."""
        ix = self._index
        found = [self._instance(ix.pods[key]) for key in ix.own_pods.get(workload, ())]
        known = [instance for instance in found if instance is not None]
        known.sort(key=lambda instance: (str(instance.created_at), instance.name))
        if not known:
            self._built_instances.pop(workload, None)
        elif self._built_instances.get(workload) != tuple(known):
            self._built_instances[workload] = tuple(known)

    def _instance(self, pod: PodFacts) -> Instance | None:
        ix = self._index
        if pod.instance is None:
            return None
        claims = [ix.claims.get((pod.namespace, name)) for name in pod.claims]
        allocated = not pod.claims_missing and all(c is not None and c.allocated for c in claims)
        devices = tuple(
            sorted(
                self._device_of[where].uuid if where in self._device_of else piece.device
                for claim in claims
                if claim is not None
                for piece in claim.pieces
                for where in [(piece.driver, piece.pool, piece.device)]
            )
        )
        instance = replace(
            pod.instance,
            devices=devices,
            allocated=allocated and (bool(claims) or bool(pod.node)),
        )
        note = ix.notes.get(ix.note_of.get(pod.uid, ("", "")))
        return with_note(instance, note[1], note[2]) if note is not None else instance

    def _refresh_presence(self, workload: str) -> None:
        made = presence_of(workload, self._index.parts_of(workload), self._lan)
        if made is None:
            self._built_presences.pop(workload, None)
        elif self._built_presences.get(workload) != made:
            self._built_presences[workload] = made

    def _refresh_foreign(self) -> None:
        ix = self._index
        labels = [(key[1], dict(facts.node.labels)) for key, facts in ix.nodes.items()]
        found = []
        for key in sorted(ix.demands):
            pod = ix.pods[key]
            demand = pod.demand
            if demand is not None and not ix.claims_of_pod.get(pod.uid):
                where = demand_nodes(demand, labels)
                found.append(
                    ForeignDemand(*key, demand.count, where, pod.cpu_milli, pod.memory_mib)
                )
        self._foreign = tuple(found)

    def _refresh_volumes(self) -> None:
        ix = self._index
        hosts = {facts.hostname: key[1] for key, facts in ix.nodes.items()}
        found = {}
        for claim in ix.volume_claims.values():
            if claim.workload and claim.volume:
                bound = ix.volumes.get(("", claim.bound_to))
                node = claim.selected_node if bound is None else hosts.get(bound, bound)
                if node:
                    found[f"{claim.workload}/{claim.volume}"] = node
        self._volume_nodes = found

    def _refresh_lan(self) -> None:
        """Whether a load balancer serves this cluster: K3s brings one, any other shows by the addresses it gave. Which
        ports of the nodes' addresses are other people's.
        """
        ix = self._index
        served = any(service.ingress for service in ix.exposed.values())
        self._lan_ports = served or any(facts.k3s for facts in ix.nodes.values())
        self._lan_taken = {
            (port.protocol, port.port): service.name
            for _, service in sorted(ix.exposed.items())
            if not service.own and service.ingress
            for port in service.ports
        }

    def _able(self, health: Health) -> Capabilities:
        able = capabilities(self._kinds, health.version, health.served)
        return replace(able, lan_ports=self._lan_ports)
