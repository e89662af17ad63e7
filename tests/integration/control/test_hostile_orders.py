"""Orders that contradict each other, come twice or at the same moment, or ask for what somebody else has."""

import asyncio
from dataclasses import replace

import pytest
from house import ADMIN, ANN, BOB, eventually, job, service

from podwarden.control.made import Offer
from podwarden.domain.workload import Desire, Expose, Port, State, Volume, VolumeKind
from podwarden.errors import Conflict, Invalid, NotFound, PodWardenError, Refused, Unavailable

LAN = (Port("http", 8080, Expose.LAN),)


async def _gone(house, ref):
    async def look():
        try:
            await house.row(ref)
        except NotFound:
            return True
        return False

    await eventually(look, f"{ref} is gone")


async def test_an_order_that_was_answered_is_answered_again_though_its_port_is_taken_now(house):
    """By itself: the first answer was lost on the way, and the client asks again."""
    first = await house.workloads.submit(ANN, service(ports=LAN), idempotency=("k", "h"))
    again = await house.workloads.submit(ANN, service(ports=LAN), idempotency=("k", "h"))
    assert again.workload.id == first.workload.id
    assert [row.name for row in await house.workloads.list(ADMIN)] == ["web"]


async def test_of_many_who_ask_for_one_port_at_once_one_gets_it(house):
    answers = await asyncio.gather(
        *(house.workloads.submit(ANN, service(f"w{n}", 0, ports=LAN)) for n in range(8)),
        return_exceptions=True,
    )
    refused = [answer for answer in answers if isinstance(answer, Conflict)]
    assert len(refused) == 7
    assert {answer.code for answer in refused} == {"PORT_TAKEN"}
    assert len(await house.workloads.list(ADMIN)) == 1


async def test_an_update_cannot_take_a_port_that_another_has(house):
    await house.workloads.submit(ANN, service("one", 0, ports=LAN))
    await house.workloads.submit(BOB, service("two", 0))
    await house.reaches("two", State.RUNNING)
    for dry_run in (True, False):
        with pytest.raises(Conflict) as told:
            await house.workloads.update(BOB, "two", service("two", 0, ports=LAN), dry_run=dry_run)
        assert told.value.code == "PORT_TAKEN"
        assert "one" in told.value.message
    assert (await house.row("two")).revision == 1


async def test_a_templates_port_stays_inside_where_an_update_finds_it_taken(house):
    await house.workloads.submit(ANN, service("one", 0, ports=LAN))
    await house.workloads.submit(BOB, service("two", 0, template="web"))
    await house.reaches("two", State.RUNNING)
    changed = service("two", 0, ports=LAN, template="web")
    done = await house.workloads.update(BOB, "two", changed)
    assert [port.expose for port in done.workload.spec.ports] == [Expose.CLUSTER]


async def test_an_update_of_its_own_keeps_its_port(house):
    await house.workloads.submit(ANN, service("one", 0, ports=LAN))
    await house.reaches("one", State.RUNNING)
    done = await house.workloads.update(
        ANN, "one", replace(service("one", 0, ports=LAN), image="a/b:2")
    )
    assert [port.expose for port in done.workload.spec.ports] == [Expose.LAN]


async def test_a_stopped_services_port_stays_its_own(house):
    """Its address stays in the cluster, so that nobody else could be reached there."""
    await house.workloads.submit(ANN, service("one", 0, ports=LAN))
    await house.reaches("one", State.RUNNING)
    await house.workloads.stop(ANN, "one")
    await house.reaches("one", State.STOPPED)
    with pytest.raises(Conflict) as told:
        await house.workloads.submit(BOB, service("two", 0, ports=LAN))
    assert told.value.code == "PORT_TAKEN"
    await house.workloads.delete(ANN, "one")
    await _gone(house, "one")
    await house.workloads.submit(BOB, service("two", 0, ports=LAN))


async def test_a_job_that_lost_its_port_meanwhile_is_not_started_again(house):
    await house.workloads.submit(ANN, job("one", 0, ports=LAN))
    one = await house.reaches("one", State.RUNNING)
    house.cluster.finish(one.id)
    await house.reaches("one", State.SUCCEEDED)
    await house.workloads.submit(BOB, service("two", 0, ports=LAN))
    with pytest.raises(Conflict) as told:
        await house.workloads.start(ANN, "one")
    assert told.value.code == "PORT_TAKEN"
    assert "two" in told.value.message
    assert (await house.row("one")).state is State.SUCCEEDED


async def test_an_update_asks_for_what_exists_as_a_deploy_does(house):
    await house.workloads.submit(ANN, service())
    await house.reaches("web", State.RUNNING)
    nas = Volume("v", "/v", VolumeKind.STORAGE, storage="nas")
    for change, field in (
        ({"secrets": (("TOKEN", "missing"),)}, "secrets.TOKEN"),
        ({"image_pull_secret": "missing"}, "image_pull_secret"),
        ({"volumes": (nas,)}, "volumes[0].storage"),
    ):
        for dry_run in (True, False):
            with pytest.raises(Invalid) as told:
                await house.workloads.update(ANN, "web", service(**change), dry_run=dry_run)
            assert told.value.problems[0].field == field
    assert (await house.row("web")).revision == 1


