"""Type precedence: the common type of two types, and result types of arithmetic.

What does not belong here: converting values (conversion.py) and collation conflicts (`resolve_collation` aside).
"""

from __future__ import annotations

from typing import Literal

from mssql_sandbox.engine.system_types import TYPES
from mssql_sandbox.engine.types import (
    EXACT,
    FLOAT,
    INTEGERS,
    MAX,
    MONEY,
    NATIONAL,
    SINGLE_BYTE,
    STRINGS,
    SqlType,
    make_type,
    reported_name,
)
from mssql_sandbox.errors import error

Operator = Literal["+", "-", "*", "/", "%"]
_ORDER = (
    "sql_variant", "xml", "geography", "geometry", "hierarchyid", "datetimeoffset", "datetime2", "datetime",
    "smalldatetime", "date", "time", "float", "real", "numeric", "decimal", "money", "smallmoney", "bigint", "int",
    "smallint", "tinyint", "bit", "ntext", "text", "image", "rowversion", "uniqueidentifier", "nvarchar", "nchar",
    "varchar", "char", "varbinary", "binary",
)  # fmt: skip
RANK = {name: place for place, name in enumerate(_ORDER)}
_INTEGER_DIGITS = {"bit": 1, "tinyint": 3, "smallint": 5, "int": 10, "bigint": 19, "smallmoney": 10, "money": 19}
_MAX_PRECISION = 38


def as_decimal(type_: SqlType) -> SqlType:
    """The decimal type that holds every value of an exact type."""
    if type_.name in EXACT:
        return type_
    scale = 4 if type_.name in MONEY else 0
    return SqlType("decimal", precision=_INTEGER_DIGITS[type_.name], scale=scale)


def promote(left: SqlType, right: SqlType) -> SqlType:
    """The type that CASE, UNION, COALESCE and comparisons convert both sides to; error 206 if there is none."""
    if left == right:
        return left
    high, low = (left, right) if RANK[left.name] <= RANK[right.name] else (right, left)
    if high.name in EXACT:
        return _common_decimal(high, low)
    if high.name in STRINGS and low.name in STRINGS | {"varbinary", "binary"}:
        return _common_string(high, low)
    if high.name in {"varbinary", "binary"} and low.name in {"varbinary", "binary"}:
        length = MAX if MAX in (high.length, low.length) else max(high.length, low.length)
        return SqlType(high.name, length)
    if high.name in {"time", "datetime2", "datetimeoffset"}:
        return _common_time(high, low)
    clash = {high.name, low.name}
    if clash == {"date", "time"} or (high.name in {"date", "time"} and low.name in INTEGERS | EXACT | MONEY):
        raise error(206, left=reported_name(left), right=reported_name(right))
    return high


def _common_decimal(high: SqlType, low: SqlType) -> SqlType:
    if low.name not in _INTEGER_DIGITS and low.name not in EXACT:
        return high
    other = as_decimal(low)
    scale = max(high.scale, other.scale)
    whole = max(high.precision - high.scale, other.precision - other.scale)
    precision = min(_MAX_PRECISION, whole + scale)
    return SqlType(high.name, precision=precision, scale=min(scale, max(0, _MAX_PRECISION - whole)))


def _common_string(high: SqlType, low: SqlType) -> SqlType:
    collation = high.collation or low.collation
    if high.name == "xml":
        return high
    length = MAX if MAX in (high.length, low.length) else max(high.length, low.length)
    limit = 4000 if high.name in NATIONAL else 8000
    return SqlType(high.name, min(length, limit), collation=collation)


def _common_time(high: SqlType, low: SqlType) -> SqlType:
    if high.name == "time" and low.name == "date":
        raise error(206, left="time", right="date")
    if low.name not in {"time", "datetime2", "datetimeoffset", "datetime", "smalldatetime"}:
        return high
    other = 3 if low.name == "datetime" else low.scale
    if other <= high.scale:
        return high
    return make_type(high.name, other)


