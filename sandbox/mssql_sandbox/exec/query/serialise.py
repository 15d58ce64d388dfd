"""FOR JSON and FOR XML: which of them, as a plan of one row."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mssql_sandbox.engine import types as t
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.query.for_json import json_text
from mssql_sandbox.exec.query.for_xml import xml_text
from mssql_sandbox.exec.query.operators import Operator, Rows, Slice, gather
from mssql_sandbox.exec.scope import Field
from mssql_sandbox.tsql import ast


def serialised(plan: Operator, clause: ast.ForClause) -> Operator:
    """The plan with its FOR clause; FOR BROWSE changes nothing here."""
    if clause.kind == "BROWSE":
        return plan
    write = json_text(plan.fields, clause) if clause.kind == "JSON" else xml_text(plan.fields, clause)
    return Rows([_result(clause)], lambda context: _one(write, gather(plan.open(context)), context))


def _result(clause: ast.ForClause) -> Field:
    if clause.kind == "JSON":
        return Field("JSON_F52E2B61-18A1-11d1-B105-00805F49916B", t.nvarchar(t.MAX), special="json")
    type_ = t.SqlType("xml") if ("TYPE", "") in clause.options else t.nvarchar(t.MAX)
    return Field("XML_F52E2B61-18A1-11d1-B105-00805F49916B", type_)


def _one(write: Callable[[Slice], str | None], rows: Slice, _context: Context) -> Iterable[tuple]:
    text = write(rows)
    return [] if text is None else [(text,)]
