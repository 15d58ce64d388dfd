"""Debezium records, rendered from the lake up to the last complete cut; nothing here writes to the lake.

`write_records` is the way in. Modes of the configuration shape records here and never a Delta table.
"""

from mssql_cdc.records.sinks import JsonLines, RecordSink, open_sink
from mssql_cdc.records.write import database_records, write_records

__all__ = ["JsonLines", "RecordSink", "database_records", "open_sink", "write_records"]
