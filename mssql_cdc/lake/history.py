"""`_schema_history`: how to read a row of version `_schema` of any table, now and years later.

Versions are numbered per table, never restart, and are never changed once written. They are a sequence: a structure
that comes back is a new version, so that rows are always written under the newest one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from mssql_cdc.errors import SchemaError
from mssql_cdc.lake.delta_columns import same_delta_columns, with_delta_columns
from mssql_cdc.lake.known_states import KnownTables
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.small_tables import SmallTable, retry_overtaken, small_table
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.schema.tables import TableId, TableSchema


@dataclass(frozen=True, slots=True)
class SchemaHistory:
    """All versions of all tables of one database, as loaded, by table name.

    `former` has the versions of tables whose names others have taken, by the source tables' identities; `present` says
    which table has which name now, and `met` which identities the lake has met in this epoch.
    """

    versions: Mapping[str, tuple[TableSchema, ...]]
    former: Mapping[int, tuple[TableSchema, ...]] = field(default_factory=dict[int, tuple[TableSchema, ...]])
    present: Mapping[TableId, int] = field(default_factory=dict[TableId, int])
    met: frozenset[int] = frozenset()

    def identified(self, present: Mapping[TableId, int], met: frozenset[int]) -> SchemaHistory:
        """The history under the names that tables have now: a table is identified by its object id (rule B15).

        A table with another identity under the same name is the old one re-created, unless the old one still exists.
        After a restore, the source gives the identity of a table that the backup did not have to another one. So only
        identities that were met in this epoch show that a table was renamed, and not while the table that had such an
        identity is back as what it was before.

        Args:
            present: The object ids of the captured tables.
            met: The object ids that the lake has met in this epoch (`Offsets.identities`).
        """
        known = {
            found[-1].object_id: found
            for found in (*self.former.values(), *self.versions.values())
            if found[-1].object_id in met
        }
        named: dict[str, tuple[TableSchema, ...]] = {}
        for table, number in present.items():
            own, found = self.versions.get(table.text), known.get(number)
            if own and own[-1].object_id == number:
                named[table.text] = own
            elif found and not _is_back(found, present):
                named[table.text] = found
        here = set(present.values())
        # The names of new tables whose former owners still exist, under other names.
        taken = {
            table.text
            for table, number in present.items()
            if number not in known
            and (there := self.versions.get(table.text)) is not None
            and there[-1].object_id in known
            and there[-1].object_id in here
            and not _is_back(there, present)
        }
        rest = {
            name: found
            for name, found in self.versions.items()
            if name not in named and name not in taken and not any(found is one for one in named.values())
        }
        versions = rest | named
        left = {found[-1].object_id for found in versions.values()}
        former = {o: found for o, found in known.items() if o not in left}
        return SchemaHistory(versions, former, present, met)

    def newest(self, table_id: TableId) -> TableSchema | None:
        """The newest version of a table."""
        found = self.versions.get(table_id.text)
        return found[-1] if found else None

    def is_filled(self, schema: TableSchema, filled: int | None) -> bool:
        """Whether a snapshot read under version `filled` and all rows since have the `_key` of this structure."""
        newest = self.newest(schema.table_id)
        if newest is None or (newest is not schema and not newest.has_key_of(schema)):
            return False
        return filled is not None and filled >= newest.key_since

    def extended(self, schemas: Sequence[TableSchema]) -> SchemaHistory:
        """The history with these further versions."""
        versions = dict(self.versions)
        for schema in schemas:
            versions[schema.table_id.text] = (*versions.get(schema.table_id.text, ()), schema)
        return replace(self, versions=versions)

    def version(self, table_id: TableId, number: int) -> TableSchema:
        """The version that a row's `_schema` refers to."""
        for schema in self.versions.get(table_id.text, ()):
            if schema.version == number:
                return schema
        raise SchemaError(f"_schema_history has no version {number} of {table_id}")

    def holds(self, table_id: TableId, number: int) -> bool:
        """Whether the table has a version of this number."""
        return any(schema.version == number for schema in self.versions.get(table_id.text, ()))

    def match(self, schema: TableSchema) -> TableSchema | None:
        """The newest version, if it has this name, structure, capture instance and incarnation; None otherwise."""
        known = self.newest(schema.table_id)
        if known is None or known.capture_object_id != schema.capture_object_id or known.table_id != schema.table_id:
            return None
        same = known.incarnation == schema.incarnation and known.same_structure(schema) and known.has_key_of(schema)
        return known if same else None


def _is_back(found: Sequence[TableSchema], present: Mapping[TableId, int]) -> bool:
    """Whether the name of a table's newest version belongs to what the table was before that: it was restored."""
    number = present.get(found[-1].table_id)
    return number != found[-1].object_id and any(one.object_id == number for one in found[:-1])


def load_history(layout: Layout, storage: Storage = LOCAL, *, known: KnownTables | None = None) -> SchemaHistory:
    """Load every version of the database.

    Args:
        layout: Where the database's tables are.
        storage: How to reach the tables.
        known: The history as last seen.
    """
    table = small_table(layout, "schema_history", storage)

    def load() -> SchemaHistory:
        return _history(table)

    return load() if known is None else known.get(table.uri, load, storage)


