"""What a cluster has once, its space and its fence, may be deleted by hand: a room makes it again."""

import asyncio

from cluster_double import give
from house import eventually

from podwarden.control.clock import SystemClock
from podwarden.control.room import Room
from podwarden.errors import FenceLost, Refused, Unavailable


def _room(house):
    """A second one over the same cluster; the house's own stands still."""
    return Room(
        "home", house.cluster, house.app.ledger, SystemClock(),
        fence=lambda: 1, render=give, standing=0.02,
    )  # fmt: skip


async def test_it_is_looked_after_again_and_again_and_trouble_does_not_end_that(house):
    before = len(house.cluster.told("raise_fence"))
    room = _room(house)
    looking = asyncio.create_task(room._stand())
    house.cluster.fail("raise_fence", Unavailable("away"), Refused("it is being removed"))
    await eventually(lambda: len(house.cluster.told("raise_fence")) >= before + 3, "again")
    assert not looking.done()
    looking.cancel()


async def test_another_leader_ends_it(house):
    house.cluster.fail("raise_fence", FenceLost("another leads"))
    looking = asyncio.create_task(_room(house)._stand())
    done, _ = await asyncio.wait([looking], timeout=5)
    assert done
    assert isinstance(looking.exception(), FenceLost)
