"""What a preview says: would it start, where, or why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from podwarden.control.answers import Gpu, Submitted
from podwarden.domain.inventory import Device
from podwarden.domain.reason import Reason
from podwarden.domain.units import show_gib
from podwarden.domain.workload import Spec
from podwarden.web.api.views import free_mib
from podwarden.web.pages import bars, sentences

MOST_GPUS = 12  # lines of the verdict by GPU


@dataclass(frozen=True, slots=True)
class Choice:
    """One GPU: tone yes (would run here), later (held or reserved) or "" (no)."""

    where: str
    text: str
    tone: str
    icon: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """kind: yes | later | never. detail: the planner's sentence, "" when it starts at once."""

    kind: str
    icon: str
    sentence: str
    detail: str
    short: str
    reason: Reason | None
    starts_at: datetime | None


def verdict_of(submitted: Submitted, spec: Spec, known: Mapping[str, Device]) -> Verdict:
    """From what a dry run answered."""
    if submitted.refusal is not None:
        why = submitted.refusal
        return _verdict("never", "It can never run here.", why)
    if submitted.placement is not None:
        at = sentences.planned(submitted.placement, known)
        shared = ", shared" if spec.gpu is not None and spec.gpu.shared else ""
        slots, tasks = len(submitted.placement.slots), spec.job.tasks if spec.job else 1
        some = f" ({slots} of {tasks} tasks)" if tasks > slots else ""
        return _verdict("yes", f"Starts at once on {at}{shared}{some}.", None)
    said = submitted.verdict
    position = said.position if said else 0
    line = f", {sentences.ordinal(position)} in line" if position else ""
    starts_at = said.starts_at if said else None
    return _verdict("later", f"Would wait{line}.", said.reason if said else None, starts_at)


_WORDS = {
    "yes": ("succeeded", "fits now"),
    "later": ("queued", "would wait"),
    "never": ("never", "does not fit"),
}


def _verdict(
    kind: str, sentence: str, why: Reason | None, starts_at: datetime | None = None
) -> Verdict:
    icon, short = _WORDS[kind]
    return Verdict(kind, icon, sentence, why.text if why else "", short, why, starts_at)


def choices(submitted: Submitted, gpus: Sequence[Gpu], known: Mapping[str, Device]) -> list[Choice]:
    """Each GPU with its word: the planner's where it said one, else who has it."""
    chosen = (
        {d for slot in submitted.placement.slots for d in slot.devices}
        if submitted.placement
        else set()
    )
    why = submitted.refusal or (submitted.verdict.reason if submitted.verdict else None)
    notes = {note.device: note.text for note in why.notes if note.device} if why else {}
    return [
        _choice(gpu, gpu.device.uuid in chosen, notes.get(gpu.device.uuid, ""), known)
        for gpu in sorted(gpus, key=lambda g: g.device.uuid not in chosen)
    ]


def _choice(gpu: Gpu, here: bool, note: str, known: Mapping[str, Device]) -> Choice:
    where = sentences.gpu_name(gpu.device.uuid, known)
    free = free_mib(gpu.device, gpu.holdings)
    if here:
        return Choice(where, f"{show_gib(free)} free: here", "yes", "succeeded")
    if not bars.usable(gpu):
        return Choice(where, note or "lost or away", "", "lost")
    if gpu.reserved_for:
        return Choice(where, note or f"reserved for {gpu.reserved_for}", "later", "reserved")
    if gpu.holdings:
        names = ", ".join(h.holder.name for h in gpu.holdings[:3])
        left = f"; {show_gib(free)} free" if free else ""
        ends = any(h.holder.ends_by for h in gpu.holdings)
        return Choice(
            where,
            note or f"held by {names}{left}",
            "later" if ends else "",
            "queued" if ends else "never",
        )
    return Choice(where, note or f"{show_gib(free)} free", "", "whole")
