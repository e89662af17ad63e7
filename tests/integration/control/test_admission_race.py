"""A row that another loop writes between the plan and its commit."""

import asyncio
import threading
from dataclasses import replace

from house import ANN, BOB, eventually, job

from podwarden.domain.workload import State


async def test_a_workload_whose_row_was_written_meanwhile_is_planned_again(house):
    await house.workloads.submit(ANN, job("one", 24))
    one = await house.reaches("one", State.RUNNING)
    await house.workloads.submit(BOB, job("two", 24))
    row = await house.row("two")
    busy, go_on = threading.Event(), threading.Event()

    def write(entry):
        busy.set()
        assert go_on.wait(10)
        return entry.save(replace(row, changed_at=entry.now))

    writing = asyncio.create_task(house.app.ledger.write(write))
    await asyncio.to_thread(busy.wait, 10)
    house.cluster.finish(one.id)
    admission = house.app.leader.rooms["home"].admission
    await eventually(
        lambda: any(p.workload == row.id for p in admission.plan.placements), "it is planned"
    )
    go_on.set()
    assert (await writing).version == row.version + 1
    await house.reaches("two", State.RUNNING)
