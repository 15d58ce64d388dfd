"""Reads the catalog of one database: capture instances with their columns and keys.

A few short statements query the entire database; Python combines their results. The rules about keys (B12) and
questionable columns (E27) are pure functions in this module; `plan/` decides which instance serves a range.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from mssql_cdc.config import Filters
from mssql_cdc.errors import ConfigurationError, SchemaError, SourceError, SourceUnavailableError
from mssql_cdc.lsn import ZERO_LSN, Lsn
from mssql_cdc.schema import TYPES, Column, Kind, SqlServerType, TableId, TableSchema
from mssql_cdc.source.sqlserver import catalog_statements as statements
from mssql_cdc.source.sqlserver.concealed import concealments
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.keys import doubtful_columns, shown_key, usable_keys
from mssql_cdc.source.sqlserver.log_end import SeenLog, log_end, needed_grant
from mssql_cdc.source.sqlserver.positions import minima, starts
from mssql_cdc.source.sqlserver.sql import changes_function, text
from mssql_cdc.source.values import CapturedTable, CaptureInstance, Concealment

_COMMAND_ID = "__$command_id"
_KEPT_SECONDS = 60.0
_ATTEMPTS = 5
_NOTHING = Concealment()
_INSTALLED = range(1, 5)
"""The values of EngineEdition that are not Azure services."""
_SQL_SERVER_2016 = 13


@dataclass(frozen=True, slots=True)
class Database:
    """A database under CDC; `name` is in the server's case."""

    name: str


def database(control: Control, name: str, *, hint: str = "", seen: SeenLog | None = None) -> Database:
    """Return the database of this name, in its real case, if everything that capture needs is there.

    Args:
        control: A connection to the server.
        name: The name as it is configured.
        hint: What else to say if CDC is not enabled.
        seen: What the process has seen of its log: an end that was shown is not queried again.

    Raises:
        ConfigurationError: there is no such database, CDC is not enabled in it, the server is too old, or the login
            may not see its log's end and scans.
    """
    row = control.row(statements.DATABASE, name, doing=f"looking for database {name!r}")
    if row is None:
        raise ConfigurationError(f"The server has no database {name!r}; check database.names")
    require_version(row.edition, row.major)
    if not row.is_cdc_enabled:
        raise ConfigurationError(
            f"CDC is not enabled in database {row.name!r}: run EXEC sys.sp_cdc_enable_db in it, and "
            f"sys.sp_cdc_enable_table for each table{hint}"
        )
    _require_state(control, row.name, seen or SeenLog())
    return Database(row.name)


def require_version(edition: int, major: int | None) -> None:
    """Reject a server without masks and row-level security in its catalog: each read queries them.

    Args:
        edition: The server's EngineEdition; Azure's services, which are always up to date, report version 12.
        major: Its major version.

    Raises:
        ConfigurationError: It is older than SQL Server 2016.
    """
    if edition in _INSTALLED and major is not None and major < _SQL_SERVER_2016:
        raise ConfigurationError(
            f"The server has version {major} of SQL Server; expected {_SQL_SERVER_2016} (SQL Server 2016) or newer"
        )


def _require_state(control: Control, name: str, seen: SeenLog) -> None:
    try:
        control.rows(statements.LOG_SCANS, doing="looking at the log scans")
        if not seen.shown:
            log_end(control)
            seen.shown = True
    except ConfigurationError as error:
        raise ConfigurationError(
            f"The login lacks permission to see where the log of database {name!r} ends and how far capture has read "
            f"it. Run {needed_grant(control)}"
        ) from error


