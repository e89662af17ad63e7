"""Storages, and which secrets are logins of a registry."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "storages",
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in ("name", "server", "path", "cluster", "node")
        ),
        sa.Column("checked", sa.Boolean, nullable=False),
        sa.Column("added_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("added_by", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_storages"),
        sqlite_autoincrement=True,
    )
    op.add_column("secrets", sa.Column("registry", sa.Text))
