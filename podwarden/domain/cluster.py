"""One K3s control plane and its nodes, as PodWarden keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Cluster:
    """kubeconfig is kept encrypted by the store and never part of this record."""

    name: str
    server: str  # URL
    added_at: datetime
    version: str = ""
    simulated: bool = False
    notes: tuple[str, ...] = ()  # what it cannot do, said at adoption