@dataclass(slots=True)
class KnownCatalog:
    """The captured tables as last read, for as long as the capture instances and the tables stay the same.

    Reading the columns of 300 tables takes seconds, and they seldom change. Each ALTER of a table changes its
    `modify_date`. What neither this nor the indexes show, such as permissions on columns, is noticed after
    `_KEPT_SECONDS`. With `uncaptured`, the tables without CDC are included (SNP-03).
    """

    uncaptured: bool = False
    _seen: Sequence[tuple[Any, ...]] = ()
    _tables: Sequence[CapturedTable] = ()
    _problems: Mapping[TableId, str] = field(default_factory=dict[TableId, str])
    _minima: Mapping[str, Lsn | None] | None = None
    _until: float = 0.0

    def tables(self, control: Control, filters: Filters, problems: dict[TableId, str]) -> list[CapturedTable]:
        """`captured_tables`, read again only if something has changed.

        Args:
            control: A connection to the database.
            filters: Which tables and columns are wanted.
            problems: Receives the reason for each table that cannot be captured.
        """
        named = _tables(uncaptured=self.uncaptured)
        indexes = control.rows(statements.INDEX_STATES.format(tables=named), doing="reading states of unique indexes")
        instances = _capture_instances(control, uncaptured=self.uncaptured)
        seen = [tuple(row) for row in (*instances, *indexes)]
        if seen != self._seen or time.monotonic() > self._until:
            found: dict[TableId, str] = {}
            self._until, self._minima = 0.0, None  # In case reading fails.
            self._tables = captured_tables(
                control, filters, problems=found, instances=instances, uncaptured=self.uncaptured
            )
            self._seen, self._problems = seen, found
            self._until = time.monotonic() + _KEPT_SECONDS
        problems |= self._problems
        return list(self._tables)

    def minima(self, control: Control) -> Mapping[str, Lsn | None]:
        """The instances' minimum LSN as of `tables`.

        It is the `start_lsn` of `cdc.change_tables`, which `tables` compares, as soon as capture has reached it; until
        then, and where permissions are missing, there is none, and it is queried again.
        """
        found = self._minima
        if found is None:
            found = minima(control)
            if all(found.values()):
                self._minima = found
        return {**found, **self._uncaptured}

    @property
    def known_minima(self) -> Mapping[str, Lsn | None]:
        """The minima that need not be queried while they equal the rows' `start_lsn`; none before all are there."""
        return self._minima or {}

    def minima_now(self, control: Control) -> Mapping[str, Lsn | None]:
        """The instances' current minimum LSN; queried only if a `start_lsn` is not the one of `minima`.

        Reading the rows of 300 instances takes 3 ms; calling the function for each takes 66 ms.
        """
        known = self._minima
        found = known if known is not None and known == starts(control) else minima(control)
        return {**found, **self._uncaptured}

    @property
    def _uncaptured(self) -> dict[str, Lsn | None]:
        """The starts of the instances that stand for tables that are not captured."""
        instances = (instance for table in self._tables for instance in table.instances)
        return {instance.name: instance.start_lsn for instance in instances if not instance.streams}


def _capture_instances(control: Control, *, uncaptured: bool = False) -> list[Any]:
    found = control.rows(statements.CAPTURE_INSTANCES, doing="reading capture instances")
    if uncaptured:
        found = [*found, *control.rows(statements.UNCAPTURED, doing="looking for tables that are not captured")]
    return found


def _tables(*, uncaptured: bool) -> str:
    return statements.ALL_TABLES if uncaptured else statements.CAPTURED_TABLES


def captured_tables(
    control: Control,
    filters: Filters | None = None,
    *,
    problems: dict[TableId, str] | None = None,
    instances: Sequence[Any] | None = None,
    uncaptured: bool = False,
) -> list[CapturedTable]:
    """The tables under CDC that the filters let through, in the order of snapshots (SNP-26).

    Args:
        control: a connection to the database.
        filters: which tables and columns are wanted; None: all.
        problems: receives the tables that cannot be captured as they are, with the reason.
        instances: the capture instances, if they have just been read.
        uncaptured: whether tables that are not captured are included (SNP-03).

    Raises:
        SchemaError: there is such a table, and no `problems` were given.
        SourceUnavailableError: the capture instances did not stay the same for long enough.
    """
    catalog = control.value("SELECT DB_NAME()", doing="asking for the database's name")
    concealed = concealments(control)
    tables: dict[TableId, list[CaptureInstance]] = defaultdict(list)
    before = _capture_instances(control, uncaptured=uncaptured) if instances is None else instances
    for row, facts in _consistent(control, before, uncaptured=uncaptured):
        table_id = TableId(catalog, row.source_schema, row.source_table)
        if filters is not None and not filters.tables.matches(catalog, row.source_schema, row.source_table):
            continue
        try:
            tables[table_id].append(_instance(row, table_id, facts, filters))
        except SchemaError as error:
            if problems is None:
                raise
            problems[table_id] = str(error)
    for table_id in problems or ():
        tables.pop(table_id, None)
    ids = {t: own[0].source_object_id for t, own in tables.items()}
    found = [CapturedTable(t, ids[t], by_age(own), concealed.get(ids[t], _NOTHING)) for t, own in tables.items()]
    if filters is None:
        return sorted(found, key=lambda table: table.table_id)
    return sorted(found, key=lambda t: filters.tables.order(catalog, t.table_id.schema, t.table_id.name))


def _consistent(control: Control, before: Sequence[Any], *, uncaptured: bool) -> list[tuple[Any, _Facts]]:
    """The capture instances, each with its facts.

    The facts come from several statements, which do not see one moment: they count if the instances and their tables
    are the same before and after. An instance without captured columns does not count yet.
    """
    for _ in range(_ATTEMPTS):
        facts = _facts(control, uncaptured=uncaptured)
        after = _capture_instances(control, uncaptured=uncaptured)
        if [tuple(row) for row in before] == [tuple(row) for row in after]:
            return [(row, found) for row in after if (found := facts(row)).captured]
        before = after
    raise SourceUnavailableError(
        f"The capture instances, or their tables, changed while they were read, {_ATTEMPTS} times in a row; they are "
        "read again"
    )


