"""How a running service gets a new revision: beside the old one, after a wait, one by one, or with a downtime."""

from dataclasses import replace
from datetime import timedelta

import pytest
from house import ADMIN, ANN, eventually, job, service

from podwarden.control import revising
from podwarden.domain.reason import Code
from podwarden.domain.workload import State
from podwarden.errors import Conflict


def new(**changes):
    return replace(service(**changes), image="example/web:2")


async def running(house, name="web", **changes):
    await house.workloads.submit(ANN, service(name, **changes))
    return await house.reaches(name, State.RUNNING)


async def newest(house, name, revision):
    async def look():
        row = await house.row(name)
        return row if (row.revision, row.state) == (revision, State.RUNNING) else None

    return await eventually(look, f"{name} runs revision {revision}")


async def test_beside_the_old_one_where_there_is_room(house):
    await running(house)
    done = await house.workloads.update(ANN, "web", new())
    assert done.how == "surge"
    assert "no downtime" in done.text
    assert (await newest(house, "web", 2)).spec.image == "example/web:2"


async def test_it_waits_for_room_that_will_come_and_goes_on_by_itself(house):
    """12 and 24 GB are held by jobs, 24 by the service."""
    before = await running(house, vram_gb=24)
    await house.workloads.update(ANN, "web", service(vram_gb=24, env=(("A", "1"),)), recreate=True)
    await newest(house, "web", 2)
    await house.workloads.submit(ANN, job("busy", 12))
    busy = await house.reaches("busy", State.RUNNING)
    smaller = new(vram_gb=12)
    preview = await house.workloads.update(ANN, "web", smaller, dry_run=True)
    assert preview.how == "wait"
    done = await house.workloads.update(ANN, "web", smaller)
    assert done.how == "wait"
    assert "waits up to 10 min for room beside revision 2, which goes on" in done.text
    row = await house.row("web")
    assert (row.revision, row.state) == (2, State.RUNNING)
    assert len(await house.workloads.revisions(ANN, "web")) == 2
    house.cluster.finish(busy.id)
    row = await newest(house, "web", 3)
    assert row.spec.image == "example/web:2"
    assert revising.pending(row) is None
    assert [r.made_by for r in await house.workloads.revisions(ANN, "web")][-1] == "ann"
    assert any("Room has come." in text for text in await house.texts("web"))
    assert before.id == row.id


async def waiting_update(house):
    await running(house, vram_gb=24)
    await house.workloads.submit(ANN, job("busy", 12))
    busy = await house.reaches("busy", State.RUNNING)
    assert (await house.workloads.update(ANN, "web", new(vram_gb=12))).how == "wait"
    return busy


async def test_an_update_that_waited_in_vain_changes_nothing_and_says_so(house):
    await waiting_update(house)
    row = await house.row("web")
    order = revising.pending(row)
    past = replace(order, until=order.until - timedelta(hours=1))
    await house.app.ledger.write(lambda entry: entry.save(revising.waiting(row, past)))

    async def dropped():
        return any("was dropped: no room came" in text for text in await house.texts("web"))

    await eventually(dropped, "the update is dropped")
    row = await house.row("web")
    assert (row.revision, row.state, revising.pending(row)) == (1, State.RUNNING, None)


async def test_a_stop_drops_the_update_that_waits(house):
    await waiting_update(house)
    await house.workloads.stop(ANN, "web")
    await house.reaches("web", State.STOPPED)
    await house.workloads.start(ANN, "web")
    row = await house.reaches("web", State.RUNNING)
    assert (row.revision, revising.pending(row)) == (1, None)


async def test_another_update_takes_the_place_of_the_one_that_waits(house):
    busy = await waiting_update(house)
    await house.workloads.update(
        ANN, "web", replace(service(vram_gb=24), image="a/b:3"), recreate=True
    )
    row = await newest(house, "web", 2)
    assert revising.pending(row) is None
    house.cluster.finish(busy.id)
    await house.reaches("busy", State.SUCCEEDED)
    assert (await house.row("web")).spec.image == "a/b:3"


async def test_where_no_room_will_come_it_needs_a_downtime_that_is_chosen(house):
    await running(house, vram_gb=24)
    with pytest.raises(Conflict) as told:
        await house.workloads.update(ANN, "web", new(vram_gb=24))
    assert told.value.code == "UPDATE_NEEDS_DOWNTIME"
    done = await house.workloads.update(ANN, "web", new(vram_gb=24), recreate=True)
    assert done.how == "recreate"
    assert "a short downtime" in done.text
    await newest(house, "web", 2)


async def test_several_copies_go_one_after_the_other_without_asking(house):
    await running(house, replicas=2, vram_gb=12)
    done = await house.workloads.update(ANN, "web", new(replicas=2, vram_gb=12))
    assert done.how == "recreate"
    assert "one after the other" in done.text
    await newest(house, "web", 2)


async def test_several_copies_that_are_all_needed_ask(house):
    await running(house, replicas=2, min_replicas=2, vram_gb=12)
    wish = new(replicas=2, min_replicas=2, vram_gb=12)
    with pytest.raises(Conflict) as told:
        await house.workloads.update(ANN, "web", wish)
    assert told.value.code == "UPDATE_NEEDS_DOWNTIME"


async def broken_update(house, **changes):
    """Revision 2, in place of 1, does not come up."""
    before = await running(house, vram_gb=24)
    house.cluster.auto = False
    await house.workloads.update(ANN, "web", new(vram_gb=24), recreate=True)

    def made():
        return [i for i in house.cluster.instances(before.id) if i.revision == 2]

    await eventually(made, "copies of revision 2")
    house.cluster.auto = True
    broken = [replace(i, node="n1", **changes) for i in made()]
    house.cluster.set_instances(before.id, *broken)
    return before


async def back(house):
    row = await newest(house, "web", 3)
    assert row.spec.image == "example/web:1"
    assert "rolled-back" in await house.kinds("web")
    last = (await house.workloads.revisions(ADMIN, "web"))[-1]
    assert (last.made_by, last.note) == ("podwarden", "back to revision 1")


async def test_a_revision_that_keeps_crashing_is_rolled_back_by_itself(house):
    await broken_update(house, phase="running", restarts=3, exit_code=1)
    await back(house)


async def test_a_revision_that_is_never_ready_is_rolled_back_when_its_time_is_over(house):
    await broken_update(house, phase="running")
    row = await house.row("web")
    over = revising.with_facts(row, {revising.UNTIL: row.created_at.isoformat()})
    await house.app.ledger.write(lambda entry: entry.save(replace(row, facts=over)))
    await back(house)


async def test_an_image_that_does_not_exist_is_not_waited_for(house):
    await broken_update(house, reason="ErrImagePull", message="manifest unknown")

    async def said():
        row = await house.row("web")
        return row if row.reason and row.reason.code is Code.IMAGE_PULL_FAILED else None

    row = await eventually(said, "the registry's words")
    assert (row.state, row.revision) == (State.UPDATING, 2)
    earlier = row.changed_at - revising.PULL_TRIES
    await house.app.ledger.write(lambda entry: entry.save(replace(row, changed_at=earlier)))
    await back(house)
    assert any("no such tag" in text for text in await house.texts("web"))
