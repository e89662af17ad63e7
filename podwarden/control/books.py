"""The active workloads of one cluster in memory, with what only memory knows about them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime

from podwarden.control.charges import Charge
from podwarden.domain.inventory import Holding
from podwarden.domain.observation import Instance, Presence
from podwarden.domain.placement import Claimant, Slot, Verdict
from podwarden.domain.workload import HOLDING, Desire, State, Workload

KnownCharge = tuple[
    Workload, Presence | None, tuple[Instance, ...], Collection[str], Charge
]  # what it was made from, and the result
KnownHolding = tuple[Holding, Workload, tuple[Instance, ...] | None, Holding]


class Books:
    """revision rises with each change. Rows of ended workloads stay while the cluster carries objects of them.

    verdicts: the last plan's word on each waiting workload. claimants, charges, holdings: caches with
    what they were made from.
    grants: slots given to arrays whose gates are still to be opened. opened: array instances whose gates
    were opened, with their slots (both start empty: a new leader plans them anew). granted: jobs that were once seen
    with their GPUs. parked: not to be admitted before that time, since their last start went nowhere.
    """

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.revision = 0
        self.verdicts: dict[str, Verdict] = {}
        self.claimants: dict[str, tuple[int, Claimant]] = {}
        self.charges: dict[str, KnownCharge] = {}
        self.holdings: dict[tuple[str, str], KnownHolding] = {}
        self.grants: dict[str, list[Slot]] = {}
        self.opened: dict[str, dict[str, Slot]] = {}
        self.granted: set[str] = set()
        self.parked: dict[str, tuple[datetime, float]] = {}
        self._rows: dict[str, Workload] = {}
        self._queued: dict[str, Workload] = {}
        self._holding: dict[str, Workload] = {}
        self._others: dict[str, Workload] = {}

    def get(self, workload: str) -> Workload | None:
        return self._rows.get(workload)

    def put(self, row: Workload) -> None:
        """A row older than what is known is ignored."""
        known = self._rows.get(row.id)
        if known is not None and known.version >= row.version:
            return
        self.revision += 1
        self._rows[row.id] = row
        for part in (self._queued, self._holding, self._others):
            part.pop(row.id, None)
        if row.state is State.QUEUED and row.desire is Desire.RUN:
            self._queued[row.id] = row
            self.opened.pop(row.id, None)
            self.grants.pop(row.id, None)
            self.granted.discard(row.id)
        else:
            self.claimants.pop(row.id, None)
            self.verdicts.pop(row.id, None)
        if row.state not in (State.QUEUED, State.STARTING):
            self.parked.pop(row.id, None)
        if row.state in HOLDING:
            self._holding[row.id] = row
        elif row.id not in self._queued:
            self._others[row.id] = row

    def drop(self, workload: str) -> bool:
        if self._rows.pop(workload, None) is None:
            return False
        self.revision += 1
        for part in (self._queued, self._holding, self._others):
            part.pop(workload, None)
        self.charges.pop(workload, None)
        self.claimants.pop(workload, None)
        self.verdicts.pop(workload, None)
        self.opened.pop(workload, None)
        self.grants.pop(workload, None)
        self.granted.discard(workload)
        self.parked.pop(workload, None)
        return True

    @property
    def queued(self) -> dict[str, Workload]:
        """Waiting for admission."""
        return self._queued

    @property
    def holding(self) -> dict[str, Workload]:
        """Admitted and not ended."""
        return self._holding

    @property
    def others(self) -> dict[str, Workload]:
        """Ended ones that leave objects behind, and those that are being deleted from the queue."""
        return self._others

    def __iter__(self) -> Iterator[Workload]:
        return iter(list(self._rows.values()))

    def __len__(self) -> int:
        return len(self._rows)
