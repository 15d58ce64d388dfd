"""Debezium records, rendered from the lake up to the last complete cut; this package never writes to the lake.

The entry point is `write_records`. Configuration modes shape only the records here, never a Delta table.
"""

from mssql_cdc.records.open_output import open_output
from mssql_cdc.records.outputs import JsonLinesStream, Output, OutputBatch, Progress
from mssql_cdc.records.selection import Selection
from mssql_cdc.records.write import database_records, write_records

__all__ = [
    "JsonLinesStream",
    "Output",
    "OutputBatch",
    "Progress",
    "Selection",
    "database_records",
    "open_output",
    "write_records",
]
