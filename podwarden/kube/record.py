"""The record of a workload in its cluster, from which a new PodWarden takes it over. Pure.

It is an annotation of the object that starts its pods, written in the same request; a long one is a labelled ConfigMap
of its own. It holds the specs with secrets as references only. Where the workload was placed is another annotation
(`podwarden.io/placement`), so that rendering it again gives the same objects and restarts nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from podwarden.domain.document import from_document, to_document
from podwarden.domain.placement import Placement, Slot
from podwarden.domain.workload import Desire, Revision, Spec, Workload
from podwarden.errors import Invalid
from podwarden.kube.labels import NAMESPACE, PREFIX
from podwarden.kube.render_pod import labels_of

RECORD = f"{PREFIX}record"  # the annotation; as a label it marks such ConfigMaps
PLACEMENT = f"{PREFIX}placement"  # annotation
OWNER = f"{PREFIX}owner"  # annotation
KEY = "workload.json"
FORMAT = 1
MOST_BYTES = 512 * 1024  # of the 1 MiB that an object may have
MOST_INLINE = (
    32 * 1024
)  # of the 256 KiB for annotations; a Deployment's are copied to its replica sets


@dataclass(frozen=True, slots=True)
class Record:
    """What a cluster says about a workload. revisions: oldest first, the current one included."""

    id: str
    name: str
    owner: str
    revision: int
    spec: Spec
    desire: Desire
    created_at: datetime
    queued_at: datetime | None
    revisions: tuple[Revision, ...]


def record_name(workload: str) -> str:
    return f"{workload}-record"


def record_text(workload: Workload, revisions: Sequence[Revision] = ()) -> str:
    """Where the history is too large, the oldest revisions are left out, never the current."""
    history = [_revision(revision) for revision in sorted(revisions, key=lambda r: r.number)]
    head = {
        "format": FORMAT,
        "id": workload.id,
        "name": workload.name,
        "owner": workload.owner,
        "revision": workload.revision,
        "desire": workload.desire.value,
        "created_at": workload.created_at.isoformat(),
        "queued_at": workload.queued_at.isoformat() if workload.queued_at else None,
        "spec": to_document(workload.spec),
    }
    text = _compact({**head, "revisions": history})
    while history and len(text.encode()) > MOST_BYTES:
        history.pop(0)
        text = _compact({**head, "revisions": history})
    return text


def fits_inline(text: str) -> bool:
    return len(text.encode()) <= MOST_INLINE


def record_object(workload: Workload, text: str) -> dict[str, Any]:
    """The ConfigMap for a record that is too long for an annotation."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": record_name(workload.name),
            "namespace": NAMESPACE,
            "labels": {**labels_of(workload), RECORD: "true"},
            "annotations": {OWNER: workload.owner},
        },
        "data": {KEY: text},
    }


def carried_record(obj: Mapping[str, Any]) -> str | None:
    """The text that an object carries: a Deployment or Job as an annotation, a ConfigMap as its data."""
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    found = annotations.get(RECORD) or (obj.get("data") or {}).get(KEY)
    return None if found is None else str(found)


def read_record(obj: Mapping[str, Any]) -> Record:
    """Invalid, naming the object, when its record is damaged, absent or of a newer format."""
    name = str((obj.get("metadata") or {}).get("name"))
    try:
        raw = _of_this_format(json.loads(carried_record(obj) or ""))
        spec = from_document(raw["spec"])
        identity = str(raw["id"])
        return Record(
            id=identity,
            name=str(raw["name"]),
            owner=str(raw["owner"]),
            revision=int(raw["revision"]),
            spec=spec,
            desire=Desire(raw["desire"]),
            created_at=_time(raw["created_at"]),
            queued_at=_time(raw["queued_at"]) if raw["queued_at"] else None,
            revisions=tuple(_read_revision(identity, item) for item in raw["revisions"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, Invalid) as error:
        raise Invalid.of(
            f"record {name}", str(error), "a record that this version of PodWarden wrote"
        ) from error


def _of_this_format(raw: dict[str, Any]) -> dict[str, Any]:
    if raw["format"] != FORMAT:
        raise ValueError(f"format {raw['format']}")
    return raw


def placement_text(placement: Placement) -> str:
    """Compact JSON for the annotation; without bands and ranking it would render differently."""
    return _compact(
        {
            "slots": [[slot.node, *slot.devices] for slot in placement.slots],
            "ranking": list(placement.ranking),
            "bands": list(placement.bands),
        }
    )


def read_placement(obj: Mapping[str, Any]) -> Placement | None:
    """The placement of a Deployment or Job of PodWarden; None when it says none."""
    metadata = obj.get("metadata") or {}
    text = (metadata.get("annotations") or {}).get(PLACEMENT)
    try:
        raw = json.loads(text) if text else None
        if raw is None:
            return None
        return Placement(
            workload=str((metadata.get("labels") or {}).get(f"{PREFIX}workload", "")),
            slots=tuple(Slot(str(s[0]), tuple(str(d) for d in s[1:])) for s in raw["slots"]),
            ranking=tuple(str(node) for node in raw["ranking"]),
            bands=tuple(int(band) for band in raw["bands"]),
        )
    except (KeyError, TypeError, ValueError, IndexError, RecursionError):
        return None


def _revision(revision: Revision) -> dict[str, Any]:
    return {
        "number": revision.number,
        "made_at": revision.made_at.isoformat(),
        "made_by": revision.made_by,
        "note": revision.note,
        "spec": to_document(revision.spec),
    }


def _read_revision(workload: str, raw: Mapping[str, Any]) -> Revision:
    return Revision(
        workload=workload,
        number=int(raw["number"]),
        spec=from_document(raw["spec"]),
        made_at=_time(raw["made_at"]),
        made_by=str(raw["made_by"]),
        note=str(raw["note"]),
    )


def _time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return moment


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
