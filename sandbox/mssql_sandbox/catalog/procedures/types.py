"""`sp_datatype_info` and `sp_datatype_info_100`."""

from __future__ import annotations

from collections.abc import AsyncIterator

from mssql_sandbox.catalog.columns import columns
from mssql_sandbox.catalog.definitions import Call, SystemProcedure, procedure, result_set
from mssql_sandbox.catalog.type_info import type_info_rows
from mssql_sandbox.engine.events import Event

_COLUMNS = columns(
    "TYPE_NAME sysname, DATA_TYPE smallint, PRECISION int?, LITERAL_PREFIX varchar(32)?, LITERAL_SUFFIX varchar(32)?, "
    "CREATE_PARAMS varchar(32)?, NULLABLE smallint, CASE_SENSITIVE smallint, SEARCHABLE smallint, "
    "UNSIGNED_ATTRIBUTE smallint?, MONEY smallint, AUTO_INCREMENT smallint?, LOCAL_TYPE_NAME sysname, "
    "MINIMUM_SCALE smallint?, MAXIMUM_SCALE smallint?, SQL_DATA_TYPE smallint, SQL_DATETIME_SUB smallint?, "
    "NUM_PREC_RADIX int?, INTERVAL_PRECISION smallint?, USERTYPE smallint"
)


def _datatype_info(name: str, *, types_of_2008: bool) -> SystemProcedure:
    async def run(call: Call) -> AsyncIterator[Event]:
        rows = type_info_rows(
            data_type=call.number("data_type") or 0,
            odbc_version=call.number("odbcver") or 2,
            types_of_2008=types_of_2008,
        )
        for event in result_set(_COLUMNS, rows):
            yield event

    return procedure(f"sys.{name}", "@data_type int = 0, @ODBCVer tinyint = 2", run)


PROCEDURES = (
    _datatype_info("sp_datatype_info", types_of_2008=False),
    _datatype_info("sp_datatype_info_90", types_of_2008=False),
    _datatype_info("sp_datatype_info_100", types_of_2008=True),
)
