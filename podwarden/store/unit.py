"""One transaction, seen as repositories."""

from __future__ import annotations

from sqlalchemy import Connection

from podwarden.store.book import Means
from podwarden.store.clusters import Clusters
from podwarden.store.devices import Devices
from podwarden.store.events import Events
from podwarden.store.history import History
from podwarden.store.idempotency import Idempotency
from podwarden.store.lease import Lease
from podwarden.store.storages import Storages
from podwarden.store.tokens import Tokens
from podwarden.store.users import Users
from podwarden.store.vault import Secrets
from podwarden.store.workloads import Workloads


class Unit:
    """Valid inside the work function it was given to, and only there."""

    def __init__(self, connection: Connection, means: Means, *, writes: bool) -> None:
        self.workloads = Workloads(connection, means, writes=writes)
        self.events = Events(connection, means, writes=writes)
        self.users = Users(connection, means, writes=writes)
        self.tokens = Tokens(connection, means, writes=writes)
        self.clusters = Clusters(connection, means, writes=writes)
        self.secrets = Secrets(connection, means, writes=writes)
        self.storages = Storages(connection, means, writes=writes)
        self.lease = Lease(connection, means, writes=writes)
        self.devices = Devices(connection, means, writes=writes)
        self.history = History(connection, means, writes=writes)
        self.idempotency = Idempotency(connection, means, writes=writes)
