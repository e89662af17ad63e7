"""Alembic's entry: runs the steps on the connection that `store/migrate.py` hands over, in its transaction."""

from __future__ import annotations

from alembic import context

from podwarden.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=context.config.attributes["version_table"],
    transactional_ddl=True,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
