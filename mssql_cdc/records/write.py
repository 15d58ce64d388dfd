"""Writes the records of a connector's databases to an output, in order, from the lake alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from mssql_cdc.config import Connector
from mssql_cdc.errors import ConfigurationError, NotCaughtUpError
from mssql_cdc.lake.history import load_history
from mssql_cdc.lake.known_states import KnownTables
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.lake.storage import Storage
from mssql_cdc.records.database_view import DatabaseView
from mssql_cdc.records.envelope import Envelopes
from mssql_cdc.records.extending import Extensions
from mssql_cdc.records.outputs import Output, OutputBatch, begin
from mssql_cdc.records.resume import Resumed, resume
from mssql_cdc.records.selection import Selection
from mssql_cdc.records.source_offsets import SourceOffset
from mssql_cdc.records.state import StreamState
from mssql_cdc.records.stream import Rendered, stream
from mssql_cdc.records.tables import Tables
from mssql_cdc.schema import TableId

ALL = Selection()


def write_records(
    connector: Connector,
    *,
    output: Output,
    warehouse: str | None = None,
    databases: Sequence[str] | None = None,
    selection: Selection = ALL,
    offsets: Mapping[str, SourceOffset] | None = None,
) -> int:
    """Write the records up to the last complete cut of each database, from where the output ends.

    Args:
        connector: The configuration; its modes shape the records.
        output: The destination of the records; the caller must `keep` what was written last.
        warehouse: Overrides `delta.warehouse`.
        databases: Only these databases of the connector; None: all.
        selection: The wanted records.
        offsets: Where to begin with databases of which the output has nothing yet.

    Returns:
        The number of records.

    Raises:
        NotCaughtUpError: The lake has not reached an offset yet.
        ConfigurationError: A property changes the records in a way that is not implemented, a table is unknown, or a
            start is given although the output has one.
        StorageError: The output holds the records of another connector, of other tables or of another key.
    """
    connector.require_rendered()
    progress = begin(output, connector.topic_prefix, selection.of_records)
    if selection.start is not None and progress.databases:
        raise ConfigurationError(
            "The output continues where its records end. Leave the start out, or name another output"
        )
    names = databases if databases is not None else connector.databases
    _require_tables(connector, names, selection, warehouse)
    count = 0
    with Extensions.of(connector) as extensions:
        for database in names:
            begins = Resumed(progress.databases.get(database))
            offset = (offsets or {}).get(database)
            if begins.state is None and offset is not None:
                begins = _resumed(connector, database, offset, warehouse, selection)
            found = records_behind(
                connector, database, begins, warehouse=warehouse, selection=selection, extensions=extensions
            )
            for rendered in found:
                progress = progress.at(database, rendered.state)
                output.write(OutputBatch(database, rendered.records, progress))
                count += rendered.records.num_rows
    return count


def _require_tables(
    connector: Connector, databases: Sequence[str], selection: Selection, warehouse: str | None
) -> None:
    """Refuse names that no table of any database has, before the first record; without a cut, none is expected yet."""
    if not selection.tables:
        return
    known: dict[TableId, list[TableId]] = {}
    has_cut, storage = False, Storage(dict(connector.delta.storage))
    for database in databases:
        layout = Layout(warehouse or connector.delta.warehouse, connector.topic_prefix, database)
        offsets = load_offsets(layout, storage)
        tables = Tables.of(load_history(layout, storage), offsets)
        known |= {table: [one.table_id for one in own] for table, own in tables.versions.items()}
        has_cut = has_cut or offsets.last_cut() is not None
    if has_cut:
        selection.require_known(known)


def _resumed(
    connector: Connector, database: str, offset: SourceOffset, warehouse: str | None, selection: Selection
) -> Resumed:
    found = resume(connector, database, offset, warehouse=warehouse, selection=selection)
    if found is None:
        raise NotCaughtUpError(
            f"The lake of {database} has not reached the offset {json.dumps(dict(offset.values))}: run "
            "mssql-cdc run --until-caught-up first"
        )
    return found


def records_behind(
    connector: Connector,
    database: str,
    begins: Resumed,
    *,
    warehouse: str | None = None,
    selection: Selection = ALL,
    extensions: Extensions | None = None,
    polled: datetime | None = None,
    known: KnownTables | None = None,
) -> Iterator[Rendered]:
    """Yield the records of one database after the place where it resumes, in order.

    Args:
        connector: The configuration; its modes shape the records.
        database: One of the connector's databases.
        begins: The place.
        warehouse: Overrides `delta.warehouse`.
        selection: The wanted records, the same as for the place.
        extensions: The connector's extensions; None: they are loaded.
        polled: The time of a poll that has just found nothing beyond the last cut; None: there was none.
        known: The lake's small tables as last read.
    """
    extensions, state = extensions or Extensions.of(connector), begins.state
    for one in begins.begin(Envelopes(connector, database, extensions)):
        state = one.state
        yield one
    yield from database_records(
        connector,
        database,
        warehouse=warehouse,
        state=state,
        selection=selection,
        extensions=extensions,
        polled=polled,
        known=known,
    )


def database_records(
    connector: Connector,
    database: str,
    *,
    warehouse: str | None = None,
    state: StreamState | None = None,
    selection: Selection = ALL,
    extensions: Extensions | None = None,
    polled: datetime | None = None,
    known: KnownTables | None = None,
) -> Iterator[Rendered]:
    """Yield the records of one database in Debezium's order; none before its first complete cut.

    Args:
        connector: The configuration; its modes shape the records.
        database: One of the connector's databases.
        warehouse: Overrides `delta.warehouse`.
        state: Begin after this state; None: at the start of the selection.
        selection: The wanted records.
        extensions: The connector's extensions; None: they are loaded.
        polled: The time of a poll that has just found nothing beyond the last cut; None: there was none.
        known: The lake's small tables as last read.

    Raises:
        ConfigurationError: An extension cannot be loaded.
    """
    extensions = extensions or Extensions.of(connector)
    view = DatabaseView.load(
        connector,
        database,
        warehouse=warehouse,
        state=state,
        selection=selection,
        extensions=extensions,
        polled=polled,
        known=known,
    )
    if view is not None:
        yield from stream(view, Envelopes(connector, database, extensions), view.begins)
