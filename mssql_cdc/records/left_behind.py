"""Tables whose changes an output lacks before its end: complete cuts continued without them."""

from __future__ import annotations

from mssql_cdc.config import Connector
from mssql_cdc.errors import DataLostError, MssqlCdcError, NotCaughtUpError
from mssql_cdc.lake.history import load_history
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.lake.storage import Storage
from mssql_cdc.lsn import Lsn
from mssql_cdc.records.state import StreamState
from mssql_cdc.records.tables import Tables


def left_behind(
    connector: Connector, database: str, state: StreamState, *, warehouse: str | None = None
) -> MssqlCdcError | None:
    """Return the error for the tables that are before the end of an output; None: there are none.

    Another connector that continues at the output's offset never gets the changes in between.

    Args:
        connector: The configuration.
        database: One of its databases.
        state: The end of the output.
        warehouse: Overrides `delta.warehouse`.
    """
    offset = state.source_offset()
    if offset is None or offset["commit_lsn"] is None:
        return None
    layout = Layout(warehouse or connector.delta.warehouse, connector.topic_prefix, database)
    storage = Storage(dict(connector.delta.storage))
    end = int(state.position[:4] or "0", 16), Lsn.parse(offset["commit_lsn"]).text
    tables = Tables.of(load_history(layout, storage), load_offsets(layout, storage))
    behind = {
        table.text: entry
        for table, entry in tables.entries.items()
        if entry.status != "excluded" and entry.to is not None and (entry.epoch, entry.to) < end
    }
    if not behind:
        return None
    names = "; ".join(
        f"{name} ({entry.status}) was read up to {entry.to}{f': {entry.reason}' if entry.reason else ''}"
        for name, entry in behind.items()
    )
    kind = DataLostError if any(entry.status == "lost" for entry in behind.values()) else NotCaughtUpError
    return kind(
        f"{database}: the records end at {end[1]}, and lack changes of tables that stand before it: {names}. A "
        "connector that resumes at this offset never gets them. Bring the tables up to date first (mssql-cdc run "
        "--until-caught-up; of one that is lost, take a blocking snapshot), then write their records, too (mssql-cdc "
        "records), and ask again"
    )
