"""Changing the schema of a Delta table before the range that needs it: added columns and widened types.

Columns are never dropped, narrowed or renamed: old rows must stay readable. A source column whose type cannot be
widened is stored under another name (`lake/delta_columns.py`); an impossible change is an explicit error. Plain
additions use `deltalake`; widening and tables with column mapping need Spark. A schema change is a commit like any
other: it never advances a state past another run's writes (rule A3).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
from deltalake import CommitProperties, Schema
from deltalake.exceptions import CommitFailedError

from mssql_cdc.errors import FencedError, SchemaError
from mssql_cdc.lake.delta_schema import arrow_of, is_wider, needs_mapping
from mssql_cdc.lake.log import SparkStarter, TableState, backwards, facts_of, refresh
from mssql_cdc.lake.properties import MAPPING, TIMESTAMP_NTZ, WIDENING, is_mapped, is_on
from mssql_cdc.lake.spark_sql import literal, quoted, spark_identifier, sql_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Path = tuple[str, ...]
NO_COMMENTS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """The missing parts of a table's schema: new fields and wider types, by path (`("before", "name")`)."""

    added: tuple[tuple[Path, pa.DataType], ...]
    widened: tuple[tuple[Path, pa.DataType], ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.widened)


def schema_change(schema_json: str, wanted: pa.Schema) -> SchemaChange:
    """Return the schema change that the table needs for rows of `wanted`.

    Raises:
        SchemaError: a column has a type that cannot be widened to the wanted one.
    """
    found = list(_compare(pa.struct(list(arrow_of(schema_json))), pa.struct(list(wanted)), ()))
    return SchemaChange(
        tuple((path, kind) for is_new, path, kind in found if is_new),
        tuple((path, kind) for is_new, path, kind in found if not is_new),
    )


def evolve(
    state: TableState,
    wanted: pa.Schema,
    spark: SparkStarter | None = None,
    *,
    committer: Literal["deltalake", "spark"] = "deltalake",
    comments: Mapping[str, str] = NO_COMMENTS,
) -> TableState:
    """Evolve the table for rows of `wanted`; return the same state if nothing is missing.

    Args:
        state: the state that was loaded before the source was read.
        wanted: the schema of the rows to come.
        spark: starts Spark, for what `deltalake` cannot change.
        committer: the usual writer of the table; a table that Spark commits to is also changed by Spark.
        comments: the comments on top-level columns that Spark adds or widens.

    Raises:
        FencedError: another run has written to the table, or changed its schema, since `state` was loaded.
        SchemaError: the change is impossible, or needs Spark and none was given.
    """
    change = schema_change(state.schema_json, wanted)
    if not change:
        return state
    mapped = is_mapped(state.properties)
    odd = any(needs_mapping(pa.schema([pa.field(path[-1], kind)])) for path, kind in change.added)
    if committer == "deltalake" and not (mapped or odd or change.widened or state.altered_by_spark):
        _add_columns(state, change)
    elif spark is None:
        raise SchemaError(f"The schema change of {state.uri} needs Spark: {change}")
    else:
        _alter_with_spark(state, change, spark, map_names=odd and not mapped, comments=comments)
    fresh = refresh(state)
    # Delta accepts a schema change after new rows; a commit from the refreshed state would repeat them. Spark's
    # commits have their own txn, which is read after the change.
    moved = (fresh.batch, fresh.own, fresh.table_id) != (state.batch, state.own, state.table_id)
    if committer == "deltalake" and moved:
        raise _fenced(state)
    # What others have committed since the last check must still be checked; our own schema changes are harmless (A5).
    return replace(fresh, checked=state.known_version)


def _compare(found: pa.StructType, wanted: pa.StructType, path: Path) -> Iterator[tuple[bool, Path, pa.DataType]]:
    for field in wanted:
        here = (*path, field.name)
        index = found.get_field_index(field.name)
        if index < 0:
            yield True, here, field.type
            continue
        has = found.field(index).type
        if pa.types.is_struct(has) and pa.types.is_struct(field.type):
            yield from _compare(has, field.type, here)
        elif not has.equals(field.type) and not is_wider(has, field.type):
            if not is_wider(field.type, has):
                raise SchemaError(
                    f"Column {'.'.join(here)} is {has} in the Delta table and is now {field.type} at the source; "
                    "Delta cannot widen one to the other. Exclude the column, or move the table's folder away and "
                    "take a new snapshot"
                )
            yield False, here, field.type


