"""Who leads: one row with a fence that rises with each new leader, for both databases.

Ends are compared on the database's clock, so that two hosts whose clocks differ agree (SQLite: all processes are
on one host, its clock is the database's).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import or_, select, update

from podwarden.errors import FenceLost
from podwarden.store import tables
from podwarden.store.book import Book

_table = tables.lease


class Lease(Book):
    def acquire(self, holder: str, seconds: float) -> int | None:
        """The fence of a new leadership, or None while another one leads. A holder that leads already starts
        anew with a higher fence: a restarted process must not share the fence of its stopped forerunner.
        """
        now = self._database_now()
        granted = self._run(
            update(_table)
            .where(or_(_table.c.until <= now, _table.c.holder.in_(("", holder))))
            .values(holder=holder, fence=_table.c.fence + 1, until=now + timedelta(seconds=seconds))
            .returning(_table.c.fence)
        ).scalar()
        return None if granted is None else int(granted)

    def renew(self, holder: str, fence: int, seconds: float) -> bool:
        """False: another one leads since. A lease that ran out unnoticed by others is taken up again."""
        until = self._database_now() + timedelta(seconds=seconds)
        done = self._run(
            update(_table)
            .where(_table.c.holder == holder, _table.c.fence == fence)
            .values(until=until)
        )
        return done.rowcount == 1

    def lift(self, above: int) -> None:
        """From now on nobody leads, and the next leader's fence is above `above`: a cluster that is taken over
        carries the fence of the PodWarden that had it before.
        """
        self._run(
            update(_table)
            .where(_table.c.fence < above)
            .values(holder="", fence=above, until=self._database_now())
        )

    def release(self, holder: str, fence: int) -> None:
        """Lets the next one lead at once. Nothing happens where this one does not lead any more."""
        self._run(
            update(_table)
            .where(_table.c.holder == holder, _table.c.fence == fence)
            .values(holder="", until=self._database_now())
        )

    def current(self) -> tuple[str, int, datetime]:
        """(holder, fence, until); holder "": nobody leads."""
        row = self._run(select(_table.c.holder, _table.c.fence, _table.c.until)).one()
        return row.holder, row.fence, row.until

    def require(self, fence: int) -> None:
        """FenceLost unless this fence still leads. The row stays locked to the end of the transaction, so
        that nobody begins to lead between this check and the commit. A lease that ran out is still held as
        long as nobody else took it.
        """
        row = self._run(select(_table.c.holder, _table.c.fence).with_for_update(read=True)).one()
        if row.fence != fence or not row.holder:
            leader = f"{row.holder} leads with fence {row.fence}" if row.holder else "nobody leads"
            raise FenceLost(f"This PodWarden (fence {fence}) does not lead any more: {leader}.")

    def _database_now(self) -> datetime:
        return self._means.dialect.now(self._connection, self._now())
