"""Gives a current table the newest structure: new columns, wider types, columns that came back.

The next commit changes the metadata (`restructured`), and its task rewrites all rows; what only Spark can write is
changed by Spark's own commits before it (`change_structure`). `lake/current_table.py` creates tables.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import Schema

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.apply_task import LARGE_ROWS
from mssql_cdc.lake.current_table import column_comments, mapped_column, with_features
from mssql_cdc.lake.delta_schema import needs_mapping
from mssql_cdc.lake.evolution import SchemaChange, evolve, schema_change
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.log import load_state
from mssql_cdc.lake.properties import MAPPED_IDS, STATS, STRUCTURE, TYPE_CHANGES, is_mapped
from mssql_cdc.lake.rounded_floats import rounded_floats
from mssql_cdc.lake.spark_log import conflicts_fenced
from mssql_cdc.lake.spark_sql import literal, quoted, spark_identifier
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.lake.table_layout import unwritable_layout
from mssql_cdc.lake.table_log import TableLog, load_log
from mssql_cdc.lake.unknown_columns import UnknownColumns
from mssql_cdc.lake.wide_decimals import widened_stats, without_stats
from mssql_cdc.schema.arrow import current_names, current_schema, former_names
from mssql_cdc.schema.lives import lives
from mssql_cdc.schema.tables import TableSchema
from mssql_cdc.spark.session import private_session, run_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class StructureChange:
    """What the newest structure requires of a table.

    `unknown` are columns that the rows do not know (a value in a former Delta column is not a value of the present
    type); those that the table already had are emptied.
    """

    change: SchemaChange
    unknown: UnknownColumns

    def __bool__(self) -> bool:
        return bool(self.change or self.unknown.names)


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
    return StructureChange(change, UnknownColumns(unknown, tuple(names[name] for name in returned)))


def only_spark(log: TableLog, wanted: StructureChange) -> str | None:
    """Why only Spark can change the structure of the table; None: its rows are rewritten instead.

    Args:
        log: The table.
        wanted: What is missing.
    """
    because = log.writable() or unwritable_layout(log)
    if because:
        return because
    added = pa.schema([pa.field(path[-1], kind) for path, kind in wanted.change.added])
    if not is_mapped(log.properties) and needs_mapping(added):
        return "the name of a new column needs column mapping"
    in_place = wanted.change.widened and not wanted.unknown.names and not rounded_floats(log, wanted.change)
    if in_place and log.rows > LARGE_ROWS:
        return "a column of a large table gets a wider type, which Spark does without writing its rows"
    return None


def restructured(log: TableLog, newest: TableSchema, wanted: StructureChange) -> tuple[dict[str, Any], dict[str, Any]]:
    """The protocol and the metadata of the table with the newest structure, for a commit that replaces its files.

    Since no file with the narrower type is left, a wider type needs no type widening, which few readers support.

    Args:
        log: The table.
        newest: The structure to reach.
        wanted: What is missing.
    """
    found, comments = json.loads(log.schema_json), column_comments(newest)
    fields = {field["name"]: field for field in found["fields"]}
    configuration = {**log.properties, STRUCTURE: str(newest.version)}
    number = int(configuration.get(MAPPED_IDS, 0))
    for (name, *_), kind in wanted.change.added:
        number += 1
        fields[name] = _delta_field(name, kind)
        if is_mapped(log.properties):
            fields[name]["metadata"] = mapped_column(number)
            configuration[MAPPED_IDS] = str(number)
        fields[name]["metadata"]["comment"] = comments[name]
    for (name, *_), kind in wanted.change.widened:
        kept = {key: value for key, value in fields[name]["metadata"].items() if key != TYPE_CHANGES}
        fields[name] = {**fields[name], "type": _delta_field(name, kind)["type"], "metadata": kept}
        fields[name]["metadata"]["comment"] = comments[name]
    for name in _left(newest, wanted):
        fields[name]["metadata"]["comment"] = comments[name]
    text = json.dumps({**found, "fields": list(fields.values())}, ensure_ascii=False)
    kinds = [kind for _, kind in (*wanted.change.added, *wanted.change.widened)]
    features = ["timestampNtz"] if pa.timestamp("us") in kinds else []
    metadata = {**log.metadata, "schemaString": text, "configuration": configuration}
    return with_features(log.protocol, features), metadata


def change_structure(
    session: SparkSession, home: TableHome, newest: TableSchema, wanted: StructureChange, storage: Storage = LOCAL
) -> None:
    """Change the table with Spark; every step may be repeated.

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
    # Existing rows do not know these columns. They are marked first: a crash afterwards does no harm.
    if wanted.unknown.names:
        _mark_unknown(session, home.current, wanted.unknown)
    table, properties = spark_identifier(home.current), {STRUCTURE: str(newest.version)}
    log, rounded = load_log(home.current, storage), list[str]()
    if log is not None and not log.unreadable:
        rounded = rounded_floats(log, wanted.change)
        if unlisted := [*widened_stats(log, current_schema(newest)), *rounded]:
            properties[STATS] = without_stats(log.metadata, unlisted)["configuration"][STATS]
    texts = ", ".join(f"'{name}' = {literal(value)}" for name, value in properties.items())
    with conflicts_fenced(home.current), private_session(session) as private:
        run_sql(private, f"ALTER TABLE {table} SET TBLPROPERTIES ({texts})")
        if rounded:  # All files are rewritten, without bounds for these columns.
            same = ", ".join(f"{quoted(name)} = {quoted(name)}" for name in rounded)
            run_sql(private, f"UPDATE {table} SET {same}")
    state = load_state(home.current, owner=f"{home.app_id}:current", storage=storage)
    if state is None:
        raise StorageError(f"The Delta table {home.current} is gone")
    comments = column_comments(newest)
    evolve(state, current_schema(newest), lambda: session, committer="spark", comments=comments)
    for target in _left(newest, wanted):
        with conflicts_fenced(home.current), private_session(session) as private:
            comment = literal(comments[target])
            run_sql(private, f"ALTER TABLE {table} ALTER COLUMN {quoted(target)} COMMENT {comment}")


def _left(newest: TableSchema, wanted: StructureChange) -> list[str]:
    """The former Delta columns of the unknown columns; their comments say where the values continue."""
    former = former_names(newest)
    return [target for name in wanted.unknown.names for target in former.get(name, {}).values()]


def _delta_field(name: str, kind: pa.DataType) -> dict[str, Any]:
    (field,) = json.loads(Schema.from_arrow(pa.schema([pa.field(name, kind)])).to_json())["fields"]
    return field


def _returned(versions: Sequence[TableSchema], seen: int) -> list[str]:
    """The newest version's columns that have been gone for a while since the table had structure `seen`."""
    newest, between = versions[-1], [schema.version for schema in versions[:-1] if schema.version >= seen]
    found: list[str] = []
    for column in newest.value_columns if between else ():
        own = lives(versions, column.stored_name)
        if column.name not in newest.key_columns and any(own.get(one) != own[newest.version] for one in between):
            found.append(column.name)
    return found


def _mark_unknown(session: SparkSession, uri: str, unknown: UnknownColumns) -> None:
    """Mark these columns as unknown in every row."""
    names, emptied = unknown.names, unknown.emptied
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