@retry_overtaken
def record_versions(
    layout: Layout,
    found: Sequence[TableSchema],
    *,
    known: SchemaHistory,
    at: datetime,
    debezium: Mapping[str, str] | None = None,
    storage: Storage = LOCAL,
) -> tuple[list[TableSchema], SchemaHistory]:
    """Return the same schemas with their versions, and the history including them; new structures are written first.

    Args:
        layout: where the database's tables are.
        found: the structures that the source shows now.
        known: the history as loaded; if it contains all of them, nothing is read or written.
        at: when they were found.
        debezium: Debezium's text for a table (by `TableId.text`), stored only here.
        storage: how to reach the tables.

    Raises:
        FencedError: other runs kept writing versions.
    """
    result = [_versioned(known, schema) for schema in found]
    if not any(is_new for _, is_new in result):
        return [schema for schema, _ in result], known
    table = small_table(layout, "schema_history", storage)
    state = table.state()
    history = _history(table).identified(known.present, known.met)
    result = [_versioned(history, schema) for schema in found]
    new = [schema for schema, is_new in result if is_new]
    if new:
        table.append(state, [_row(schema, at, debezium or {}) for schema in new], {"kind": "schema_history"})
    return [schema for schema, _ in result], history.extended(new)


@retry_overtaken
def restore_versions(layout: Layout, found: Sequence[TableSchema], *, at: datetime, storage: Storage = LOCAL) -> None:
    """Write lost structures again, under their own version numbers.

    Args:
        layout: Where the database's tables are.
        found: The structures.
        at: When they were found.
        storage: How to reach the tables.

    Raises:
        FencedError: Other runs kept writing versions.
    """
    table = small_table(layout, "schema_history", storage)
    state, history = table.state(), _history(table)
    lost = [one for one in found if not history.holds(one.table_id, one.version)]
    if lost:
        table.append(state, [_row(one, at, {}) for one in lost], {"kind": "schema_history"})


def _versioned(history: SchemaHistory, schema: TableSchema) -> tuple[TableSchema, bool]:
    known = history.match(schema)
    if known is not None:
        same = same_delta_columns(schema, known)
        return replace(same, version=known.version, key_since=known.key_since), False
    newest = history.newest(schema.table_id)
    number = newest.version + 1 if newest else 1
    kept = newest is not None and newest.has_key_of(schema)
    stored = with_delta_columns(schema, history.versions.get(schema.table_id.text, ()))
    is_same = newest is not None and kept and newest.object_id == schema.object_id
    if newest is not None and is_same and newest.key_columns and not newest.shown_key:
        # A version from before that fact existed: consumers know the rows by their own key.
        stored = replace(stored, shown_key=())
    return replace(stored, version=number, key_since=newest.key_since if newest and kept else number), True


def _history(table: SmallTable) -> SchemaHistory:
    """The versions in order. A row under a name other than its table's last one shows that the table was renamed."""
    versions: dict[str, tuple[TableSchema, ...]] = {}
    former: dict[int, tuple[TableSchema, ...]] = {}
    for row in table.rows():
        schema, name = _schema(row), row["table_id"]
        there, number = versions.get(name, ()), schema.object_id
        if there and there[-1].object_id == number:
            versions[name] = (*there, schema)
            continue
        moved = next((n for n, own in versions.items() if number is not None and own[-1].object_id == number), None)
        if moved is not None and _continues(schema, versions[moved], there):
            earlier = versions.pop(moved)
        elif number in former and former[number][-1].version < schema.version:
            earlier = former.pop(number)
        else:
            earlier = ()
        if there and (earlier or schema.version == 1):
            former[there[-1].object_id or 0] = there
        elif there:
            earlier = there  # Dropped and re-created.
        versions[name] = (*earlier, schema)
    return SchemaHistory(versions, former)


def _continues(schema: TableSchema, other: Sequence[TableSchema], own: Sequence[TableSchema]) -> bool:
    """Whether a version continues the table under another name that had its identity, and not the one of its own name.

    A re-created table has the next version and incarnation under its own name. If those of the other name fit, too, a
    renamed table still has a capture instance that it had before. After a restore, the source may give the identity to
    a new table, whose versions start over.
    """
    if schema.version <= other[-1].version:
        return False
    if not own or (schema.version, schema.incarnation) != (own[-1].version + 1, own[-1].incarnation + 1):
        return True
    fits = (schema.version, schema.incarnation) == (other[-1].version + 1, other[-1].incarnation)
    return fits and any(one.instance == schema.instance for one in other)


def _schema(row: Mapping[str, Any]) -> TableSchema:
    named = TableSchema.from_json(row["columns"])
    return replace(named, version=row["schema"])


def _row(schema: TableSchema, at: datetime, debezium: Mapping[str, str]) -> dict[str, Any]:
    return {
        "table_id": schema.table_id.text,
        "schema": schema.version,
        "incarnation": schema.incarnation,
        "from_lsn": schema.from_lsn,
        "object_id": schema.object_id,
        "capture_object_id": schema.capture_object_id,
        "instance": schema.instance,
        "columns": schema.to_json(),
        "debezium": debezium.get(schema.table_id.text),
        "at": at,
    }
