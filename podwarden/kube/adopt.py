"""What an earlier PodWarden left in a cluster: records of workloads, and where they were wanted. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from podwarden.domain.placement import Placement
from podwarden.domain.workload import Desire, Revision, Spec
from podwarden.errors import Invalid
from podwarden.kube.labels import WORKLOAD
from podwarden.kube.record import carried_record, read_placement, read_record


@dataclass(frozen=True, slots=True)
class Adopted:
    """One workload to take over. placement: None when nothing of it runs; revisions: oldest first."""

    id: str
    name: str
    owner: str
    spec: Spec
    revision: int
    revisions: tuple[Revision, ...]
    desire: Desire
    created_at: datetime
    queued_at: datetime | None
    placement: Placement | None


def read_adoptable(
    records: Iterable[Mapping[str, Any]], mains: Iterable[Mapping[str, Any]]
) -> tuple[tuple[Adopted, ...], tuple[str, ...]]:
    """(workloads by name, sentences about records that cannot be read). records: ConfigMaps; mains: Deployments and
    Jobs. Where both say something about a workload, its main object is right: it was written last.
    """
    started = {_workload(obj): obj for obj in mains}
    placements = {workload: read_placement(obj) for workload, obj in started.items()}
    inline = {w: obj for w, obj in started.items() if carried_record(obj) is not None}
    apart = [obj for obj in records if _workload(obj) not in inline]
    found, damaged = [], []
    for obj in [*inline.values(), *apart]:
        try:
            record = read_record(obj)
        except Invalid as error:
            damaged.append(error.message)
            continue
        found.append(
            Adopted(
                id=record.id,
                name=record.name,
                owner=record.owner,
                spec=record.spec,
                revision=record.revision,
                revisions=record.revisions,
                desire=record.desire,
                created_at=record.created_at,
                queued_at=record.queued_at,
                placement=placements.get(record.id),
            )
        )
    return tuple(sorted(found, key=lambda each: each.name)), tuple(damaged)


def _workload(obj: Mapping[str, Any]) -> str:
    return str((obj["metadata"].get("labels") or {}).get(WORKLOAD, ""))
