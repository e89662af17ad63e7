"""The first tables: users, roles and owners from the start."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_MOMENT = sa.DateTime(timezone=True)
_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _access()
    _workloads()
    _events()
    _clusters()
    _lease()
    _memory()


def _words(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _moment(name: str, *, optional: bool = False) -> sa.Column[Any]:
    return sa.Column(name, _MOMENT, nullable=optional)


def _partial(
    name: str, table: str, columns: list[str], where: str, *, unique: bool = False
) -> None:
    condition = sa.text(where)
    op.create_index(
        name, table, columns, unique=unique, sqlite_where=condition, postgresql_where=condition
    )


def _access() -> None:
    op.create_table(
        "users",
        _words("name"),
        _words("role"),
        _words("password"),
        _moment("created_at"),
        sa.Column("disabled", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_users"),
        sa.CheckConstraint("role IN ('admin', 'member', 'viewer')", name=op.f("ck_users_role")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "tokens",
        _words("id"),
        _words("user"),
        _words("label"),
        _words("hash"),
        _moment("created_at"),
        _moment("expires_at", optional=True),
        _moment("last_used_at", optional=True),
        sa.Column("session", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.ForeignKeyConstraint(
            ["user"], ["users.name"], name="fk_tokens_user", ondelete="CASCADE"
        ),
        sa.UniqueConstraint("hash", name="uq_tokens_hash"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_tokens_user", "tokens", ["user"])


def _workloads() -> None:
    op.create_table(
        "workloads",
        sa.Column("seq", _SERIAL, autoincrement=True, nullable=False),
        *(_words(name) for name in ("id", "name", "owner", "cluster", "kind", "state", "desire")),
        sa.Column("active", sa.Boolean, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("applied_revision", sa.Integer, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        _moment("created_at"),
        _moment("changed_at"),
        *(
            _moment(f"{what}_at", optional=True)
            for what in ("queued", "started", "ended", "deleted")
        ),
        sa.Column("keep_volumes", sa.Boolean, nullable=False),
        _words("spec"),
        sa.Column("placement", sa.Text),
        sa.Column("reason", sa.Text),
        *(_words(name) for name in ("counts", "nodes", "devices", "facts")),
        sa.PrimaryKeyConstraint("seq", name="pk_workloads"),
        sqlite_autoincrement=True,
    )
    exists = "deleted_at IS NULL"
    _partial("uq_workloads_id", "workloads", ["id"], exists, unique=True)
    _partial("uq_workloads_cluster_name", "workloads", ["cluster", "name"], exists, unique=True)
    _partial("ix_workloads_active", "workloads", ["seq"], "active")
    _partial("ix_workloads_exists", "workloads", ["seq"], exists)
    _partial("ix_workloads_state", "workloads", ["state", "seq"], exists)
    _partial("ix_workloads_owner", "workloads", ["owner", "seq"], exists)
    op.create_table(
        "revisions",
        sa.Column("workload", _SERIAL, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        _words("spec"),
        _moment("made_at"),
        _words("made_by"),
        _words("note"),
        sa.PrimaryKeyConstraint("workload", "number", name="pk_revisions"),
        sa.ForeignKeyConstraint(
            ["workload"], ["workloads.seq"], name="fk_revisions_workload", ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("id", _SERIAL, autoincrement=True, nullable=False),
        _moment("at"),
        *(_words(name) for name in ("subject", "kind", "text", "actor", "code", "name")),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_subject", "events", ["subject", "id"])


def _clusters() -> None:
    op.create_table(
        "clusters",
        _words("name"),
        _words("server"),
        _moment("added_at"),
        _words("version"),
        sa.Column("simulated", sa.Boolean, nullable=False),
        _words("notes"),
        sa.Column("kubeconfig", sa.LargeBinary, nullable=False),
        _words("key_id"),
        sa.PrimaryKeyConstraint("name", name="pk_clusters"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "secrets",
        _words("name"),
        _words("owner"),
        sa.Column("value", sa.LargeBinary, nullable=False),
        _words("key_id"),
        _moment("changed_at"),
        sa.PrimaryKeyConstraint("name", name="pk_secrets"),
        sqlite_autoincrement=True,
    )
    for table, key in (("known_nodes", "name"), ("known_devices", "uuid")):
        extra = [_words("node"), sa.Column("present", sa.Boolean, nullable=False)]
        op.create_table(
            table,
            _words("cluster"),
            _words(key),
            *(extra if table == "known_devices" else ()),
            _words("text"),
            sa.PrimaryKeyConstraint("cluster", key, name=f"pk_{table}"),
            sa.ForeignKeyConstraint(
                ["cluster"], ["clusters.name"], name=f"fk_{table}_cluster", ondelete="CASCADE"
            ),
            sqlite_autoincrement=True,
        )


def _lease() -> None:
    lease = op.create_table(
        "lease",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        _words("holder"),
        sa.Column("fence", sa.BigInteger, nullable=False),
        _moment("until"),
        sa.PrimaryKeyConstraint("id", name="pk_lease"),
        sa.CheckConstraint("id = 1", name=op.f("ck_lease_one_row")),
        sqlite_autoincrement=True,
    )
    long_ago = datetime(2000, 1, 1, tzinfo=UTC)
    op.bulk_insert(lease, [{"id": 1, "holder": "", "fence": 0, "until": long_ago}])


def _memory() -> None:
    op.create_table(
        "history",
        sa.Column("id", _SERIAL, autoincrement=True, nullable=False),
        _moment("at"),
        _words("template"),
        _words("kind"),
        sa.Column("seconds", sa.Float),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("vram_mib", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_history"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_history_template", "history", ["template", "id"])
    op.create_table(
        "idempotency",
        *(_words(name) for name in ("user", "key", "body_hash")),
        _moment("created_at"),
        sa.Column("response", sa.Text),
        sa.PrimaryKeyConstraint("user", "key", name="pk_idempotency"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_idempotency_created_at", "idempotency", ["created_at"])