def arithmetic(operator: Operator, left: SqlType, right: SqlType) -> SqlType:
    """Result type of an arithmetic operator, with SQL Server's precision rules; errors 402, 8117, 206.

    '+' of two strings is `concatenation`; dates with '+' and '-' take numbers of days only for datetime types.
    """
    for type_ in (left, right):
        if type_.name in {"date", "time", "datetime2", "datetimeoffset"}:
            raise error(206, left=reported_name(left), right=reported_name(right))
        if type_.name in {"text", "ntext", "image", "xml", "sql_variant", "uniqueidentifier"}:
            raise error(8117, type=reported_name(type_), operator=_NAMES[operator])
    if operator == "+" and left.name in STRINGS and right.name in STRINGS:
        return concatenation(left, right)
    high = left if RANK[left.name] <= RANK[right.name] else right
    if high.name in {"datetime", "smalldatetime"}:
        if operator not in {"+", "-"}:
            raise error(8117, type=high.name, operator=_NAMES[operator])
        return high
    if high.name in {"float", "real"}:
        if operator == "%":
            raise error(402, left=reported_name(left), right=reported_name(right), operator="modulo")
        return high if high.name == "float" or {left.name, right.name} <= {"real"} | INTEGERS else FLOAT
    if high.name in EXACT:
        low = right if high is left else left
        if low.name in EXACT or low.name in _INTEGER_DIGITS:
            return decimal_result(operator, as_decimal(left), as_decimal(right))
        return high
    if high.name in STRINGS or high.name in {"varbinary", "binary", "rowversion"}:
        raise error(402, left=reported_name(left), right=reported_name(right), operator=_NAMES[operator])
    return high if high.name != "bit" else _bit(left, right, operator)


_NAMES = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "modulo"}


def _bit(left: SqlType, right: SqlType, operator: Operator) -> SqlType:
    raise error(402, left=left.name, right=right.name, operator=_NAMES[operator])


def decimal_result(operator: Operator, left: SqlType, right: SqlType) -> SqlType:
    """Precision and scale of decimal arithmetic, reduced to 38 digits as documented for decimal and numeric."""
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    if operator in {"+", "-"}:
        scale = max(s1, s2)
        precision = max(p1 - s1, p2 - s2) + scale + 1
    elif operator == "*":
        scale, precision = s1 + s2, p1 + p2 + 1
    elif operator == "/":
        scale = max(6, s1 + p2 + 1)
        precision = p1 - s1 + s2 + scale
    else:
        scale = max(s1, s2)
        precision = min(p1 - s1, p2 - s2) + scale
    if precision > _MAX_PRECISION:
        if operator in {"*", "/"}:
            # Integer digits take precedence over the scale, down to six digits of scale.
            scale = max(_MAX_PRECISION - (precision - scale), min(scale, 6))
        else:
            scale = min(scale, max(0, _MAX_PRECISION - max(p1 - s1, p2 - s2)))
        precision = _MAX_PRECISION
    name = "numeric" if "numeric" in {left.name, right.name} else "decimal"
    return SqlType(name, precision=precision, scale=scale)


def concatenation(left: SqlType, right: SqlType) -> SqlType:
    """Type of string concatenation: lengths add up to at most 8000 bytes unless one side is (max)."""
    national = left.name in NATIONAL or right.name in NATIONAL
    fixed = left.name in {"char", "nchar"} and right.name in {"char", "nchar"}
    name = ("n" if national else "") + ("char" if fixed else "varchar")
    collation = left.collation or right.collation
    if MAX in (left.length, right.length):
        return SqlType(name.replace("char", "varchar") if fixed else name, MAX, collation=collation)
    return SqlType(name, min(left.length + right.length, 4000 if national else 8000), collation=collation)


def is_implicit(source: SqlType, target: SqlType) -> bool:
    """Whether the conversion is implicit (conversion chart of the documentation)."""
    pair = (source.name, target.name)
    if source.name == "sql_variant":
        return target.name == "sql_variant"
    if target.name in {"char", "varchar", "nchar", "nvarchar"} and source.name in {"money", "smallmoney"}:
        return True
    if source.name in STRINGS and target.name in {"binary", "varbinary", "image", "rowversion"}:
        return False
    if source.name in NATIONAL | SINGLE_BYTE and target.name in {"money", "smallmoney"}:
        return True
    if source.name in {"float", "real", "decimal", "numeric", "int", "bigint"} and target.name in {"date", "time"}:
        return False
    if source.name in TYPES and target.name in {"int", "bigint", "decimal", "numeric", "float", "real", "bit"}:
        return source.name not in {"datetime", "smalldatetime", "date", "time", "datetime2", "datetimeoffset",
                                   "uniqueidentifier", "xml", "text", "ntext", "image"}  # fmt: skip
    return pair not in {("xml", "varchar"), ("xml", "nvarchar")}
