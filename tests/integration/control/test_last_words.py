"""The last lines of a log stand beside the reason of what failed, crashes or is unhealthy."""

from dataclasses import replace

from house import ADMIN, ANN, eventually, job, service

from podwarden.domain.observation import LastWords
from podwarden.domain.reason import Code
from podwarden.domain.workload import State
from podwarden.errors import Unavailable

HOSTILE = "\x1b[2J<script>alert(1)</script>\u202e"


def break_it(house, row, **changes):
    broken = {"ready": False, **changes}
    seen = house.cluster.instances(row.id)
    house.cluster.set_instances(row.id, *(replace(i, **broken) for i in seen))


async def with_reason(house, name, code):
    async def look():
        row = await house.row(name)
        return row if row.reason is not None and row.reason.code is code else None

    return await eventually(look, f"{name} says {code}")


async def test_a_service_that_crashes_says_what_its_log_says(house):
    await house.workloads.submit(ANN, service())
    row = await house.reaches("web", State.RUNNING)
    house.cluster.words[row.id] = LastWords(("loading", "RuntimeError: CUDA out of memory."))
    break_it(house, row, restarts=1, exit_code=1, reason="CrashLoopBackOff")
    row = await with_reason(house, "web", Code.OUT_OF_VRAM)
    assert row.state is State.UNHEALTHY
    assert row.reason.lines == ("loading", "RuntimeError: CUDA out of memory.")
    assert house.cluster.asked_words == [("web-1", True)]
    assert "restarted" in await house.kinds("web")
    for event in await house.workloads.events(ADMIN, "web"):
        assert "RuntimeError" not in event.text


async def test_a_failed_job_keeps_its_last_lines_when_its_copies_are_gone(house):
    await house.workloads.submit(ANN, job(retries=0))
    row = await house.reaches("render", State.RUNNING)
    house.cluster.words[row.id] = LastWords((HOSTILE, "MemoryError"))
    break_it(
        house, row, phase="failed", exit_code=1, user_failure=True, allocated=False, devices=()
    )
    row = await house.reaches("render", State.FAILED)
    assert row.reason.code is Code.OUT_OF_MEMORY
    assert row.reason.lines == (HOSTILE, "MemoryError")
    assert house.cluster.asked_words == [("render-1", False)]
    house.cluster.lose(row.id)
    assert (await house.row("render")).reason.lines == (HOSTILE, "MemoryError")


async def test_a_log_that_cannot_be_read_delays_nothing_for_long(house):
    await house.workloads.submit(ANN, job(retries=0))
    row = await house.reaches("render", State.RUNNING)
    house.cluster.fail("last_words", Unavailable("away"))
    break_it(
        house, row, phase="failed", exit_code=2, user_failure=True, allocated=False, devices=()
    )
    row = await house.reaches("render", State.FAILED)
    assert (row.reason.code, row.reason.lines) == (Code.PROGRAM_FAILED, ())
    assert "exit code was 2" in row.reason.text


async def test_a_failing_check_is_told_and_recovers(house):
    await house.workloads.submit(ANN, service())
    row = await house.reaches("web", State.RUNNING)
    said = ("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 500")
    house.cluster.words[row.id] = LastWords(("GET / 500",), (said,))
    break_it(house, row)
    row = await with_reason(house, "web", Code.PROBE_FAILING)
    assert (row.state, row.reason.lines) == (State.UNHEALTHY, ("GET / 500",))
    assert "HTTP status 500" in row.reason.text
    house.cluster.set_instances(
        row.id, *(replace(i, ready=True) for i in house.cluster.instances(row.id))
    )
    row = await house.reaches("web", State.RUNNING)
    assert row.reason is None


async def test_ten_crashes_end_it_with_the_last_lines(house):
    await house.workloads.submit(ANN, service())
    row = await house.reaches("web", State.RUNNING)
    house.cluster.words[row.id] = LastWords(("No CUDA GPUs are available",))
    break_it(house, row, restarts=10, exit_code=1, reason="CrashLoopBackOff")
    row = await house.reaches("web", State.FAILED)
    assert row.reason.code is Code.NO_GPU_VISIBLE
    assert row.reason.lines == ("No CUDA GPUs are available",)
    assert "10 times in 30 min" in row.reason.text
