"""Whether a request can ever fit: asked at every submit, so the answers are kept while the hardware stays."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from podwarden import scheduling
from podwarden.domain.inventory import Capabilities, Node
from podwarden.domain.placement import Claimant, Snapshot
from podwarden.domain.reason import Reason

MOST = 1000  # answers kept for one cluster
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Hardware = tuple[tuple[Node, ...], Capabilities]


class Never:
    """For complete views only: what was not seen yet might fit."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Hardware, dict[Claimant, Reason | None]]] = {}
        self._nodes: dict[tuple[str, str], tuple[Node, Node]] = {}  # as it was seen, and idle

    def reason(self, view: Snapshot, claimant: Claimant) -> Reason | None:
        """As `scheduling.refusal`: use of nodes, age, priority and owner do not matter to it."""
        if not view.complete or not view.reachable:
            return None
        hardware = tuple(self._idle(view.cluster, node) for node in view.nodes), view.capabilities
        known = self._known.get(view.cluster)
        if known is None or known[0] != hardware or len(known[1]) >= MOST:
            known = self._known[view.cluster] = (hardware, {})
        shape = replace(
            claimant, workload="", name="", owner="", queued_at=_EPOCH, priority=0, expected=None
        )
        if shape not in known[1]:
            known[1][shape] = scheduling.refusal(view, claimant)
        return known[1][shape]

    def _idle(self, cluster: str, node: Node) -> Node:
        """The same object for as long as the hardware stays: then hundreds of nodes are compared at once."""
        seen, idle = self._nodes.get((cluster, node.name), (None, None))
        if seen is not node:
            fresh = replace(node, used_cpu_milli=0, used_memory_mib=0, used_pods=0, changed_at=None)
            idle = idle if idle == fresh else fresh
            self._nodes[cluster, node.name] = node, idle
        assert idle is not None
        return idle
