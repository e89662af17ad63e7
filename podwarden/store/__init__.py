"""The control plane's memory: SQLAlchemy models, migrations, one repository a noun, secrets at rest.

Prohibited: network calls, planning, Kubernetes. Nothing outside this package sees the database library.

How it is used: `await store.read(work)` and `await store.write(work)` run `work(unit)` in a thread, in one
transaction. `work` may be run again after a deadlock, so it must be pure except for the unit: it
builds what it writes from its arguments, changes no outer state and takes milliseconds. A read sees one moment of
the database from its first to its last statement and cannot write. A write is committed when `work` returns and
undone when it raises. There is one writer at a time, on both databases (docs/decisions, "One writer at a time"): events
therefore get their ids in the order in which they are committed. A caller that is cancelled while it waits does
not take its write back.

The data folder (0700):

    podwarden.db        SQLite: everything below `tables.py`; absent where a PostgreSQL URL is given
    podwarden.db-wal    SQLite: what is committed and not yet in podwarden.db; belongs to it, never remove it alone
    podwarden.db-shm    SQLite: an index of the -wal file, made anew when missing
    secrets.key         0600: one line per key, `<id> <base64>`, the first one encrypts, all decrypt

A copy of the database without `secrets.key` cannot show kubeconfigs and secrets; everything else is readable.
"""

from podwarden.store.store import Store
from podwarden.store.unit import Unit

__all__ = ["Store", "Unit"]
