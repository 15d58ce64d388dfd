"""The system types in the catalogue's terms: ids, sizes in bytes, digits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TypeInfo:
    """Catalog facts of a system type: ids, fixed size in bytes, digits."""

    system_type_id: int
    user_type_id: int
    size: int
    precision: int = 0
    scale: int = 0


TYPES: Mapping[str, TypeInfo] = {
    "image": TypeInfo(34, 34, 16),
    "text": TypeInfo(35, 35, 16),
    "uniqueidentifier": TypeInfo(36, 36, 16),
    "date": TypeInfo(40, 40, 3, 10, 0),
    "time": TypeInfo(41, 41, 5, 16, 7),
    "datetime2": TypeInfo(42, 42, 8, 27, 7),
    "datetimeoffset": TypeInfo(43, 43, 10, 34, 7),
    "tinyint": TypeInfo(48, 48, 1, 3),
    "smallint": TypeInfo(52, 52, 2, 5),
    "int": TypeInfo(56, 56, 4, 10),
    "smalldatetime": TypeInfo(58, 58, 4, 16, 0),
    "real": TypeInfo(59, 59, 4, 24),
    "money": TypeInfo(60, 60, 8, 19, 4),
    "datetime": TypeInfo(61, 61, 8, 23, 3),
    "float": TypeInfo(62, 62, 8, 53),
    "sql_variant": TypeInfo(98, 98, 8016),
    "ntext": TypeInfo(99, 99, 16),
    "bit": TypeInfo(104, 104, 1, 1),
    "decimal": TypeInfo(106, 106, 17, 38, 38),
    "numeric": TypeInfo(108, 108, 17, 38, 38),
    "smallmoney": TypeInfo(122, 122, 4, 10, 4),
    "bigint": TypeInfo(127, 127, 8, 19),
    "hierarchyid": TypeInfo(240, 128, 892),
    "geometry": TypeInfo(240, 129, -1),
    "geography": TypeInfo(240, 130, -1),
    "varbinary": TypeInfo(165, 165, 8000),
    "varchar": TypeInfo(167, 167, 8000),
    "binary": TypeInfo(173, 173, 8000),
    "char": TypeInfo(175, 175, 8000),
    "rowversion": TypeInfo(189, 189, 8),
    "nvarchar": TypeInfo(231, 231, 8000),
    "nchar": TypeInfo(239, 239, 8000),
    "xml": TypeInfo(241, 241, -1),
    "sysname": TypeInfo(231, 256, 256),
}
