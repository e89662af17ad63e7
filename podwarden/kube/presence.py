"""A workload as the cluster carries it, put together from its objects. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from podwarden.domain.observation import Instance, Presence
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
        address=_address(parts, lan_address),
        generation=main.generation,
        observed_generation=main.observed_generation,
        updated_ready=main.updated_ready,
        deleting=main.deleting,
    )


def _address(parts: Sequence[PartFacts], lan_address: str) -> str:
    """`http://192.168.1.7:11434`; "" when it is not offered to the network."""
    for part in parts:
        if part.ports:
            node_port, port = part.ports[0]
            if part.ingress:
                return f"http://{_bracketed(part.ingress)}:{port}"
            if lan_address and node_port:
                return f"http://{_bracketed(lan_address)}:{node_port}"
    return ""


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
