"""What admitted work still has to get: nothing of it may be given away, nothing charged twice."""

from controlmaking import instance, job, presence, row, service, waiting

from podwarden.control.charges import charge, reserved, unmatched
from podwarden.domain.placement import Placement, Slot
from podwarden.domain.request import Request, Sharing
from podwarden.domain.workload import State

A, B = Slot("n1", ("gpu-1",)), Slot("n2", ("gpu-2",))


def owed(workload, instances=(), *, shown=None, lost=(), opened=None, grants=(), granted=False):
    return charge(
        workload, shown, instances, lost, opened=opened or {}, grants=grants, granted=granted
    )


def test_everything_is_reserved_before_the_cluster_shows_anything():
    assert owed(row(state=State.STARTING)).reserved == (A,)


def test_a_pending_instance_without_its_gpu_is_still_reserved():
    assert owed(row(state=State.STARTING), [waiting()]).reserved == (A,)


def test_an_instance_with_its_gpu_ends_the_reservation():
    assert owed(row(state=State.STARTING), [waiting(allocated=True, node="n1")]).reserved == ()


def test_of_two_copies_the_one_that_is_missing_is_reserved():
    two = row(service(replicas=2), State.STARTING)
    assert owed(two, [instance(devices=("gpu-2",), node="n2")]).reserved == (A,)


def test_a_terminating_copy_does_not_count_and_its_replacement_is_reserved():
    assert owed(row(), [instance(terminating=True), waiting("web-2")]).reserved == (A,)


def test_a_copy_on_a_lost_node_is_charged_elsewhere_not_reserved_where_it_was():
    found = owed(row(), [instance()], lost={"n1"})
    assert (found.lost, found.reserved) == (1, ())


def test_a_replacement_elsewhere_ends_the_charge():
    moved = instance("web-2", node="n3", devices=("gpu-9",))
    assert owed(row(), [instance(), moved], lost={"n1"}) == owed(row(), [moved])


def test_while_an_update_runs_only_copies_of_the_new_revision_count():
    updating = row(state=State.UPDATING, revision=2)
    assert owed(updating, [instance()]).reserved == (A,)
    assert owed(updating, [instance(), instance("web-2", revision=2)]).reserved == ()


def test_a_job_that_ended_or_once_had_its_gpu_reserves_nothing():
    started = row(job(), State.STARTING)
    assert owed(started).reserved == (A,)
    assert owed(started, granted=True).reserved == ()
    assert owed(started, [instance(phase="succeeded", allocated=False)]).reserved == ()
    assert owed(started, shown=presence("Job", complete=True)).reserved == ()


def test_a_job_that_is_tried_again_keeps_its_place():
    again = [instance(phase="failed", allocated=False), waiting("render-2")]
    assert owed(row(job(), State.STARTING), again, granted=True).reserved == (A,)


def test_an_array_reserves_grants_and_opened_tasks_without_a_gpu_and_lists_the_gated():
    array = row(job(array=(1, 9)))
    tasks = [
        instance("t0", index=0),
        waiting("t1", index=1, gated=False),
        waiting("t2", index=2, gated=True),
        waiting("t3", index=3, gated=True),
        instance("t4", index=4, phase="succeeded"),
    ]
    found = owed(array, tasks, opened={"t1": B, "t4": B}, grants=(Slot("n3", ("gpu-3",)),))
    assert found.reserved == (B, Slot("n3", ("gpu-3",)))
    assert found.used == (A, B, Slot("n3", ("gpu-3",)))
    assert [i.name for i in found.gated] == ["t2", "t3"]
    assert found.promised == 1


def test_an_open_gate_that_the_watch_has_not_shown_yet_is_not_gated():
    array = row(job(array=(1, 9)))
    found = owed(array, [waiting("t2", index=2, gated=True)], opened={"t2": B})
    assert (found.gated, found.reserved) == ((), (B,))


def test_a_task_that_used_up_its_retries_is_not_offered_a_place():
    array = row(job(array=(1, 9), retries=0))
    dead = instance("t2-a", index=2, phase="failed", user_failure=True, allocated=False)
    found = owed(array, [dead, waiting("t2-b", index=2, gated=True)])
    assert found.gated == ()


def test_shared_work_reserves_its_budget_and_one_share():
    shared = service(gpu=Request(vram_mib=6144, sharing=Sharing.SHARED))
    (entry,) = reserved(row(shared), (A,))
    assert (entry.memory_mib, entry.shares) == (6144, 1)
    (whole,) = reserved(row(), (A,))
    assert (whole.memory_mib, whole.shares) == (0, 64)


def test_slots_are_matched_by_gpu_before_by_node():
    here = [instance(devices=("gpu-9",), node="n1"), instance("w2", devices=("gpu-1",), node="n1")]
    assert unmatched((A, B), here) == []
    assert unmatched((B, A), [instance(devices=("gpu-1",), node="n1")]) == [B]


def test_nothing_is_owed_without_a_placement():
    assert owed(row(placement=None)).reserved == ()
    assert owed(row(placement=Placement("w1", ()))).reserved == ()
