"""Rebuilds a lost schema history at a start, without reading a row (SNP-06): `snapshot.mode=recovery` and the like.

The structure that the source has now takes the number of the lost one. That is right only if the table was not altered
since its last rows were written, which is checked as far as the source and the lake can tell. Structures under which
older rows were written are not rebuilt: reading such rows reports that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import load_tables
from mssql_cdc.capture.snapshot_extensions import policy
from mssql_cdc.errors import ConfigurationError, SchemaError
from mssql_cdc.lake.delta_schema import arrow_of
from mssql_cdc.lake.history import SchemaHistory, restore_versions
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import Entry
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableSchema
from mssql_cdc.schema.arrow import stored_struct
from mssql_cdc.source.protocol import SourceSession
from mssql_cdc.source.values import CapturedTable

_WRITTEN = ("streaming", "snapshot", "failed")


def recover_history(database: Database) -> list[str]:
    """Rebuild what the schema history lacks, if `snapshot.mode` calls for that; return the names of the tables.

    Args:
        database: The database.

    Raises:
        SchemaError: A table was altered since its last rows were written.
    """
    offsets = database.offsets()
    lost = _lost(offsets, database.history())
    if not lost or not policy(database, offsets).on_schema_error:
        return []  # `load_tables` reports what is lost.
    with database.session() as session:
        tables = session.tables()
        found = {name: _captured(name, entry, tables) for name, entry in lost.items()}
        _require_unaltered(session, lost)
    schemas = {name: _structure(name, entry, found[name]) for name, entry in lost.items()}
    rebuilt = SchemaHistory({}).extended(list(schemas.values()))
    for table, member in load_tables(database, found.values(), offsets, rebuilt).items():
        if member.state is not None:
            log = arrow_of(member.state.schema_json)
            _require_same(table.text, rebuilt.versions[table.text][-1], log)
    restore_versions(database.layout, list(schemas.values()), at=datetime.now(UTC), storage=database.storage)
    names = sorted(lost)
    database.log(f"the schema history of {', '.join(names)} was rebuilt from the source")
    return names


def require_recoverable(database: Database) -> None:
    """Raise ConfigurationError if `snapshot.mode=recovery` has nothing to continue from.

    Args:
        database: The database.
    """
    recovers = database.connector.snapshot.mode == "recovery"
    if recovers and not database.offsets().entries:
        raise ConfigurationError(
            f"snapshot.mode=recovery: the lake has no position of database {database.catalog!r} that its history could "
            "be rebuilt for; use another mode, such as initial or no_data"
        )


def _lost(offsets: Offsets, history: SchemaHistory) -> dict[str, Entry]:
    """The tables whose newest structure is not in the history, by name, with their newest entries."""
    versions = [one for found in (*history.versions.values(), *history.former.values()) for one in found]
    known = {(one.object_id, one.version) for one in versions}
    return {
        name: entry
        for name, entry in offsets.entries.items()
        if entry.status in _WRITTEN and entry.schema is not None and (entry.object_id, entry.schema) not in known
    }


def _captured(name: str, entry: Entry, tables: Sequence[CapturedTable]) -> CapturedTable:
    for table in tables:
        if table.object_id == entry.object_id:
            return table
    raise SchemaError(f"The schema history of {name} is lost, and the source no longer shows the table")


def _require_unaltered(session: SourceSession, lost: Mapping[str, Entry]) -> None:
    positions = {one.object_id: Lsn.parse(one.to) for one in lost.values() if one.object_id is not None and one.to}
    names = {entry.object_id: name for name, entry in lost.items()}
    for table, statement in session.altered(positions).items():
        raise _refused(names[table], f"it was altered since its last rows were written: {statement}")


def _structure(name: str, entry: Entry, table: CapturedTable) -> TableSchema:
    """The structure of the instance that was read last, with the number that the lake's rows have."""
    for instance in table.instances:
        if instance.identity == entry.instance:
            return replace(
                instance.schema,
                version=entry.schema or 1,
                incarnation=entry.incarnation,
                key_since=entry.filled or entry.schema or 1,
                from_lsn=instance.start_lsn.text,
            )
    raise _refused(name, "the capture instance that was read last no longer exists")


def _require_same(name: str, schema: TableSchema, log: pa.Schema) -> None:
    """Raise SchemaError unless the change log has these columns with these types."""
    after = log.field("after").type
    known = {after.field(n).name: after.field(n).type for n in range(after.num_fields)}
    names = {column.name.lower() for column in schema.columns}
    for found in known:
        # Only the history, which is lost, says which of a column's Delta columns its rows are in.
        base, _, number = found.rpartition("_")
        if number.isdigit() and base.lower() in names and found.lower() not in names:
            raise _refused(name, f"its column {base} may continue in the Delta column {found}")
    for field in stored_struct(schema.value_columns):
        if known.get(field.name) != field.type:
            was = known.get(field.name, "no such column")
            raise _refused(name, f"its column {field.name} is {field.type} at the source, and {was} in the lake")


def _refused(name: str, reason: str) -> SchemaError:
    return SchemaError(
        f"The schema history of {name} cannot be rebuilt: {reason}. Restore the table _schema_history, or remove what "
        "the lake has of the database and begin again with a snapshot"
    )
