"""Types by their T-SQL text, in one collation."""

from mssql_sandbox.engine.collation import collation_named
from mssql_sandbox.engine.functions import KEYWORD
from mssql_sandbox.engine.types import parse_type

COLLATION = collation_named("SQL_Latin1_General_CP1_CI_AS")


def typed(text: str):
    return KEYWORD if text == "keyword" else parse_type(text, collation=COLLATION)
