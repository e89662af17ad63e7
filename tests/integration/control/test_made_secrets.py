"""Secrets that a template has made: stored with the workload, shown once, gone with its volumes."""

import asyncio

import pytest
from house import ADMIN, ANN, BOB, eventually, service

from podwarden.catalog import Generated
from podwarden.control.made import Offer
from podwarden.domain.workload import State
from podwarden.errors import Conflict, Invalid, NotFound

WISH = (Generated("password", "Password of the database", "web-password"),)
SPEC = service("web", 0, secrets=(("POSTGRES_PASSWORD", "web-password"),))


async def stored(house):
    secrets = await house.app.store.read(lambda unit: unit.secrets.list())
    return {s.name: (s.owner, s.made_for) for s in secrets}


async def value(house, name="web-password"):
    return await house.app.store.read(lambda unit: unit.secrets.get(name))


async def gone(house, name):
    async def look():
        try:
            await house.row(name)
        except NotFound:
            return True
        return False

    await eventually(look, f"{name} is gone")


async def test_it_is_made_with_the_workload_and_shown_once(house):
    done = await house.workloads.submit(ANN, SPEC, generated=WISH)
    (made,) = done.made
    assert (made.name, made.parameter, made.title) == (
        "web-password",
        "password",
        "Password of the database",
    )
    assert len(made.value) == 24
    assert made.value == await value(house)
    assert await stored(house) == {"web-password": ("ann", "web")}
    row = await house.reaches("web", State.RUNNING)
    assert house.cluster._rows[row.id].spec.secrets == SPEC.secrets
    assert made.value not in repr(done)
    for text in await house.texts("web"):
        assert made.value not in text
    assert "Secrets made for it: web-password." in (await house.texts("web"))[0]


async def test_a_dry_run_makes_none_and_does_not_miss_it(house):
    preview = await house.workloads.submit(ANN, SPEC, generated=WISH, dry_run=True)
    assert preview.placement is not None
    assert preview.made == ()
    assert await stored(house) == {}


async def test_what_is_refused_makes_none(house):
    with pytest.raises(Invalid):
        await house.workloads.submit(
            ANN, service("web", 0, secrets=(*SPEC.secrets, ("TOKEN", "missing"))), generated=WISH
        )
    big = service("web", 80, secrets=SPEC.secrets)
    assert (await house.workloads.submit(ANN, big, generated=WISH)).refusal is not None
    assert await stored(house) == {}


async def test_the_repeat_of_a_lost_answer_shows_the_same(house):
    first, again = await asyncio.gather(
        *(
            house.workloads.submit(ANN, SPEC, generated=WISH, idempotency=("k", "h"))
            for _ in range(2)
        )
    )
    assert [m.value for m in first.made] == [m.value for m in again.made]
    assert first.workload.id == again.workload.id


async def test_it_goes_with_the_volumes_and_stays_without(house):
    await house.workloads.submit(ANN, SPEC, generated=WISH)
    await house.reaches("web", State.RUNNING)
    before = await value(house)
    await house.workloads.delete(ANN, "web")
    await gone(house, "web")
    again = await house.workloads.submit(ANN, SPEC, generated=WISH)
    assert again.made == ()
    assert await value(house) == before
    await house.reaches("web", State.RUNNING)
    await house.workloads.delete(ANN, "web", keep_volumes=False)
    await gone(house, "web")
    assert await stored(house) == {}


async def test_what_another_workload_names_stays(house):
    await house.workloads.submit(ANN, SPEC, generated=WISH)
    await house.workloads.submit(ANN, service("app", 0, secrets=(("PW", "web-password"),)))
    await house.reaches("web", State.RUNNING)
    await house.workloads.delete(ANN, "web", keep_volumes=False)
    await gone(house, "web")
    assert set(await stored(house)) == {"web-password"}


async def test_a_value_that_somebody_else_knows_is_never_used(house):
    await house.app.store.write(lambda unit: unit.secrets.set("web-password", "guessed", "bob"))
    for dry_run in (True, False):
        with pytest.raises(Conflict) as told:
            await house.workloads.submit(ANN, SPEC, generated=WISH, dry_run=dry_run)
        assert told.value.code == "SECRET_TAKEN"
        assert "bob" in told.value.message
    done = await house.workloads.submit(BOB, SPEC, generated=WISH)
    assert done.made == ()
    await house.reaches("web", State.RUNNING)
    await house.workloads.delete(BOB, "web", keep_volumes=False)
    await gone(house, "web")
    assert await value(house) == "guessed"  # he stored it, so it is his to delete


async def test_an_update_keeps_what_there_is_and_makes_what_is_new(house):
    await house.app.store.write(lambda unit: unit.secrets.set("mine", "v", "ann"))
    own = service("web", 0, secrets=(("POSTGRES_PASSWORD", "mine"),))
    await house.workloads.submit(ANN, own)
    await house.reaches("web", State.RUNNING)
    wish = (*WISH, Generated("token", "Token", "web-token"))
    new = service("web", 0, secrets=(*SPEC.secrets, ("TOKEN", "web-token")))
    preview = await house.workloads.update(ANN, "web", new, generated=wish, dry_run=True)
    assert preview.made == ()
    done = await house.workloads.update(ANN, "web", new, generated=wish)
    assert [m.name for m in done.made] == ["web-token"]
    assert dict(done.workload.spec.secrets) == {"POSTGRES_PASSWORD": "mine", "TOKEN": "web-token"}
    assert set(await stored(house)) == {"mine", "web-token"}
    await house.reaches("web", State.RUNNING)
    again = await house.workloads.update(ANN, "web", new, generated=wish)
    assert (again.how, again.made) == ("nothing", ())


async def test_several_are_stored_together_or_not_at_all(house):
    offers = [Offer(SPEC, WISH), Offer(service("app", 8)), Offer(service("big", 80))]
    answers = await house.workloads.submit_all(ANN, offers)
    assert [a.refusal is not None for a in answers] == [False, False, True]
    for last in (
        service("app", 8),  # the same name twice
        service("more", 0, secrets=(("X", "missing"),)),
    ):
        with pytest.raises((Conflict, Invalid)) as told:
            await house.workloads.submit_all(ANN, [*offers[:2], Offer(last)])
        assert last.name in told.value.message
    assert await house.workloads.list(ADMIN) == ()
    assert await stored(house) == {}
    previews = await house.workloads.submit_all(ANN, offers[:2], dry_run=True)
    done = await house.workloads.submit_all(ANN, offers[:2], idempotency=("k", "h"))
    assert [a.placement.slots for a in previews] == [a.placement.slots for a in done]
    again = await house.workloads.submit_all(ANN, offers[:2], idempotency=("k", "h"))
    assert [a.workload.id for a in again] == [a.workload.id for a in done]
    assert [len(a.made) for a in again] == [1, 0]
    for name in ("web", "app"):
        await house.reaches(name, State.RUNNING)


async def test_those_of_one_order_wait_in_its_order(house):
    names = [f"s{n}" for n in range(6)]
    await house.workloads.submit_all(ANN, [Offer(service(name, 24)) for name in names])
    await house.reaches("s0", State.RUNNING)
    line = await house.workloads.queue(ADMIN)
    assert [q.workload.name for q in line] == names[1:]


async def test_a_preview_counts_those_submitted_with_it(house):
    offers = [Offer(service(name, 24)) for name in ("one", "two")]
    first, second = await house.workloads.submit_all(ANN, offers, dry_run=True)
    assert first.placement is not None
    assert (second.placement, second.verdict.position) == (None, 1)
