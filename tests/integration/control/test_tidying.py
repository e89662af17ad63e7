"""Old facts are taken away by the one process that leads."""

from datetime import timedelta

from house import ADMIN, ANN, service

from podwarden.control.clock import SystemClock
from podwarden.control.tidying import DELETED_KEPT, Tidying


class Later(SystemClock):
    def now(self):
        return super().now() + DELETED_KEPT + timedelta(days=1)


async def test_the_leader_takes_away_what_was_deleted_long_ago(house):
    await house.workloads.submit(ANN, service("first", 24))
    await house.workloads.submit(ANN, service("second", 24))
    await house.workloads.delete(ANN, "second")
    tidy = Tidying(house.app.store, house.app.leader, SystemClock())
    assert (await tidy.turn()).said == ""
    later = Tidying(house.app.store, house.app.leader, Later())
    assert "1 deleted workloads" in (await later.turn()).said
    assert (await later.turn()).said == ""
    assert [row.name for row in await house.workloads.list(ADMIN)] == ["first"]


async def test_who_does_not_lead_touches_nothing(house, start):
    async with start(holder="another") as other:
        assert not other.app.leader.leading
        tidy = Tidying(other.app.store, other.app.leader, Later())
        assert (await tidy.turn()).again == 60.0
