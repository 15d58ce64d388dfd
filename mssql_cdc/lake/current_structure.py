"""Gives a current table the newest structure, with Spark: new columns, wider types, columns that came back.

Rare, and each a commit of its own before the rows that need it. `lake/current_table.py` creates tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.current_table import column_comments
from mssql_cdc.lake.evolution import SchemaChange, evolve, schema_change
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.log import load_state
from mssql_cdc.lake.properties import STRUCTURE
from mssql_cdc.lake.spark_log import conflicts_fenced
from mssql_cdc.lake.spark_sql import literal, quoted, spark_identifier
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.lake.table_log import TableLog
from mssql_cdc.schema.arrow import current_names, current_schema, former_names
from mssql_cdc.schema.lives import lives
from mssql_cdc.schema.tables import TableSchema
from mssql_cdc.spark.session import private_session, run_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class StructureChange:
    """What the newest structure asks of a table.

    `unknown` are columns that the rows do not know (a value that a former Delta column has is no value of the present
    type), `returned` those of them that the table has from before.
    """

    change: SchemaChange
    unknown: tuple[str, ...]
    returned: tuple[str, ...]
    version: int

    def __bool__(self) -> bool:
        return bool(self.change or self.unknown)


def structure_change(log: TableLog, versions: Sequence[TableSchema]) -> StructureChange:
    """Compare a table with the newest of its versions.

    Raises:
        SchemaError: a column has a type that cannot be widened to the wanted one.
    """
    newest = versions[-1]
    change = schema_change(log.schema_json, current_schema(newest))
    seen = int(log.properties.get(STRUCTURE, newest.version))
    names = current_names(newest)
    added = {path[0] for path, _ in change.added}
    returned = tuple(name for name in _returned(versions, seen) if names[name] not in added)
    unknown = tuple(name for name, stored in names.items() if stored in added or name in returned)
    return StructureChange(change, unknown, tuple(names[name] for name in returned), newest.version)


def change_structure(
    session: SparkSession, home: TableHome, newest: TableSchema, wanted: StructureChange, storage: Storage = LOCAL
) -> None:
    """Change the table; every step may be repeated.

    Args:
        session: any session of the application.
        home: the table's folder and owner.
        newest: the structure to reach.
        wanted: what is missing.
        storage: how to reach the folder.

    Raises:
        FencedError: another run has changed the table at the same time.
        SchemaError: the change is impossible.
    """
    # Rows that exist already do not know these columns. Marked first: a crash after it does no harm.
    if wanted.unknown:
        _mark_unknown(session, home.current, wanted.unknown, emptied=wanted.returned)
    table = spark_identifier(home.current)
    with conflicts_fenced(home.current), private_session(session) as private:
        run_sql(private, f"ALTER TABLE {table} SET TBLPROPERTIES ('{STRUCTURE}' = '{newest.version}')")
    state = load_state(home.current, owner=f"{home.app_id}:current", storage=storage)
    if state is None:
        raise StorageError(f"The Delta table {home.current} is gone")
    comments = column_comments(newest)
    evolve(state, current_schema(newest), lambda: session, committer="spark", comments=comments)
    left = [target for name in wanted.unknown for target in former_names(newest).get(name, {}).values()]
    for target in left:  # They say where their values continue.
        with conflicts_fenced(home.current), private_session(session) as private:
            comment = literal(comments[target])
            run_sql(private, f"ALTER TABLE {table} ALTER COLUMN {quoted(target)} COMMENT {comment}")


def _returned(versions: Sequence[TableSchema], seen: int) -> list[str]:
    """The newest version's columns that were gone for a while since the table had structure `seen`."""
    newest, between = versions[-1], [schema.version for schema in versions[:-1] if schema.version >= seen]
    found: list[str] = []
    for column in newest.value_columns if between else ():
        own = lives(versions, column.stored_name)
        if column.name not in newest.key_columns and any(own.get(one) != own[newest.version] for one in between):
            found.append(column.name)
    return found


def _mark_unknown(session: SparkSession, uri: str, names: Sequence[str], *, emptied: Sequence[str]) -> None:
    """Say of every row that it does not know these columns; what the `emptied` ones hold is out of date."""
    listed = "array(" + ", ".join("'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'" for name in names) + ")"
    known = "coalesce(_unavailable, CAST(array() AS ARRAY<STRING>))"
    changes = [f"_unavailable = array_union({known}, {listed})", *(f"{quoted(name)} = NULL" for name in emptied)]
    if emptied:
        left = f"map_filter(_exact, (name, text) -> NOT array_contains({listed}, name))"
        changes.append(f"_exact = IF(cardinality({left}) = 0, NULL, {left})")
    with conflicts_fenced(uri), private_session(session) as private:
        run_sql(
            private,
            f"UPDATE {spark_identifier(uri)} SET {', '.join(changes)} WHERE size(array_except({listed}, {known})) > 0",
        )
