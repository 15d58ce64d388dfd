"""ODBC's scalar functions in `{fn name(…)}` that have another name in T-SQL.

Evidence: Microsoft's "ODBC Scalar Functions (Transact-SQL)" and ODBC's appendix E. Functions that are not listed keep
their name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mssql_sandbox.tsql import ast

Arguments = Sequence[ast.Expression]

_RENAMED = {
    "UCASE": "UPPER", "LCASE": "LOWER", "LENGTH": "LEN", "IFNULL": "ISNULL", "NOW": "GETDATE", "LOCATE": "CHARINDEX",
    "REPEAT": "REPLICATE", "INSERT": "STUFF", "ATAN2": "ATN2", "DATABASE": "DB_NAME", "USER": "USER_NAME",
    "OCTET_LENGTH": "DATALENGTH", "CHAR_LENGTH": "LEN", "CHARACTER_LENGTH": "LEN",
}  # fmt: skip
_PARTS = {
    "DAYOFMONTH": "day", "DAYOFWEEK": "weekday", "DAYOFYEAR": "dayofyear", "HOUR": "hour", "MINUTE": "minute",
    "SECOND": "second", "QUARTER": "quarter", "WEEK": "week",
}  # fmt: skip
_INTERVALS = {
    "SQL_TSI_FRAC_SECOND": "nanosecond", "SQL_TSI_SECOND": "second", "SQL_TSI_MINUTE": "minute",
    "SQL_TSI_HOUR": "hour", "SQL_TSI_DAY": "day", "SQL_TSI_WEEK": "week", "SQL_TSI_MONTH": "month",
    "SQL_TSI_QUARTER": "quarter", "SQL_TSI_YEAR": "year",
}  # fmt: skip
_TYPES: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "SQL_BIGINT": ("bigint", ()), "SQL_BINARY": ("binary", ()), "SQL_BIT": ("bit", ()), "SQL_CHAR": ("char", ()),
    "SQL_DATE": ("date", ()), "SQL_DECIMAL": ("decimal", ()), "SQL_DOUBLE": ("float", ()), "SQL_FLOAT": ("float", ()),
    "SQL_INTEGER": ("int", ()), "SQL_NUMERIC": ("numeric", ()), "SQL_REAL": ("real", ()),
    "SQL_SMALLINT": ("smallint", ()), "SQL_TIME": ("time", ()), "SQL_TIMESTAMP": ("datetime", ()),
    "SQL_TINYINT": ("tinyint", ()), "SQL_VARBINARY": ("varbinary", (8000,)), "SQL_VARCHAR": ("varchar", (8000,)),
    "SQL_WCHAR": ("nchar", ()), "SQL_WVARCHAR": ("nvarchar", (4000,)), "SQL_GUID": ("uniqueidentifier", ()),
}  # fmt: skip


def odbc_function(name: str, arguments: Arguments) -> ast.Expression | None:
    """The T-SQL expression for a call; None if its arguments do not suit the function."""
    special = _SPECIAL.get(name)
    if special is not None:
        return special(arguments)
    if name in _PARTS:
        return _call("DATEPART", ast.ColumnRef((_PARTS[name],)), *arguments)
    return _call(_RENAMED.get(name, name), *arguments)


def _call(name: str, *arguments: ast.Expression) -> ast.Expression:
    return ast.Function((name,), tuple(arguments))


def _word(node: ast.Expression) -> str:
    return node.parts[-1].upper() if isinstance(node, ast.ColumnRef) else ""


def _interval(name: str) -> Callable[[Arguments], ast.Expression | None]:
    def build(arguments: Arguments) -> ast.Expression | None:
        if len(arguments) != 3 or _word(arguments[0]) not in _INTERVALS:
            return None
        return _call(name, ast.ColumnRef((_INTERVALS[_word(arguments[0])],)), *arguments[1:])

    return build


def _convert(arguments: Arguments) -> ast.Expression | None:
    if len(arguments) != 2 or _word(arguments[1]) not in _TYPES:
        return None
    name, sizes = _TYPES[_word(arguments[1])]
    return ast.Cast("convert", arguments[0], ast.TypeName((name,), sizes))


def _modulo(arguments: Arguments) -> ast.Expression | None:
    return ast.Binary("%", *arguments) if len(arguments) == 2 else None


def _truncate(arguments: Arguments) -> ast.Expression | None:
    return _call("ROUND", *arguments, ast.Literal(1, "int")) if len(arguments) == 2 else None


def _bits(arguments: Arguments) -> ast.Expression | None:
    return ast.Binary("*", _call("DATALENGTH", *arguments), ast.Literal(8, "int"))


def _named_part(part: str) -> Callable[[Arguments], ast.Expression | None]:
    return lambda arguments: _call("DATENAME", ast.ColumnRef((part,)), *arguments)


def _now_as(size: int, style: int) -> Callable[[Arguments], ast.Expression | None]:
    """The current date or time as text."""
    type_, literal = ast.TypeName(("varchar",), (size,)), ast.Literal(style, "int")
    return lambda _arguments: ast.Cast("convert", _call("GETDATE"), type_, literal)


_SPECIAL: Mapping[str, Callable[[Arguments], ast.Expression | None]] = {
    "TIMESTAMPADD": _interval("DATEADD"),
    "TIMESTAMPDIFF": _interval("DATEDIFF"),
    "CONVERT": _convert,
    "MOD": _modulo,
    "TRUNCATE": _truncate,
    "BIT_LENGTH": _bits,
    "DAYNAME": _named_part("weekday"),
    "MONTHNAME": _named_part("month"),
    "CURDATE": _now_as(10, 23),
    "CURRENT_DATE": _now_as(10, 23),
    "CURTIME": _now_as(12, 114),
    "CURRENT_TIME": _now_as(12, 114),
}
