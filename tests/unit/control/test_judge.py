"""States and reasons of started work, from what its instances say."""

import pytest
from controlmaking import LATER, NOW, at, instance, job, presence, row, service, waiting

from podwarden.control.judge import Case, exhausted, judge
from podwarden.domain.reason import Code
from podwarden.domain.workload import (
    Desire,
    HealthCheck,
    JobSpec,
    Priority,
    State,
    Volume,
    VolumeKind,
)


def look(workload, instances=(), shown=None, *, lost=(), crashes=0, now=LATER):
    return judge(Case(workload, shown, instances, lost, now, crashes))


def code(verdict):
    return verdict.reason.code if verdict.reason is not None else None


def test_a_service_runs_once_its_copies_are_ready():
    starting = row(state=State.STARTING)
    assert look(starting, [instance(ready=False)]).state is State.STARTING
    assert look(starting, [instance()]).state is State.RUNNING


def test_min_replicas_are_enough():
    two = row(service(replicas=2, min_replicas=1), State.STARTING)
    assert look(two, [instance()]).state is State.RUNNING
    both = row(service(replicas=2, min_replicas=2), State.STARTING)
    assert look(both, [instance()]).state is State.STARTING


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (waiting(reason="Unschedulable", message="no GPU"), Code.UNSCHEDULABLE),
        (waiting(node="n1", reason="ErrImagePull", message="denied"), Code.IMAGE_PULL_FAILED),
        (waiting(node="n1", reason="ImagePullBackOff"), Code.IMAGE_PULL_FAILED),
        (waiting(node="n1", reason="Pulling"), Code.PULLING_IMAGE),
        (waiting(node="n1", reason="FailedMount", message="no such volume"), Code.STARTING),
        (instance(ready=False), Code.STARTING),
        (instance(ready=False, restarts=3, exit_code=2), Code.CRASH_LOOPING),
        (instance(ready=False, reason="OOMKilled", restarts=1), Code.OUT_OF_MEMORY),
    ],
)
def test_a_start_that_is_not_done_says_why(seen, expected):
    verdict = look(row(state=State.STARTING), [seen])
    assert (verdict.state, code(verdict)) == (State.STARTING, expected)


def test_the_registry_is_quoted():
    verdict = look(
        row(state=State.STARTING),
        [waiting(node="n1", reason="ErrImagePull", message="manifest unknown")],
    )
    assert "example/web:1" in verdict.reason.text
    assert "manifest unknown" in verdict.reason.text


def test_a_first_start_without_room_goes_back_after_a_minute():
    stuck = waiting(reason="Unschedulable", unschedulable_since=NOW)
    starting = row(state=State.STARTING)
    assert not look(starting, [stuck], now=at(59)).unplaced
    assert look(starting, [stuck], now=at(60)).unplaced


def test_what_ran_before_never_goes_back_to_the_queue():
    stuck = waiting(reason="Unschedulable", unschedulable_since=NOW)
    assert not look(row(state=State.STARTING, started_at=NOW), [stuck], now=at(600)).unplaced
    verdict = look(row(started_at=NOW), [stuck], now=at(600))
    assert (verdict.state, code(verdict)) == (State.UNHEALTHY, Code.UNSCHEDULABLE)


def test_a_failing_check_is_unhealthy_and_comes_back():
    sick = instance(ready=False, reason="Unhealthy", message="HTTP 500")
    verdict = look(row(), [sick])
    assert (verdict.state, code(verdict)) == (State.UNHEALTHY, Code.PROBE_FAILING)
    assert "HTTP 500" in verdict.reason.text
    assert look(row(state=State.UNHEALTHY), [instance()]).state is State.RUNNING


def test_a_lost_node_outweighs_everything_else():
    verdict = look(row(), [instance()], lost={"n1"})
    assert (verdict.state, code(verdict)) == (State.UNHEALTHY, Code.NODE_LOST)
    assert "a replacement starts elsewhere" in verdict.reason.text


def test_a_volume_on_the_lost_node_is_named():
    disk = service(volumes=(Volume("models", "/m", VolumeKind.DISK, 1024),))
    verdict = look(row(disk), [instance()], lost={"n1"})
    assert "models" in verdict.reason.text
    assert "waits for n1" in verdict.reason.text


def test_ten_crashes_take_a_service_down_but_not_a_critical_one():
    broken = [instance(ready=False, restarts=10, exit_code=3)]
    assert look(row(), broken, crashes=9).state is not State.FAILED
    verdict = look(row(), broken, crashes=10)
    assert (verdict.state, code(verdict)) == (State.FAILED, Code.CRASH_LOOPING)
    assert "exit code 3" in verdict.reason.text
    critical = row(service(priority=Priority.CRITICAL))
    assert look(critical, broken, crashes=50).state is State.UNHEALTHY


