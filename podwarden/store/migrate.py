"""Brings a database to the schema of this code: one transaction, behind the lock of the writers.

Two PodWardens that start at once do not collide: the second one waits and then finds nothing to do.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect
from sqlalchemy.exc import DBAPIError

from podwarden.errors import SetupFailed
from podwarden.store.dialect import Dialect
from podwarden.store.tables import metadata

VERSION_TABLE = "podwarden_schema"


def migrate(engine: Engine, dialect: Dialect) -> None:
    """engine: a writer's. SetupFailed, in a sentence: not reachable, not writable, newer than this
    code, or somebody else's.
    """
    try:
        with engine.begin() as connection:
            _migrate(connection, dialect.where)
    except DBAPIError as error:
        known = dialect.explain(error)
        if known is None:
            raise
        raise SetupFailed(known.message) from error


def _migrate(connection: Connection, where: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    config.attributes["version_table"] = VERSION_TABLE
    head = ScriptDirectory.from_config(config).get_current_head()
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    current = context.get_current_revision()
    if current == head:
        return
    known = [step.revision for step in ScriptDirectory.from_config(config).walk_revisions()]
    if current is not None and current not in known:
        raise SetupFailed(
            f"The database {where} was written by a newer PodWarden (schema {current}, this one knows up to {head}): "
            "install that version or a later one. Nothing was changed."
        )
    if current is None:
        foreign = sorted(set(inspect(connection).get_table_names()) & set(metadata.tables))
        if foreign:
            raise SetupFailed(
                f"The database {where} holds tables that are not PodWarden's ({', '.join(foreign)}): "
                "give an empty database."
            )
    command.upgrade(config, "head")
