"""`sys.filegroups`, `sys.data_spaces`, and the views of partition functions and schemes."""

from __future__ import annotations

from collections.abc import Iterator

from mssql_sandbox.catalog.definitions import Scope, view
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.system_types import TYPES
from mssql_sandbox.engine.types import max_length


def filegroups(database: Database) -> list[str]:
    """Filegroups of a database, PRIMARY first."""
    return database.properties.get("filegroups", ["PRIMARY"])


def _filegroups(scope: Scope) -> Iterator[tuple]:
    for number, name in enumerate(filegroups(scope.database), 1):
        yield (name, number, int(number == 1))


def _data_spaces(scope: Scope) -> Iterator[tuple]:
    for name, number, default in _filegroups(scope):
        yield (name, number, "FG", "ROWS_FILEGROUP", default)
    for scheme in scope.database.properties.get("partition schemes", {}).values():
        yield (scheme.name, scheme.data_space_id, "PS", "PARTITION_SCHEME", 0)


def _functions(scope: Scope) -> Iterator[tuple]:
    for function in scope.database.properties.get("partition functions", {}).values():
        yield (function.name, function.function_id, len(function.boundaries) + 1, int(function.right))


def _parameters(scope: Scope) -> Iterator[tuple]:
    for function in scope.database.properties.get("partition functions", {}).values():
        type_, info = function.type, TYPES[function.type.name]
        yield (
            function.function_id, info.system_type_id, max_length(type_), type_.precision, type_.scale,
            info.user_type_id,
        )  # fmt: skip


def _values(scope: Scope) -> Iterator[tuple]:
    for function in scope.database.properties.get("partition functions", {}).values():
        for number, value in enumerate(function.boundaries, 1):
            yield (function.function_id, number, None if value is None else (function.type, value))


def _schemes(scope: Scope) -> Iterator[tuple]:
    for scheme in scope.database.properties.get("partition schemes", {}).values():
        yield (scheme.name, scheme.data_space_id, scheme.function.function_id)


VIEWS = (
    view(
        "sys.filegroups",
        "name sysname, data_space_id int, type char(2) = 'FG', type_desc nvarchar(60)? = 'ROWS_FILEGROUP', "
        "is_default bit?, is_system bit? = 0, filegroup_guid uniqueidentifier? = NULL, log_filegroup_id int? = NULL, "
        "is_read_only bit? = 0, is_autogrow_all_files bit? = 0",
        _filegroups,
    ),
    view(
        "sys.data_spaces",
        "name sysname, data_space_id int, type char(2), type_desc nvarchar(60)?, is_default bit?, is_system bit? = 0",
        _data_spaces,
    ),
    view(
        "sys.partition_functions",
        "name sysname, function_id int, type char(2) = 'R ', type_desc nvarchar(60)? = 'RANGE', fanout int, "
        "boundary_value_on_right bit, is_system bit = 0",
        _functions,
    ),
    view(
        "sys.partition_parameters",
        "function_id int, parameter_id int = 1, system_type_id tinyint, max_length smallint, precision tinyint, "
        "scale tinyint, collation_name sysname? = NULL, user_type_id int",
        _parameters,
    ),
    view(
        "sys.partition_range_values",
        "function_id int, boundary_id int, parameter_id int = 1, value sql_variant?",
        _values,
    ),
    view(
        "sys.partition_schemes",
        "name sysname, data_space_id int, type char(2) = 'PS', type_desc nvarchar(60)? = 'PARTITION_SCHEME', "
        "is_default bit? = 0, is_system bit? = 0, function_id int",
        _schemes,
    ),
)
