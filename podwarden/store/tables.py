"""The tables as they are now. The way here is in `migrations/`; a test compares both."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    text,
)
from sqlalchemy.schema import SchemaItem

from podwarden.store.columns import Json, Moment, Serial, Words

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _serial(name: str) -> Column[int]:
    return Column(name, Serial, primary_key=True, autoincrement=True)


def _table(name: str, *items: SchemaItem) -> Table:
    """sqlite_autoincrement: without it SQLite gives the id of a deleted last row again."""
    return Table(name, metadata, *items, sqlite_autoincrement=True)


def _partial(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    return Index(
        name, *columns, unique=unique, sqlite_where=text(where), postgresql_where=text(where)
    )


def _words(name: str, **options: Any) -> Column[str]:
    return Column(name, Words, nullable=False, **options)


users = _table(
    "users",
    Column("name", Words, primary_key=True),
    _words("role"),
    _words("password"),  # argon2id
    Column("created_at", Moment, nullable=False),
    Column("disabled", Boolean, nullable=False),
    CheckConstraint("role IN ('admin', 'member', 'viewer')", name="role"),
)

tokens = _table(
    "tokens",
    Column("id", Words, primary_key=True),
    Column("user", Words, ForeignKey("users.name", ondelete="CASCADE"), nullable=False, index=True),
    _words("label"),
    Column("hash", Words, nullable=False, unique=True),  # SHA-256 of the secret, hexadecimal
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment),
    Column("last_used_at", Moment),
    Column("session", Boolean, nullable=False),
)

# A deleted workload keeps its row, so that its events and pages that point to it still have a name.
# `seq` is never used twice and orders lists; `id` and `name` are unique among those not deleted.
ACTIVE = "active"
EXISTS = "deleted_at IS NULL"
workloads = _table(
    "workloads",
    _serial("seq"),
    _words("id"),
    _words("name"),
    _words("owner"),
    _words("cluster"),
    _words("kind"),
    _words("state"),
    _words("desire"),
    Column("active", Boolean, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("applied_revision", Integer, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("changed_at", Moment, nullable=False),
    Column("queued_at", Moment),
    Column("started_at", Moment),
    Column("ended_at", Moment),
    Column("deleted_at", Moment),
    Column("keep_volumes", Boolean, nullable=False),
    _words("spec"),  # canonical JSON of the workload file
    Column("placement", Json),
    Column("reason", Json),
    Column("counts", Json, nullable=False),
    Column("nodes", Json, nullable=False),
    Column("devices", Json, nullable=False),
    Column("facts", Json, nullable=False),
    _partial("uq_workloads_id", "id", where=EXISTS, unique=True),
    _partial("uq_workloads_cluster_name", "cluster", "name", where=EXISTS, unique=True),
    _partial("ix_workloads_active", "seq", where=ACTIVE),
    _partial("ix_workloads_exists", "seq", where=EXISTS),
    _partial("ix_workloads_state", "state", "seq", where=EXISTS),
    _partial("ix_workloads_owner", "owner", "seq", where=EXISTS),
)

revisions = _table(
    "revisions",
    Column("workload", Serial, ForeignKey("workloads.seq", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    _words("spec"),
    Column("made_at", Moment, nullable=False),
    _words("made_by"),
    _words("note"),
    PrimaryKeyConstraint("workload", "number"),
)

events = _table(
    "events",
    _serial("id"),
    Column("at", Moment, nullable=False),
    _words("subject"),
    _words("kind"),
    _words("text"),
    _words("actor"),
    _words("code"),
    _words("name"),
    Index("ix_events_subject", "subject", "id"),
)

clusters = _table(
    "clusters",
    Column("name", Words, primary_key=True),
    _words("server"),
    Column("added_at", Moment, nullable=False),
    _words("version"),
    Column("simulated", Boolean, nullable=False),
    Column("notes", Json, nullable=False),
    Column("kubeconfig", LargeBinary, nullable=False),  # encrypted
    _words("key_id"),
)

secrets = _table(
    "secrets",
    Column("name", Words, primary_key=True),
    _words("owner"),
    Column("value", LargeBinary, nullable=False),  # encrypted
    _words("key_id"),
    Column("changed_at", Moment, nullable=False),
    Column("registry", Words),  # the host that it is a login of; NULL for any other value
    Column("made_for", Words),  # the workload that PodWarden made it for; NULL: somebody stored it
)

# server "": a folder of `node` in `cluster`; else an NFS export
storages = _table(
    "storages",
    Column("name", Words, primary_key=True),
    *(_words(name) for name in ("server", "path", "cluster", "node")),
    Column("checked", Boolean, nullable=False),
    Column("added_at", Moment, nullable=False),
    _words("added_by"),
)

# One row. holder "" = nobody leads. The fence never falls, also when nobody leads.
lease = _table(
    "lease",
    Column("id", Integer, primary_key=True, autoincrement=False),
    _words("holder"),
    Column("fence", BigInteger, nullable=False),
    Column("until", Moment, nullable=False),
    CheckConstraint("id = 1", name="one_row"),
)

# `text`: the noun as JSON. Volatile fields are left out, so that a row changes only when the hardware does.
known_nodes = _table(
    "known_nodes",
    Column("cluster", Words, ForeignKey("clusters.name", ondelete="CASCADE"), nullable=False),
    _words("name"),
    _words("text"),
    PrimaryKeyConstraint("cluster", "name"),
)

known_devices = _table(
    "known_devices",
    Column("cluster", Words, ForeignKey("clusters.name", ondelete="CASCADE"), nullable=False),
    _words("uuid"),
    _words("node"),
    Column("present", Boolean, nullable=False),
    _words("text"),
    PrimaryKeyConstraint("cluster", "uuid"),
)

# vram_mib 0 = any; count 0 = no GPU
history = _table(
    "history",
    _serial("id"),
    Column("at", Moment, nullable=False),
    _words("template"),
    _words("kind"),
    Column("seconds", Float),
    Column("count", Integer, nullable=False),
    Column("vram_mib", BigInteger, nullable=False),
    Index("ix_history_template", "template", "id"),
)

idempotency = _table(
    "idempotency",
    _words("user"),
    _words("key"),
    _words("body_hash"),
    Column("created_at", Moment, nullable=False, index=True),
    Column("response", Json),  # NULL while the first request is at work
    PrimaryKeyConstraint("user", "key"),
)
