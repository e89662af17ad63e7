"""A workload as the cluster carries it, put together from its objects. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from podwarden.domain.observation import Instance, LanPort, Presence
from podwarden.kube.parts import PartFacts

_SAYS_NOTHING = ("", "ContainerCreating", "PodInitializing")
_STARTING = ("Pulling", "BackOff", "Failed", "FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "FailedPrepareDynamicResources")  # fmt: skip


def presence_of(workload: str, parts: Sequence[PartFacts], lan_address: str) -> Presence | None:
    """parts: all objects of this workload. None without the one that starts its copies.

    lan_address: of a node, for node ports.
    """
    main = next((part for part in parts if part.runs), None)
    if main is None:
        return None
    lan = _lan(parts, lan_address)
    return Presence(
        workload=workload,
        name=main.workload_name,
        revision=main.revision,
        objects=tuple((part.kind, part.name) for part in parts),
        desired=main.desired,
        suspended=main.suspended,
        succeeded=main.succeeded,
        failed=main.failed,
        complete=main.complete,
        failed_why=main.failed_why,
        edited=main.edited,
        missing=_missing(main, parts),
        address=f"http://{_bracketed(lan[0].host)}:{lan[0].number}" if lan else "",
        lan=lan,
        generation=main.generation,
        observed_generation=main.observed_generation,
        updated_ready=main.updated_ready,
        deleting=main.deleting,
    )


def _missing(main: PartFacts, parts: Sequence[PartFacts]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(main.whole - {(part.kind, part.name) for part in parts}))


def _lan(parts: Sequence[PartFacts], lan_address: str) -> tuple[LanPort, ...]:
    """Each port that answers on the local network, in the order of the workload; empty when none does (yet)."""
    found = []
    for part in parts:
        for port in part.ports:
            if part.ingress:
                found.append(LanPort(port.port, port.protocol, part.ingress, port.port))
            elif lan_address and port.node_port:
                found.append(LanPort(port.port, port.protocol, lan_address, port.node_port))
    return tuple(found)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def with_note(instance: Instance, reason: str, message: str) -> Instance:
    """Adds what the newest event says, where the status itself says nothing yet or a check fails."""
    if instance.phase == "pending" and instance.node and instance.reason in _SAYS_NOTHING:
        if reason in _STARTING:
            return replace(instance, reason=reason, message=message)
    elif (
        instance.phase == "running"
        and not instance.ready
        and not instance.reason
        and reason == "Unhealthy"
    ):
        return replace(instance, reason=reason, message=message)
    return instance
