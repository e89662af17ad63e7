"""Names that every object of PodWarden carries, in one place."""

from __future__ import annotations

NAMESPACE = "podwarden"
MANAGER = "podwarden"  # field manager of every write

PREFIX = "podwarden.io/"
WORKLOAD = "podwarden.io/workload"
NAME = "podwarden.io/name"
REVISION = "podwarden.io/revision"
VOLUME = "podwarden.io/volume"
FENCE = "podwarden.io/fence"  # annotation
PARTS = (
    "podwarden.io/parts"  # annotation of the main object: everything that belongs to the workload
)
HOLD = "podwarden.io/hold"  # device taint of a reservation; its value is the workload
GATE = "podwarden.io/room"  # scheduling gate of an array's pods

FENCE_POLICY = "podwarden-fence"  # ValidatingAdmissionPolicy and its binding
FENCE_MAP = "podwarden-fence"  # ConfigMap in NAMESPACE, data.fence

SIMULATED = "podwarden.io/simulated"  # label of simulated nodes
EXTENDED_RESOURCE = "nvidia.com/gpu"

# Node taints that say nothing new: readiness and cordon have fields of their own, the last is tolerated.
TOLERATED = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/unschedulable",
        "podwarden.io/gpu",
    }
)
