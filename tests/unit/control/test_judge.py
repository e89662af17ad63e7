"""States and reasons of started work, from what its instances say."""

import pytest
from controlmaking import LATER, NOW, at, instance, job, presence, row, service, waiting

from podwarden.control.judge import Case, exhausted, judge
from podwarden.domain.observation import LastWords
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


# ---- last words: the log and what the cluster said


def hear(workload, seen, *lines, events=(), **more):
    words = {seen.uid: LastWords(tuple(lines), tuple(events))}
    return judge(Case(workload, None, [seen], (), LATER, words=words, **more))


CRASHED = instance(ready=False, restarts=3, exit_code=1, reason="CrashLoopBackOff")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("torch.cuda.OutOfMemoryError: CUDA out of memory.", Code.OUT_OF_VRAM),
        ("MemoryError", Code.OUT_OF_MEMORY),
        ("RuntimeError: No CUDA GPUs are available", Code.NO_GPU_VISIBLE),
        ("NCCL WARN Call to posix_fallocate failed : No space left on device", Code.SHM_TOO_SMALL),
        (
            "[h264_nvenc @ 0x5] OpenEncodeSessionEx failed: out of memory (10)",
            Code.ENCODER_SESSIONS,
        ),
        ("OSError: [Errno 28] No space left on device", Code.DISK_PRESSURE),
        ("Segmentation fault", Code.CRASH_LOOPING),
    ],
)
def test_the_log_of_what_crashes_gives_the_code_and_stands_beside_it(line, expected):
    for state in (State.STARTING, State.RUNNING):
        verdict = hear(row(state=state), CRASHED, "first", line)
        assert code(verdict) == expected
        assert verdict.reason.lines == ("first", line)
        assert "exit code 1" in verdict.reason.text
    final = hear(row(), CRASHED, "first", line, crashes=10)
    assert (final.state, code(final), final.reason.lines[-1]) == (State.FAILED, expected, line)
    assert "taken down" in final.reason.text
    ended = failed(exit_code=1)
    job_words = {ended.uid: LastWords((line,))}
    verdict = judge(Case(row(job(retries=0)), None, [ended], (), LATER, words=job_words))
    wanted = Code.PROGRAM_FAILED if expected is Code.CRASH_LOOPING else expected
    assert (verdict.state, code(verdict), verdict.reason.lines) == (State.FAILED, wanted, (line,))


def test_memory_that_the_kernel_took_is_not_vram():
    killed = instance(ready=False, restarts=1, reason="OOMKilled", exit_code=137)
    verdict = hear(row(), killed, "CUDA out of memory")
    assert code(verdict) == Code.OUT_OF_MEMORY
    assert verdict.reason.lines == ("CUDA out of memory",)
    final = hear(row(), killed, "CUDA out of memory", crashes=10)
    assert (final.state, code(final)) == (State.FAILED, Code.OUT_OF_MEMORY)


def test_no_gpu_where_none_was_asked_for_says_so():
    plain = row(service(gpu=None))
    assert "asks for no GPU" in hear(plain, CRASHED, "No CUDA GPUs are available").reason.remedy


READINESS = ("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")
STARTUP = ("Unhealthy", 'Startup probe failed: Get "http://10.1.2.3:80/": connection refused')
KILLING = ("Killing", "Container web failed startup probe, will be restarted")


def test_the_probes_words_are_in_the_reason():
    verdict = hear(row(), instance(ready=False), "oops", events=[STARTUP, READINESS])
    assert (verdict.state, code(verdict)) == (State.UNHEALTHY, Code.PROBE_FAILING)
    assert "it answers with HTTP status 503" in verdict.reason.text
    assert verdict.reason.lines == ("oops",)


def test_a_replacement_that_is_still_loading_is_not_called_failing():
    verdict = hear(row(), instance(ready=False), events=[STARTUP])
    assert (verdict.state, code(verdict)) == (State.UNHEALTHY, Code.STARTING)
    assert "connection refused" in verdict.reason.text


def test_what_is_restarted_for_its_check_is_not_called_a_crash():
    slow = row(service(health=HealthCheck(port=80, startup_s=600)), State.STARTING)
    seen = instance(ready=False, restarts=1, exit_code=137)
    verdict = hear(slow, seen, "loading", events=[STARTUP, KILLING])
    assert (verdict.state, code(verdict)) == (State.STARTING, Code.PROBE_FAILING)
    assert "within 10 min" in verdict.reason.text
    assert "health.startup" in verdict.reason.remedy


FULL = "0/3 nodes are available: 3 node(s) had untolerated taint(s) {node.kubernetes.io/disk-pressure: }."
PARTLY = "0/3 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }, 2 Insufficient cpu."


@pytest.mark.parametrize(
    ("seen", "expected", "said"),
    [
        (waiting(reason="Unschedulable", message=FULL), Code.DISK_PRESSURE, "every node"),
        (waiting(reason="Unschedulable", message=PARTLY), Code.UNSCHEDULABLE, "Insufficient cpu"),
        (
            waiting(node="n1", reason="ErrImagePull", message="manifest unknown"),
            Code.IMAGE_PULL_FAILED,
            "no such tag (manifest unknown)",
        ),
        (
            waiting(node="n1", reason="ImagePullBackOff", message="toomanyrequests: slow down"),
            Code.IMAGE_PULL_FAILED,
            "no more downloads",
        ),
        (
            waiting(node="n1", reason="ErrImagePull", message="write x: no space left on device"),
            Code.DISK_PRESSURE,
            "disk is full",
        ),
        (
            waiting(node="n1", reason="InvalidImageName"),
            Code.IMAGE_PULL_FAILED,
            "no name of an image",
        ),
        (
            waiting(node="n1", reason="CreateContainerError", message="no space left on device"),
            Code.DISK_PRESSURE,
            "disk is full",
        ),
    ],
)
def test_a_start_is_told_in_plain_words(seen, expected, said):
    verdict = look(row(state=State.STARTING), [seen])
    assert code(verdict) == expected
    assert said in verdict.reason.text


def test_a_node_that_was_full_took_the_job_away():
    evicted = failed(
        reason="Evicted", user_failure=False, exit_code=None,
        message="The node was low on resource: ephemeral-storage.",
    )  # fmt: skip
    verdict = look(row(job(retries=0)), [evicted], presence("Job"))
    assert (verdict.state, code(verdict)) == (State.STARTING, Code.DISK_PRESSURE)


def test_an_exit_code_is_put_into_words():
    missing = instance(ready=False, restarts=2, exit_code=127)
    assert "its command is not in the image" in look(row(), [missing]).reason.text
