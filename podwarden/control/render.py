"""A row, its placement and how it is rolled out, as the objects that `kube` renders."""

from __future__ import annotations

from podwarden.control import revising
from podwarden.control.needs import Needs
from podwarden.control.target import tasks_that_may_exist
from podwarden.domain.observation import Observation
from podwarden.domain.placement import Placement
from podwarden.domain.workload import Priority, Revision, Update, Workload
from podwarden.kube.render import Rendered, Strategy, render
from podwarden.kube.render_pod import StorageSource


def render_row(
    row: Workload,
    revisions: tuple[Revision, ...],
    given: Needs,
    seen: Observation,
) -> Rendered:
    """Invalid: a secret or storage is missing. An array never gets fewer instances than it has."""
    presence = seen.presences.get(row.id)
    tasks = tasks_that_may_exist(row)
    here = presence.desired if presence is not None else 0
    return render(
        row,
        row.placement or Placement(row.id, ()),
        secrets=given.secrets,
        storages={
            name: StorageSource(path=each.path, server=each.server, node=each.node)
            for name, each in given.storages.items()
        },
        capabilities=seen.capabilities,
        strategy=_strategy(row),
        revisions=revisions,
        parallelism=max(tasks, here) if tasks else None,
        priority=_priority(row),
    )


def _priority(row: Workload) -> Priority:
    made_with = revising.fact(row, revising.PODS)
    return Priority[made_with.upper()] if made_with else row.spec.priority


def _strategy(row: Workload) -> Strategy:
    mode = revising.fact(row, revising.MODE)
    if mode:
        return Strategy(mode)
    return Strategy.RECREATE if row.spec.update is Update.RECREATE else Strategy.SURGE
