"""FOR JSON: the rows of a query as one text. FOR XML is not known and says so."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from mssql_cdc.sandbox.engine import types as t
from mssql_cdc.sandbox.engine.conversion import convert
from mssql_cdc.sandbox.errors import SqlError
from mssql_cdc.sandbox.exec.context import Context
from mssql_cdc.sandbox.exec.query.operators import Operator, Rows, gather
from mssql_cdc.sandbox.exec.scope import Field

_NAME = "JSON_F52E2B61-18A1-11d1-B105-00805F49916B"


def for_json(plan: Operator, clause: str) -> Operator:
    """One row with the JSON text of all rows (`FOR JSON PATH | AUTO` and its options)."""
    words = clause.upper().split()
    if words[1] != "JSON":
        raise SqlError(102, "Incorrect syntax near 'XML': FOR XML is not known to this server.", severity=15)
    nulls = "INCLUDE_NULL_VALUES" in clause.upper()
    bare = "WITHOUT_ARRAY_WRAPPER" in clause.upper()

    def rows(context: Context) -> Iterable[tuple]:
        found = gather(plan.open(context))
        if not found:
            return
        texts = [
            json.dumps(_row(row, plan.fields, nulls=nulls), ensure_ascii=False, separators=(",", ":")) for row in found
        ]
        joined = ",".join(texts)
        yield (joined if bare else f"[{joined}]",)

    return Rows([Field(_NAME, t.nvarchar(t.MAX))], rows)


def _row(row: tuple, fields: Any, *, nulls: bool) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for value, field in zip(row, fields, strict=True):
        if not field.name:
            raise SqlError(13605, "Column expressions and data sources without names or aliases cannot be "
                                  "formatted as JSON "
                           "text using FOR JSON clause. Add alias to the unnamed column or table.")  # fmt: skip
        if value is None and not nulls:
            continue
        inside = result
        *path, last = field.name.split(".")
        for part in path:
            inside = inside.setdefault(part, {})
        inside[last] = _cell(value, field.type)
    return result


def _cell(value: Any, type_: t.SqlType) -> Any:
    if value is None:
        return None
    if type_.name == "bit":
        return bool(value)
    if type_.name in t.INTEGERS or type_.name in t.APPROXIMATE:
        return value
    if type_.name in t.NUMBERS:
        return float(value)
    style = 127 if type_.name in ("datetime", "datetime2", "datetimeoffset", "smalldatetime") else None
    return convert(value, type_, t.nvarchar(t.MAX), style=style)
