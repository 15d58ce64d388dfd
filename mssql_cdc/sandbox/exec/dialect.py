"""T-SQL: the tables of the language, made out of the rooms that know its parts. Nothing is decided here."""

from __future__ import annotations

from mssql_cdc.sandbox.exec.compiling.nodes import EXPRESSIONS
from mssql_cdc.sandbox.exec.language import Language
from mssql_cdc.sandbox.exec.query.planner import plan_query

TSQL = Language(expressions=EXPRESSIONS, plan_query=plan_query)
