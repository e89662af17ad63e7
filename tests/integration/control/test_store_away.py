"""The database goes away for a moment: what was seen meanwhile is not forgotten."""

from house import ANN, eventually, job, service

from podwarden.domain.workload import State
from podwarden.errors import Unavailable


class Gate:
    """Between PodWarden and its store: lets nothing through while it is shut."""

    def __init__(self, store):
        self._store = store
        self.shut = set()
        self.refused = 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def read(self, work):
        self._check("read")
        return await self._store.read(work)

    async def write(self, work, **more):
        self._check("write")
        return await self._store.write(work, **more)

    def _check(self, verb):
        if verb in self.shut:
            self.refused += 1
            raise Unavailable("The database does not answer.")


async def test_an_end_that_could_not_be_stored_is_stored_later(house):
    await house.workloads.submit(ANN, job("one", 24))
    row = await house.reaches("one", State.RUNNING)
    room = house.app.leader.rooms["home"]
    gate = Gate(house.app.store)
    house.app.ledger.store = gate
    gate.shut = {"write"}
    house.cluster.finish(row.id)
    await eventually(lambda: gate.refused, "a write that was refused")
    await eventually(lambda: any(loop.trouble for loop in room.loops), "the loop says so")
    gate.shut = set()
    await house.reaches("one", State.SUCCEEDED)
    await eventually(lambda: not any(loop.trouble for loop in room.loops), "all is well again")


async def test_orders_of_another_process_are_learnt_though_a_read_failed(start):
    async with start(holder="a") as first:
        await first.acts()
        async with start(holder="b") as second:
            gate = Gate(first.app.store)
            first.app.ledger.store = gate
            real = gate.read
            reads = 0

            async def second_read_fails(work):
                nonlocal reads
                reads += 1
                if reads == 2 and not gate.refused:
                    gate.refused += 1
                    raise Unavailable("The database does not answer.")
                return await real(work)

            await second.workloads.submit(ANN, service())
            gate.read = second_read_fails
            await second.reaches("web", State.RUNNING)
            assert gate.refused == 1
