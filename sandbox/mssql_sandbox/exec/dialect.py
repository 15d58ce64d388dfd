"""T-SQL: builds the tables of the language from the modules that implement it. No logic here."""

from __future__ import annotations

from collections.abc import Mapping

from mssql_sandbox.exec.apicursors.procedures import CURSOR_PROCEDURES
from mssql_sandbox.exec.calls import procedures
from mssql_sandbox.exec.calls.old_principals import OLD_PRINCIPALS
from mssql_sandbox.exec.calls.prepared import PREPARED_PROCEDURES
from mssql_sandbox.exec.compiling.nodes import EXPRESSIONS
from mssql_sandbox.exec.language import Language
from mssql_sandbox.exec.query.planner import plan_query
from mssql_sandbox.exec.routine import RunStatement
from mssql_sandbox.exec.statements import (
    administration,
    alterations,
    bulk,
    bulk_insert,
    changes,
    control,
    cursors,
    definitions,
    fulltext,
    indexes,
    inserts,
    maintenance,
    merging,
    messages,
    places,
    queries,
    schemas,
    security_policies,
    settings,
    small_objects,
    switching,
    tables,
    xml_indexes,
    xml_schemas,
)
from mssql_sandbox.tsql import statements as st

STATEMENTS: Mapping[type, RunStatement] = {
    st.SelectStatement: queries.select,
    st.Insert: inserts.insert,
    st.InsertBulk: bulk.insert_bulk,
    st.Update: changes.update,
    st.Delete: changes.delete,
    st.Truncate: changes.truncate,
    st.Merge: merging.merge,
    st.Execute: procedures.execute,
    st.ExecuteString: procedures.execute_string,
    st.CreateTable: tables.create_table,
    **bulk_insert.HANDLERS,
    **control.HANDLERS,
    **settings.HANDLERS,
    **messages.HANDLERS,
    **cursors.HANDLERS,
    **administration.HANDLERS,
    **maintenance.HANDLERS,
    **definitions.HANDLERS,
    **security_policies.HANDLERS,
    **fulltext.HANDLERS,
    **indexes.HANDLERS,
    **small_objects.HANDLERS,
    **alterations.HANDLERS,
    **places.HANDLERS,
    **switching.HANDLERS,
    **schemas.HANDLERS,
    **xml_indexes.HANDLERS,
    **xml_schemas.HANDLERS,
}
DESCRIPTIONS: Mapping[type, RunStatement] = {
    st.SelectStatement: queries.describe,
    st.If: control.describe_branches,
}
TSQL = Language(
    expressions=EXPRESSIONS,
    plan_query=plan_query,
    statements=STATEMENTS,
    descriptions=DESCRIPTIONS,
    procedures={**PREPARED_PROCEDURES, **CURSOR_PROCEDURES, **OLD_PRINCIPALS},
)