def test_an_update_is_done_when_only_ready_new_copies_are_left():
    updating = row(state=State.UPDATING, revision=2)
    shown = presence(revision=2, generation=4, observed_generation=4)
    old, new = instance(), instance("web-2", revision=2)
    assert look(updating, [old], shown).state is State.UPDATING
    assert look(updating, [old, new], shown).state is State.UPDATING
    assert look(updating, [new], presence(revision=2, generation=4, observed_generation=3)).state is State.UPDATING  # fmt: skip
    assert look(updating, [new], shown).state is State.RUNNING


def test_stopped_only_when_the_last_copy_is_gone():
    stopping = row(state=State.STOPPING, desire=Desire.STOP)
    assert look(stopping, [instance(terminating=True)], presence(desired=0)).state is State.STOPPING
    assert look(stopping, [], presence(desired=1)).state is State.STOPPING
    assert look(stopping, [], presence(desired=0)).state is State.STOPPED


def test_what_is_being_deleted_never_becomes_stopped():
    going = row(state=State.STOPPING, desire=Desire.DELETE)
    assert look(going, []).state is State.STOPPING


def test_a_job_ends_with_the_clusters_word():
    ended = [instance(phase="succeeded", ended_at=at(20))]
    done = look(row(job()), ended, presence("Job", complete=True))
    assert (done.state, done.ended_at) == (State.SUCCEEDED, at(20))
    between = look(row(job()), ended, presence("Job"))
    assert between.state is State.RUNNING


def failed(name="render-1", **changes):
    return instance(name, **{"phase": "failed", "exit_code": 1, "user_failure": True, "ended_at": at(5), **changes})  # fmt: skip


def test_a_job_is_tried_again_until_its_own_faults_are_used_up():
    once = look(row(job(retries=1)), [failed()], presence("Job"))
    assert once.state is State.STARTING
    assert "exit code 1" in once.reason.text
    twice = look(row(job(retries=1)), [failed(), failed("render-2")], presence("Job"))
    assert (twice.state, code(twice)) == (State.FAILED, Code.PROGRAM_FAILED)


def test_a_lost_node_is_not_the_programs_fault():
    taken = [failed(f"r{n}", user_failure=False) for n in range(5)]
    assert look(row(job(retries=0)), taken, presence("Job")).state is State.STARTING


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (failed(reason="DeadlineExceeded"), Code.TIME_LIMIT),
        (failed(reason="OOMKilled", exit_code=137), Code.OUT_OF_MEMORY),
        (failed(), Code.PROGRAM_FAILED),
    ],
)
def test_a_failed_job_says_what_ended_it(seen, expected):
    verdict = look(row(job(retries=0, time_limit_s=60)), [seen], presence("Job"))
    assert (verdict.state, code(verdict)) == (State.FAILED, expected)


def test_a_time_limit_is_final_whatever_retries_are_left():
    late = failed(reason="DeadlineExceeded")
    assert look(row(job(retries=5)), [late], presence("Job")).state is State.FAILED


def test_an_array_counts_and_goes_on_past_a_task_that_failed():
    array = row(job(array=(1, 4), retries=0), State.STARTING)
    tasks = [
        instance("t0", index=0, phase="succeeded"),
        failed("t1", index=1),
        instance("t2", index=2),
        waiting("t3", index=3, gated=True),
    ]
    verdict = look(array, tasks, presence("Job", succeeded=1))
    assert verdict.state is State.RUNNING
    assert dict(verdict.counts) == {"done": 1, "running": 1, "failed": 1, "total": 4}


def test_an_array_fails_when_all_tasks_ended_and_one_failed_naming_its_frame():
    array = row(job(array=(10, 12), retries=0))
    tasks = [failed("t1", index=1), waiting("t1-b", index=1, gated=True)]
    verdict = look(array, tasks, presence("Job", succeeded=2))
    assert verdict.state is State.FAILED
    assert "1 of 3 tasks failed: 11." in verdict.reason.text


def test_an_array_with_running_tasks_does_not_fail_yet():
    array = row(job(array=(10, 12), retries=0))
    tasks = [failed("t1", index=1), instance("t2", index=2)]
    assert look(array, tasks, presence("Job", succeeded=1)).state is State.RUNNING


def test_a_task_that_made_it_in_the_end_is_not_exhausted():
    tasks = [failed("a", index=0), failed("b", index=0), instance("c", index=0, phase="succeeded")]
    assert exhausted(JobSpec(array=(1, 2), retries=1), tasks) == frozenset()
    assert exhausted(JobSpec(array=(1, 2), retries=0), tasks[:2]) == {0}


def test_texts_hold_no_growing_numbers():
    slow = instance(ready=False)
    starting = row(service(health=HealthCheck(port=80)), State.STARTING)
    assert look(starting, [slow], now=at(5)).reason == look(starting, [slow], now=at(500)).reason
