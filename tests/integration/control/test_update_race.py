"""An update whose workload changed between the choice of the way and the commit."""

from dataclasses import replace

import pytest
from house import ADMIN, ANN, service

from podwarden.control.made import Offer
from podwarden.domain.event import EventKind
from podwarden.domain.workload import State
from podwarden.errors import Conflict


async def _revise(house, row, spec):
    """As `update` does after it has read the row."""
    return await house.workloads._revise(
        ANN, row, Offer(spec), recreate=False, dry_run=False, note="", kind=EventKind.UPDATED
    )


async def test_a_write_of_podwardens_own_does_not_disturb_it(house):
    await house.workloads.submit(ANN, service())
    row = await house.reaches("web", State.RUNNING)
    written = await house.app.ledger.write(
        lambda entry: entry.save(replace(row, changed_at=entry.now))
    )
    assert written.version == row.version + 1
    done = await _revise(house, row, replace(row.spec, image="example/web:2"))
    assert (done.how, done.workload.revision) == ("surge", 2)
    assert (await house.row("web")).spec.image == "example/web:2"


async def test_what_a_person_did_meanwhile_is_not_overrun(house):
    await house.workloads.submit(ANN, service())
    row = await house.reaches("web", State.RUNNING)
    await house.workloads.update(ADMIN, "web", replace(row.spec, image="example/web:2"))
    with pytest.raises(Conflict) as told:
        await _revise(house, row, replace(row.spec, image="example/web:3"))
    assert told.value.code == "STALE"
    now = await house.row("web")
    assert (now.revision, now.spec.image) == (2, "example/web:2")


async def test_a_stop_meanwhile_is_not_overrun(house):
    await house.workloads.submit(ANN, service())
    row = await house.reaches("web", State.RUNNING)
    await house.workloads.stop(ADMIN, "web")
    with pytest.raises(Conflict) as told:
        await _revise(house, row, replace(row.spec, image="example/web:2"))
    assert told.value.code == "STALE"
    assert (await house.reaches("web", State.STOPPED)).revision == 1
