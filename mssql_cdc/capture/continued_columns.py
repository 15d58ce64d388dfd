"""Reports that a source column continues in another Delta column: Delta cannot widen its former one to the new type."""

from __future__ import annotations

from collections.abc import Iterable

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.notifications import Notifier
from mssql_cdc.lake.delta_columns import CONTINUED, DELTA_COLUMN, continued
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.schema import TableSchema


def tell_continued_columns(
    database: Database, found: Iterable[TableSchema], *, before: SchemaHistory, after: SchemaHistory
) -> None:
    """Log and notify each column that newly recorded versions continue in another Delta column.

    Args:
        database: The database.
        found: The structures of tables, with their versions.
        before: The history without the new versions.
        after: The history with them.
    """
    for schema in found:
        versions = after.versions.get(schema.table_id.text, ())
        if before.holds(schema.table_id, schema.version) or len(versions) < 2:
            continue
        for one in continued(schema, versions[:-1]):
            column, former = one.column, one.former
            notifier = Notifier(database, None, aggregate=DELTA_COLUMN)
            notifier.add(
                CONTINUED,
                table=schema.table_id.text,
                column=column.name,
                former_type=former.type.declaration,
                type=column.type.declaration,
                former_delta_column=former.name,
                delta_column=column.stored_name,
                schema_version=str(schema.version),
            )
            notifier.flush()
            database.log(
                f"{schema.table_id}: column {column.name} is {column.type.declaration} now, which the Delta column "
                f"{former.name} ({former.type.declaration}) cannot be widened to. It continues in the Delta column "
                f"{column.stored_name}; rows of before keep their values in {former.name}"
            )
