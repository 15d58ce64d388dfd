"""`snapshot.delay.ms` before a snapshot reads, and `streaming.delay.ms` before its tables stream (SNP-30).

Tables wait with the status `snapshot`, so that no run streams them meanwhile. A snapshot that is resumed does not wait
again before it reads.
"""

from __future__ import annotations

from time import monotonic, sleep

from mssql_cdc.capture.snapshot.progress import Run
from mssql_cdc.config import Connector
from mssql_cdc.schema import TableId


def wait_to_read(connector: Connector) -> None:
    """Wait before a snapshot begins.

    Args:
        connector: The configuration.
    """
    if connector.snapshot.delay_ms:
        sleep(connector.snapshot.delay_ms / 1000)


def wait_to_stream(run: Run, table: TableId) -> None:
    """Wait until a table's last rows have been in the lake for long enough.

    Args:
        run: The run of the snapshot.
        table: The table, whose chunks are all read.
    """
    connector, read = run.database.connector, run.committed.get(table)
    delay = connector.streaming.delay_ms / 1000
    left = read + delay - monotonic() if read is not None and delay else 0.0
    if left > 0:
        sleep(left)
