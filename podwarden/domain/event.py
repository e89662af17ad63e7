"""Append-only facts: what, when, who."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class EventKind(StrEnum):
    SUBMITTED = "submitted"
    ADMITTED = "admitted"
    STATE = "state"
    REASON = "reason"
    PLACED = "placed"
    MISPLACED = "misplaced"
    RESTARTED = "restarted"
    UPDATED = "updated"
    ROLLED_BACK = "rolled-back"
    PRIORITY = "priority"
    STOP_ASKED = "stop-asked"
    START_ASKED = "start-asked"
    DELETE_ASKED = "delete-asked"
    DELETED = "deleted"
    CHANGED_OUTSIDE = "changed-outside"
    GATES_OPENED = "gates-opened"
    NODE_LOST = "node-lost"
    ADOPTED = "adopted"
    CLUSTER = "cluster"
    ACCESS = "access"
    STORAGE = "storage"


@dataclass(frozen=True, slots=True)
class Event:
    """subject: a workload's id, or `cluster/<name>`, `user/<name>`, `storage/<name>`, `secret/<name>`. id is given by the store, rising."""

    at: datetime
    subject: str
    kind: EventKind
    text: str
    actor: str = "podwarden"
    code: str = ""
    id: int = 0
    name: str = ""
