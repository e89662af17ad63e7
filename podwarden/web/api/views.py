"""Domain to JSON shapes. Pure: no call to the control plane from here."""

from __future__ import annotations

from collections.abc import Mapping

from podwarden.control.answers import ClusterView, Gpu, Submitted
from podwarden.domain.access import Token, User
from podwarden.domain.document import to_document
from podwarden.domain.event import Event
from podwarden.domain.inventory import Device, DeviceHealth, Holding, Node
from podwarden.domain.placement import Placement, Verdict
from podwarden.domain.reason import Reason
from podwarden.domain.workload import Revision, Spec, State, Workload
from podwarden.web.api import shapes


def token(noun: Token) -> shapes.TokenShape:
    return shapes.TokenShape(
        id=noun.id,
        user=noun.user,
        label=noun.label,
        created_at=noun.created_at,
        expires_at=noun.expires_at,
        last_used_at=noun.last_used_at,
        session=noun.session,
    )


def user(noun: User) -> shapes.UserShape:
    return shapes.UserShape(
        name=noun.name, role=noun.role, created_at=noun.created_at, disabled=noun.disabled
    )


def cluster(view: ClusterView) -> shapes.ClusterShape:
    noun = view.cluster
    return shapes.ClusterShape(
        name=noun.name,
        server=noun.server,
        version=noun.version,
        added_at=noun.added_at,
        simulated=noun.simulated,
        notes=list(noun.notes),
        nodes=view.nodes,
        gpus=view.gpus,
        reachable=view.reachable,
        trouble=view.trouble,
    )


def free_mib(device: Device, holdings: tuple[Holding, ...]) -> int:
    """What may still be asked for of this GPU now; 0 when it is whole-held, lost or away."""
    if device.health is not DeviceHealth.OK or not device.present:
        return 0
    if any(h.dedicated for h in holdings) or (device.whole_only and holdings):
        return 0
    return max(device.memory_mib - sum(h.memory_mib for h in holdings), 0)


def held(holding: Holding) -> shapes.Held:
    holder = holding.holder
    return shapes.Held(
        name=holder.name,
        workload=holder.workload or None,
        memory_mib=holding.memory_mib,
        dedicated=holding.dedicated,
        ends_by=holder.ends_by,
        terminating=holder.terminating,
    )


def gpu(noun: Gpu) -> shapes.GpuShape:
    device = noun.device
    return shapes.GpuShape(
        cluster=noun.cluster,
        node=device.node,
        index=device.index,
        uuid=device.uuid,
        model=device.model,
        vram_mib=device.vram_mib,
        free_mib=free_mib(device, noun.holdings),
        health=device.health,
        present=device.present,
        outside_mib=device.outside_mib,
        held_by=[held(h) for h in noun.holdings],
        reserved_for=noun.reserved_for or None,
        simulated=noun.simulated,
    )


def node(cluster_name: str, noun: Node) -> shapes.NodeShape:
    return shapes.NodeShape(
        cluster=cluster_name,
        name=noun.name,
        address=noun.address,
        server=noun.server,
        ready=noun.ready,
        cordoned=noun.cordoned,
        agent_away=noun.agent_away,
        cpu_milli=noun.cpu_milli,
        used_cpu_milli=noun.used_cpu_milli,
        memory_mib=noun.memory_mib,
        used_memory_mib=noun.used_memory_mib,
        gpus=len(noun.devices),
        simulated=noun.simulated,
    )


def reason(noun: Reason) -> shapes.ReasonShape:
    return shapes.ReasonShape(
        code=noun.code,
        text=noun.text,
        remedy=noun.remedy,
        notes=[
            shapes.NoteShape(node=n.node, device=n.device, code=n.code, text=n.text)
            for n in noun.notes
        ],
        ahead=list(noun.ahead),
        lines=list(noun.lines),
    )


def device(uuid: str, known: Mapping[str, Device], node_name: str = "") -> shapes.DeviceShape:
    """A GPU by its uuid, named as far as it is known now."""
    found = known.get(uuid)
    if found is None:
        return shapes.DeviceShape(uuid=uuid, node=node_name, index=None, model="", vram_mib=None)
    return shapes.DeviceShape(
        uuid=uuid,
        node=found.node,
        index=found.index,
        model=found.model,
        vram_mib=found.vram_mib,
    )


def placement(noun: Placement, known: Mapping[str, Device]) -> shapes.PlacementShape:
    return shapes.PlacementShape(
        slots=[shapes.SlotShape(node=s.node, devices=list(s.devices)) for s in noun.slots],
        devices=[device(uuid, known, s.node) for s in noun.slots for uuid in s.devices],
    )


def times(noun: Workload) -> shapes.Times:
    return shapes.Times(
        created_at=noun.created_at,
        changed_at=noun.changed_at,
        queued_at=noun.queued_at,
        started_at=noun.started_at,
        ended_at=noun.ended_at,
    )


def workload(
    noun: Workload,
    verdict: Verdict | None,
    known: Mapping[str, Device],
    urls: tuple[str, ...] = (),
) -> shapes.WorkloadShape:
    """While it waits, the last plan's word is fresher than the row's."""
    waiting = noun.state is State.QUEUED and verdict is not None
    why = verdict.reason if waiting and verdict and verdict.reason else noun.reason
    return shapes.WorkloadShape(
        id=noun.id,
        name=noun.name,
        kind=noun.kind,
        state=noun.state,
        desire=noun.desire,
        owner=noun.owner,
        cluster=noun.cluster,
        priority=noun.spec.priority.word,
        revision=noun.revision,
        template=noun.spec.template,
        spec=to_document(noun.spec),
        reason=reason(why) if why else None,
        position=(verdict.position or None) if waiting and verdict else None,
        starts_at=verdict.starts_at if waiting and verdict else None,
        placement=placement(noun.placement, known) if noun.placement else None,
        nodes=list(noun.nodes),
        devices=[device(uuid, known) for uuid in noun.devices],
        counts=dict(noun.counts),
        urls=list(urls),
        times=times(noun),
    )


def preview(spec: Spec, submitted: Submitted, known: Mapping[str, Device]) -> shapes.Preview:
    verdict = submitted.verdict
    why = submitted.refusal or (verdict.reason if verdict else None)
    return shapes.Preview(
        name=spec.name,
        starts_now=submitted.refusal is None and submitted.placement is not None,
        position=verdict.position if verdict else None,
        starts_at=verdict.starts_at if verdict else None,
        reason=reason(why) if why else None,
        refused=submitted.refusal is not None,
        placement=placement(submitted.placement, known) if submitted.placement else None,
        spec=to_document(spec),
    )


def event(noun: Event) -> shapes.EventShape:
    return shapes.EventShape(
        id=noun.id,
        at=noun.at,
        subject=noun.subject,
        name=noun.name,
        kind=noun.kind,
        code=noun.code,
        text=noun.text,
        actor=noun.actor,
    )


def revision(noun: Revision) -> shapes.RevisionShape:
    return shapes.RevisionShape(
        number=noun.number,
        made_at=noun.made_at,
        made_by=noun.made_by,
        note=noun.note,
        spec=to_document(noun.spec),
    )