def _add_columns(state: TableState, change: SchemaChange) -> None:
    grouped: dict[str, list[pa.Field]] = {}
    top: list[pa.Field] = []
    for path, kind in change.added:
        if len(path) == 1:
            top.append(pa.field(path[0], kind))
        else:
            grouped.setdefault(path[0], []).append(pa.field(path[1], kind))
    top += [pa.field(name, pa.struct(children)) for name, children in grouped.items()]
    properties = CommitProperties(custom_metadata={"userMetadata": json.dumps(_facts(state))})
    try:
        state.opened().alter.add_columns(Schema.from_arrow(pa.schema(top)).fields, commit_properties=properties)
    except CommitFailedError as error:
        raise _fenced(state, error) from error


def _alter_with_spark(
    state: TableState, change: SchemaChange, spark: SparkStarter, *, map_names: bool, comments: Mapping[str, str]
) -> None:
    from pyspark.errors import AnalysisException

    from mssql_cdc.lake.spark_log import conflicts_fenced, fact_confs
    from mssql_cdc.spark.session import private_session

    facts = _facts(state)
    try:
        with conflicts_fenced(state.uri), private_session(spark(), fact_confs(facts)) as session:
            _alter(session, state, change, map_names=map_names, comments=comments)
    except AnalysisException as error:
        fresh = refresh(state)
        since = takewhile(lambda entry: entry["version"] > state.delta_version, backwards(fresh))
        if any((facts_of(entry) or {}).get("mark") != facts["mark"] for entry in since):
            # The addition already exists: another run was faster.
            raise _fenced(state, error) from error
        raise SchemaError(f"{state.uri} does not accept {change}: {str(error).splitlines()[0]}") from error


def _alter(
    session: SparkSession, state: TableState, change: SchemaChange, *, map_names: bool, comments: Mapping[str, str]
) -> None:
    from mssql_cdc.spark.session import run_sql

    table = spark_identifier(state.uri)
    properties: list[str] = []
    if change.widened and not is_on(state.properties, WIDENING):
        properties.append(f"'{WIDENING}' = 'true'")
    if map_names:
        properties.append(f"'{MAPPING}' = 'name'")
    if any(kind == pa.timestamp("us") for _, kind in (*change.added, *change.widened)):
        properties.append(f"'{TIMESTAMP_NTZ}' = 'supported'")
    if properties:
        run_sql(session, f"ALTER TABLE {table} SET TBLPROPERTIES ({', '.join(properties)})")
    if change.added:
        columns = [f"{_dotted(path)} {sql_type(kind)}{_comment(path, comments)}" for path, kind in change.added]
        run_sql(session, f"ALTER TABLE {table} ADD COLUMNS ({', '.join(columns)})")
    for path, kind in change.widened:
        run_sql(session, f"ALTER TABLE {table} ALTER COLUMN {_dotted(path)} TYPE {sql_type(kind)}")
        if comment := _comment(path, comments):  # The comment names the type.
            run_sql(session, f"ALTER TABLE {table} ALTER COLUMN {_dotted(path)}{comment}")


def _comment(path: Path, comments: Mapping[str, str]) -> str:
    """The COMMENT clause of a top-level column; empty if it has no comment."""
    comment = comments.get(path[0]) if len(path) == 1 else None
    if comment is None:
        return ""
    return f" COMMENT {literal(comment)}"


def _facts(state: TableState) -> dict[str, object]:
    """Return the facts of a schema commit; `mark` distinguishes it from the same change by another run."""
    return {"v": 1, "app_id": state.app_id, "kind": "schema", "mark": uuid.uuid4().hex}


def _fenced(state: TableState, error: Exception | None = None) -> FencedError:
    reason = f" ({error})" if error is not None else ""
    return FencedError(
        f"Another run has written to {state.uri} since this run began (batch {state.batch}, Delta version "
        f"{state.delta_version}); nothing was written{reason}"
    )


def _dotted(path: Path) -> str:
    return ".".join(quoted(name) for name in path)
