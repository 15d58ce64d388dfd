"""Debezium records, rendered from the lake up to the last complete cut; this package never writes to the lake.

The entry point is `write_records`. Configuration modes shape only the records here, never a Delta table.
"""

from mssql_cdc.records.sinks import JsonLines, RecordSink, open_sink
from mssql_cdc.records.write import database_records, write_records

__all__ = ["JsonLines", "RecordSink", "database_records", "open_sink", "write_records"]