def _facts(control: Control, *, uncaptured: bool) -> Callable[[Any], _Facts]:
    def of_tables(statement: str, doing: str) -> Mapping[int, list[Any]]:
        return _grouped(control.rows(statement.format(tables=_tables(uncaptured=uncaptured)), doing=doing))

    collation = control.value(statements.DATABASE_COLLATION, doing="asking for the database's collation")
    change_columns = _grouped(control.rows(statements.CHANGE_TABLE_COLUMNS, doing="reading change tables' columns"))
    source_columns = of_tables(statements.SOURCE_COLUMNS, "reading the source tables' columns")
    captured = _grouped(control.rows(statements.CAPTURED_COLUMNS, doing="reading captured columns"))
    indexes = of_tables(statements.UNIQUE_INDEXES, "reading unique indexes")
    switched = {row.object_id for row in control.rows(statements.SWITCHED, doing="looking for partitioned tables")}
    descriptions = _descriptions(control, uncaptured=uncaptured)

    def of(row: Any) -> _Facts:
        source, change = source_columns[row.source_object_id], change_columns[row.object_id]
        own = captured[row.object_id] if _streams(row) else _all_columns(source)
        return _Facts(
            captured=own,
            change=change,
            returned=_returned(control, row) if not change and len(_live(own, source)) < len(own) else (),
            source=source,
            indexes=indexes[row.source_object_id],
            collation=collation,
            descriptions=descriptions.get(row.source_object_id, {}),
            switched=row.object_id in switched,
        )

    return of


def _streams(row: Any) -> bool:
    """Whether the row is a capture instance; for a table that is not captured, it has the table's own object id."""
    return row.object_id != row.source_object_id


def _all_columns(columns: Sequence[Any]) -> list[Any]:
    """What `CAPTURED_COLUMNS` would return for a table that is not captured."""
    return [
        SimpleNamespace(
            column_name=one.name, column_id=one.column_id, column_ordinal=place, is_computed=one.is_computed
        )
        for place, one in enumerate(columns, start=1)
    ]


def _live(captured: Sequence[Any], source: Sequence[Any]) -> dict[str, Any]:
    """The source table's columns that are captured, by name; another column may have the name of a dropped one."""
    ids = {one.column_name: one.column_id for one in captured}
    return {column.name: column for column in source if column.column_id == ids.get(column.name)}


def _returned(control: Control, row: Any) -> Sequence[Any]:
    """The columns that an instance's function returns; none if the server does not show them to the login."""
    statement = f"SELECT * FROM {changes_function(row.capture_instance)}(NULL, NULL, N'all')"
    try:
        return control.rows(statements.RESULT_COLUMNS, statement, doing="asking what a function of CDC returns")
    except (ConfigurationError, SourceError):
        return ()


def captured_names(control: Control) -> list[TableId]:
    """The tables under CDC, regardless of filters."""
    catalog = control.value("SELECT DB_NAME()", doing="asking for the database's name")
    rows = _capture_instances(control)
    return list(dict.fromkeys(TableId(catalog, row.source_schema, row.source_table) for row in rows))


@dataclass(frozen=True, slots=True)
class _Facts:
    captured: Sequence[Any]
    change: Sequence[Any]
    returned: Sequence[Any]
    source: Sequence[Any]
    indexes: Sequence[Any]
    collation: str
    descriptions: Mapping[int, str]
    switched: bool


def _descriptions(control: Control, *, uncaptured: bool) -> Mapping[int, Mapping[int, str]]:
    """The extended properties MS_Description: by object, then by column id; 0 is the table itself.

    They are for display only: a login that may not read them gets none.
    """
    try:
        statement = statements.DESCRIPTIONS.format(tables=_tables(uncaptured=uncaptured))
        rows = control.rows(statement, doing="reading descriptions")
    except ConfigurationError:
        return {}
    found: dict[int, dict[int, str]] = defaultdict(dict)
    for row in rows:
        if row.description and row.description.strip():
            found[row.object_id][row.column_id] = row.description.strip()
    return found


