"""Which step brings the cluster to what a row says: every state of the row against every sight of it."""

import pytest
from controlmaking import NOW, at, instance, job, presence, row, service

from podwarden.control.target import REMOVED, Do, Target, as_wanted, step, wanted
from podwarden.domain.placement import Placement, Slot
from podwarden.domain.workload import Desire, State


def do(workload, shown=None, instances=(), given=None, *, now=NOW, settled=False):
    return step(workload, shown, instances, given, now, settled=settled).do


def test_a_commit_without_its_apply_is_repaired():
    assert do(row(state=State.STARTING)) is Do.APPLY


def test_what_was_given_and_is_not_seen_yet_is_not_given_again():
    fresh = row(state=State.STARTING)
    assert do(fresh, given=wanted(fresh)) is Do.NOTHING


def test_what_was_seen_once_and_is_gone_was_deleted_by_somebody():
    running = row()
    found = step(running, None, (), wanted(running), NOW, settled=True)
    assert (found.do, found.why) == (Do.APPLY, "it was deleted")


def test_an_address_alone_is_not_the_workload():
    only_service = presence("Service", desired=0)
    running = row()
    assert do(running, only_service, given=wanted(running), settled=True) is Do.APPLY


def test_a_new_leader_takes_what_is_as_wanted_without_touching_it():
    running = row()
    assert as_wanted(running, presence())
    assert do(running, presence()) is Do.NOTHING


def test_a_new_leader_applies_a_revision_the_cluster_has_not():
    assert do(row(revision=2), presence(revision=1)) is Do.APPLY


def test_a_new_revision_or_placement_of_a_service_is_applied_once():
    running = row(revision=2)
    assert do(running, presence(), given=wanted(row())) is Do.APPLY
    assert do(running, presence(), given=wanted(running)) is Do.NOTHING
    moved = row(placement=Placement("w1", (Slot("n9", ("gpu-9",)),)))
    assert do(moved, presence(), given=wanted(row())) is Do.APPLY


def test_edits_behind_our_back_are_taken_back():
    running = row()
    edited = presence(edited="spec.replicas by kubectl")
    assert do(running, edited, given=wanted(running), settled=True) is Do.APPLY
    scaled = step(running, presence(desired=3), (), wanted(running), NOW, settled=True)
    assert (scaled.do, scaled.why) == (Do.APPLY, "its copies were set from 1 to 3")


def test_a_part_that_was_deleted_behind_our_back_is_made_again():
    running = row()
    torn = presence(missing=(("Service", "web"),))
    told = step(running, torn, (), wanted(running), NOW, settled=True)
    assert (told.do, told.why) == (Do.APPLY, "Service web was deleted")
    assert do(running, torn) is Do.APPLY  # a new leader finds it so
    assert not as_wanted(running, torn)


def test_a_part_that_the_watch_has_not_shown_yet_is_not_given_twice():
    running = row(state=State.STARTING)
    assert do(running, presence(missing=(("Service", "web"),)), given=wanted(running)) is Do.NOTHING


def test_our_own_scaling_up_is_not_taken_for_an_edit():
    running = row(state=State.STARTING)
    assert do(running, presence(desired=0), given=wanted(running)) is Do.NOTHING


def test_a_stopped_service_that_starts_again_is_applied():
    again = row(state=State.STARTING)
    down = Target(1, None, running=False)
    assert do(again, presence(desired=0), given=down) is Do.APPLY


def test_stopping_takes_a_service_to_none_and_a_job_away():
    going = row(state=State.STOPPING, desire=Desire.STOP)
    assert do(going, presence()) is Do.SCALE_DOWN
    assert do(going, presence(desired=0)) is Do.NOTHING
    job_going = row(job(), State.STOPPING, desire=Desire.STOP)
    assert do(job_going, presence("Job")) is Do.REMOVE
    assert do(job_going, None, given=wanted(job_going)) is Do.REMOVE
    assert do(job_going, None, given=REMOVED) is Do.NOTHING


def test_deleting_removes_and_forgets_only_what_is_surely_gone():
    going = row(state=State.STOPPING, desire=Desire.DELETE, applied_revision=1)
    assert do(going, presence()) is Do.REMOVE
    assert do(going) is Do.REMOVE  # a new leader: something may be left that is not seen
    assert do(going, None, [instance()], REMOVED) is Do.REMOVE
    assert do(going, given=REMOVED) is Do.FORGET
    never = row(state=State.STOPPING, desire=Desire.DELETE, placement=None)
    assert do(never) is Do.FORGET


def test_nothing_of_a_queued_workload_stays():
    assert do(row(job(), State.QUEUED), presence("Job", complete=True)) is Do.REMOVE
    assert do(row(state=State.QUEUED), presence()) is Do.REMOVE
    ran = row(state=State.QUEUED, started_at=NOW)
    assert do(ran, presence()) is Do.SCALE_DOWN
    assert do(ran, presence(desired=0)) is Do.NOTHING


def test_an_ended_job_is_kept_for_its_logs_then_goes():
    ended = row(job(), State.SUCCEEDED, ended_at=NOW)
    done = presence("Job", complete=True)
    assert do(ended, done, now=at(3599)) is Do.NOTHING
    assert do(ended, done, now=at(3601)) is Do.REMOVE


@pytest.mark.parametrize("shown", [presence(), presence(desired=3)])
def test_a_failed_service_holds_nothing(shown):
    assert do(row(state=State.FAILED, ended_at=NOW), shown) is Do.SCALE_DOWN


def test_a_job_that_was_given_up_is_halted_but_its_logs_stay():
    ended = row(job(), State.FAILED, ended_at=NOW)
    assert do(ended, presence("Job")) is Do.SCALE_DOWN
    assert do(ended, presence("Job", suspended=True)) is Do.NOTHING


def test_an_array_may_have_more_tasks_when_there_is_more_room():
    slots = tuple(Slot("n1", (f"gpu-{n}",)) for n in range(20))
    array = row(job(array=(1, 100)), placement=Placement("w1", slots))
    assert do(array, presence("Job", desired=20), given=wanted(array)) is Do.GROW
    assert do(array, presence("Job", desired=100), given=wanted(array)) is Do.NOTHING


def test_tasks_that_failed_for_good_do_not_take_the_place_of_those_never_tried():
    array = row(
        job(array=(1, 5), parallelism=2, retries=0), placement=Placement("w1", (Slot("n1"),))
    )
    failed = [
        instance(f"r-{n}", phase="failed", index=n, user_failure=True, ready=False) for n in (0, 1)
    ]
    assert do(array, presence("Job", desired=2), given=wanted(array)) is Do.NOTHING
    assert do(array, presence("Job", desired=2), failed, wanted(array)) is Do.GROW
    assert do(array, presence("Job", desired=4), failed, wanted(array)) is Do.NOTHING


def test_what_is_being_removed_is_waited_for():
    starting = row(state=State.STARTING)
    assert do(starting, presence(deleting=True)) is Do.NOTHING


def test_copies_are_compared_with_the_spec():
    two = row(service(replicas=2))
    assert not as_wanted(two, presence(desired=1))
    assert as_wanted(two, presence(desired=2))
