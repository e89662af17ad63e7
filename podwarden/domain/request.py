"""The GPU part of a spec: what a workload asks for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Sharing(StrEnum):
    DEDICATED = "dedicated"
    SHARED = "shared"


class OverBudget(StrEnum):
    WARN = "warn"
    RESTART = "restart"
    EVICT = "evict"


@dataclass(frozen=True, slots=True)
class Request:
    """The GPU part of a spec. vram_mib: nominal size of a dedicated card, exact budget of a shared one."""

    count: int = 1
    vram_mib: int | None = None
    sharing: Sharing = Sharing.DEDICATED
    model: tuple[str, ...] = ()
    compute: str = ""  # ">=8.9", "8.6"
    encoder_sessions: int = 0
    over_budget: OverBudget = OverBudget.RESTART

    @property
    def shared(self) -> bool:
        return self.sharing is Sharing.SHARED