def _instance(row: Any, table_id: TableId, facts: _Facts, filters: Filters | None) -> CaptureInstance:
    live = _live(facts.captured, facts.source)
    # A login without SELECT on the change table does not see its columns, so those of the source table are used, and
    # for those that were dropped, what the function returns.
    change = {column.name: column for column in facts.change or (*facts.returned, *live.values())}
    keys = usable_keys(facts.indexes, set(live), facts.collation)
    key = keys[0].columns if keys else ()
    columns: list[Column] = []
    ordinals: list[int] = []
    for one in facts.captured:
        if one.column_name not in change:
            raise _unknown(table_id, one.column_name, row.capture_instance)
        column = _column(one, change[one.column_name], live.get(one.column_name), key)
        hidden = filters is not None and not _kept(filters, table_id, column.name)
        described = facts.descriptions.get(column.position)
        columns.append(replace(column, excluded=hidden, description=described))
        ordinals.append(one.column_ordinal)
    schema = TableSchema(
        table_id,
        tuple(columns),
        key_columns=key,
        key_constraint=keys[0].constraint if keys else None,
        object_id=row.source_object_id,
        capture_object_id=row.object_id,
        instance=row.capture_instance,
        from_lsn=_lsn(row.start_lsn).text,
        description=facts.descriptions.get(0),
        shown_key=shown_key(facts.indexes, columns, key),
    )
    if not schema.value_columns:
        raise SchemaError(f"The column filters exclude every column of {table_id}; exclude the table, or fewer columns")
    return CaptureInstance(
        name=row.capture_instance,
        object_id=row.object_id,
        change_table=(row.change_schema, row.change_table) if facts.change else None,
        source_object_id=row.source_object_id,
        created=row.create_date,
        start_lsn=_lsn(row.start_lsn),
        schema=schema,
        ordinals=tuple(ordinals),
        has_command_id=_COMMAND_ID in change,
        warnings=(
            *(doubtful_columns(table_id, columns, facts.collation) if _streams(row) else ()),
            *([_switched(table_id, row.capture_instance)] if facts.switched else []),
        ),
        keys=keys,
        streams=_streams(row),
    )


def _unknown(table_id: TableId, column: str, instance: str) -> SchemaError:
    return SchemaError(
        f"{table_id}: capture instance {instance!r} has a column {column!r}, and the login does not see of which type: "
        "the table's column was dropped, or may not be read. GRANT SELECT ON SCHEMA::cdc TO the login's user, or "
        "disable the instance once changes are read from a newer one"
    )


def _switched(table_id: TableId, instance: str) -> str:
    name = f"@source_schema = {text(table_id.schema)}, @source_name = {text(table_id.name)}, @role_name = NULL"
    return (
        f"{table_id} is partitioned, and its capture instance {instance} allows ALTER TABLE … SWITCH, which moves rows "
        "that CDC does not capture: run mssql-cdc check --repair after each. To have it refused, EXEC "
        f"sys.sp_cdc_enable_table {name}, @capture_instance = N'<another name>', @allow_partition_switch = 0, and "
        f"disable {instance} once changes are read from the other"
    )


def _kept(filters: Filters, table_id: TableId, column: str) -> bool:
    return filters.columns.matches(table_id.catalog or "", table_id.schema, table_id.name, column)


def _column(captured: Any, change: Any, live: Any, key: Sequence[str]) -> Column:
    """Type from the change table, whose rows are read; the rest from the source table (TYP-03)."""
    type_row = live if live is not None and live.type_name == "timestamp" else change
    name = captured.column_name
    return Column(
        name=name,
        type=sql_type(type_row),
        nullable=True if live is None else bool(live.is_nullable),
        position=captured.column_id,
        identity=live is not None and bool(live.is_identity),
        computed=bool(captured.is_computed),
        default_text=None if live is None else live.default_text,
        key_ordinal=key.index(name) + 1 if name in key else None,
        alias=None if live is None or live.declared_type == live.type_name else live.declared_type,
    )


def sql_type(row: Any) -> SqlServerType:
    """The base type of a `sys.columns` row joined with its type name.

    An unknown type is not an error yet; it becomes one for its table when the rows are read.
    """
    known = TYPES.get(row.type_name)
    arguments = known.arguments if known else "none"
    length = row.max_length
    if known and known.kind is Kind.TEXT and not known.code_page and length > 0:
        length //= 2
    return SqlServerType(
        row.type_name,
        length=length if arguments == "length" else None,
        precision=row.precision if arguments == "precision and scale" else None,
        scale=row.scale if arguments in {"precision and scale", "scale"} else None,
        collation=row.collation_name,
    )


def _grouped(rows: Iterable[Any], key: str = "object_id") -> Mapping[int, list[Any]]:
    groups: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        groups[getattr(row, key)].append(row)
    return groups


def _lsn(raw: bytes | None) -> Lsn:
    return ZERO_LSN if raw is None else Lsn(bytes(raw))


def by_age(instances: Sequence[CaptureInstance]) -> tuple[CaptureInstance, ...]:
    """Sort oldest first; of instances with the same start, the one created last comes last, and so is used (EVO-04)."""
    return tuple(sorted(instances, key=lambda instance: (instance.start_lsn, instance.created, instance.object_id)))