@pytest.mark.parametrize("state", [State.RUNNING, State.STOPPED, State.QUEUED])
async def test_an_update_to_what_can_never_run_is_refused(house, state):
    await house.workloads.submit(ADMIN, service("first", 24))
    await house.reaches("first", State.RUNNING)
    await house.workloads.submit(ANN, service(vram_gb=24 if state is State.QUEUED else 8))
    if state is State.STOPPED:
        await house.reaches("web", State.RUNNING)
        await house.workloads.stop(ANN, "web")
    await house.reaches("web", state)
    for dry_run in (True, False):
        with pytest.raises(Refused) as told:
            await house.workloads.update(ANN, "web", service(vram_gb=80), dry_run=dry_run)
        assert told.value.code == "NO_DEVICE_LARGE_ENOUGH"
    assert (await house.row("web")).revision == 1


async def test_a_stop_does_not_undo_a_delete(house):
    await house.workloads.submit(ANN, service())
    await house.reaches("web", State.RUNNING)
    house.cluster.fail("remove", Unavailable("away"))  # so that the removal takes a while
    await house.workloads.delete(ANN, "web")
    for order in (house.workloads.stop, house.workloads.start):
        with pytest.raises(Conflict) as told:
            await order(ANN, "web")
        assert told.value.code == "STATE_FORBIDS"
    await _gone(house, "web")


async def test_what_is_being_deleted_takes_no_update(house):
    await house.workloads.submit(ANN, service())
    row = await house.reaches("web", State.RUNNING)
    await house.workloads.stop(ANN, "web")
    row = await house.reaches("web", State.STOPPED)
    deleting = replace(row, desire=Desire.DELETE)
    with pytest.raises(Conflict) as told:
        await house.workloads._revise_once(
            ANN, deleting, Offer(replace(row.spec, image="a/b:2")),
            recreate=False, dry_run=True, note="", kind=None,
        )  # fmt: skip
    assert told.value.code == "STATE_FORBIDS"


async def test_orders_of_every_kind_at_once_leave_one_truth(house):
    await house.workloads.submit(ANN, service())
    await house.reaches("web", State.RUNNING)
    new = replace(service(), image="a/b:2")
    orders = [
        house.workloads.stop(ANN, "web"),
        house.workloads.start(ANN, "web"),
        house.workloads.update(ANN, "web", new),
        house.workloads.rollback(ANN, "web"),
        house.workloads.stop(ANN, "web"),
        house.workloads.delete(ANN, "web"),
        house.workloads.update(ANN, "web", new, recreate=True),
        house.workloads.start(ANN, "web"),
        house.workloads.stop(ANN, "web"),
    ]
    answers = await asyncio.gather(*orders, return_exceptions=True)
    failures = [answer for answer in answers if isinstance(answer, BaseException)]
    assert all(isinstance(failure, PodWardenError) for failure in failures), failures
    await _gone(house, "web")
    await eventually(lambda: not house.cluster.observe().presences, "nothing is left")


async def test_somebody_who_insists_is_not_raced(house):
    """Another program that sets a field again and again, as autoscalers do."""
    await house.workloads.submit(ANN, service())
    row = await house.reaches("web", State.RUNNING)
    before = len(house.cluster.told("apply"))
    for _ in range(60):
        house.cluster.set_presence(row.id, edited="spec.replicas by scaler")
        await asyncio.sleep(0.01)
    await eventually(lambda: len(house.cluster.told("apply")) > before, "it is set back")
    assert len(house.cluster.told("apply")) - before <= 2
    assert "changed-outside" in await house.kinds("web")


async def test_logs_of_a_copy_that_is_none_are_refused_before_the_first_line(house):
    await house.workloads.submit(ANN, service())
    row = await house.reaches("web", State.RUNNING)
    for instance in ("../x", "", "\u202ex", "another-1"):
        with pytest.raises(NotFound):
            await house.workloads.logs(ANN, "web", instance=instance)
    copy = house.cluster.instances(row.id)[0].name
    await house.workloads.logs(ANN, "web", instance=copy)


@pytest.mark.parametrize("label", ["\x1b[31mred", "a\nb", "\u202eevil", "\x07", "\u200b"])
async def test_a_tokens_label_does_not_drive_a_terminal(house, label):
    with pytest.raises(Invalid) as told:
        await house.access.create_token(ADMIN, label, None)
    assert told.value.problems[0].field == "label"


async def test_what_is_gone_after_an_apply_that_failed_is_made_again(house):
    """As when its whole namespace goes: parts are missed first, making them again is refused, then all is gone."""
    await house.workloads.submit(ANN, service())
    row = await house.reaches("web", State.RUNNING)
    house.cluster.fail("apply", Unavailable("it is being removed"))
    house.cluster.set_presence(row.id, missing=(("Service", "web"),))
    await eventually(lambda: not house.cluster._fail["apply"], "the apply failed")
    house.cluster.lose(row.id)
    await eventually(lambda: row.id in house.cluster.observe().presences, "it is there again")
    await house.reaches("web", State.RUNNING)
