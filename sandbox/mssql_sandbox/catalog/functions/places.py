"""Functions on filegroups, files, types and collations."""

from __future__ import annotations

from mssql_sandbox.catalog.definitions import Scope, function
from mssql_sandbox.catalog.functions.properties import variant
from mssql_sandbox.catalog.views.spaces import filegroups
from mssql_sandbox.engine.collation import Collation, collation_named
from mssql_sandbox.engine.system_types import TYPES
from mssql_sandbox.engine.types import parse_type
from mssql_sandbox.errors import SqlError
from mssql_sandbox.tds.collations import collation_bytes


def _files(scope: Scope) -> list[str]:
    return [scope.database.name, f"{scope.database.name}_log"]


def _filegroup_name(scope: Scope, number: int | None) -> str | None:
    groups = filegroups(scope.database)
    return groups[number - 1] if number is not None and 0 < number <= len(groups) else None


def _filegroup_id(scope: Scope, name: str | None) -> int | None:
    return _place(filegroups(scope.database), name)


def _file_name(scope: Scope, number: int | None) -> str | None:
    files = _files(scope)
    return files[number - 1] if number is not None and 0 < number <= len(files) else None


def _file_id(scope: Scope, name: str | None) -> int | None:
    return _place(_files(scope), name)


def _place(names: list[str], name: str | None) -> int | None:
    return next((n for n, one in enumerate(names, 1) if name is not None and one.lower() == name.lower()), None)


def _type_property(_scope: Scope, name: str | None, key: str | None) -> int | None:
    try:
        type_ = parse_type((name or "").removeprefix("sys."))
    except SqlError:
        return None
    info = TYPES[type_.alias or type_.name]
    return {
        "precision": info.precision or info.size, "scale": info.scale, "allowsnull": 1, "usesansitrim": 1, "ownerid": 4,
    }.get((key or "").casefold())  # fmt: skip


_COLLATION_VERSIONS = (80, 90, 100, 140, 160)


def _comparison_style(collation: Collation) -> int:
    """What comparisons ignore: case 1, accents 2, kana types 65536, width 131072 [doc: COLLATIONPROPERTY]."""
    sensitive = (collation.case_sensitive, collation.accent_sensitive, collation.kana_sensitive,
                 collation.width_sensitive)  # fmt: skip
    return sum(bit for given, bit in zip(sensitive, (1, 2, 65536, 131072), strict=True) if not given)


def _collation_property(_scope: Scope, name: str | None, key: str | None) -> object:
    try:
        collation = collation_named(name or "")
    except SqlError:
        return None
    known = {
        "codepage": collation.code_page, "lcid": collation.lcid, "tdscollation": collation_bytes(collation),
        "comparisonstyle": _comparison_style(collation), "version": _COLLATION_VERSIONS.index(collation.version),
        "sortid": collation.sort_id,
    }  # fmt: skip
    found = known.get((key or "").casefold())
    return None if found is None else variant(found)


FUNCTIONS = (
    function("FILEGROUP_NAME", "sysname", "int", _filegroup_name),
    function("FILEGROUP_ID", "int", "sysname", _filegroup_id),
    function("FILE_NAME", "sysname", "int", _file_name),
    function("FILE_ID", "smallint", "sysname", _file_id),
    function("FILE_IDEX", "int", "sysname", _file_id),
    function("STATS_DATE", "datetime", "int; int", lambda _scope, _table, _statistics: None),
    function("TYPEPROPERTY", "int", "nvarchar(256); nvarchar(128)", _type_property),
    function("COLLATIONPROPERTY", "sql_variant", "nvarchar(128); nvarchar(128)", _collation_property),
    function("ASSEMBLYPROPERTY", "sql_variant", "nvarchar(128); nvarchar(128)", lambda _scope, _name, _key: None),
    function("FULLTEXTSERVICEPROPERTY", "int", "nvarchar(128)",
             lambda _scope, key: 0 if (key or "").casefold() == "isfulltextinstalled" else None),
)  # fmt: skip
