"""Which operators of a plan count as findings."""

from __future__ import annotations

import pytest

from mssql_cdc_tests.certify.plans import Finding, findings

SHOWPLAN = "http://schemas.microsoft.com/sqlserver/2004/07/showplan"


def plan(*operators: str) -> str:
    inner = "".join(operators)
    return (
        f'<ShowPlanXML xmlns="{SHOWPLAN}"><BatchSequence><Batch><Statements><StmtSimple StatementText="SELECT">'
        f"<QueryPlan>{inner}</QueryPlan></StmtSimple></Statements></Batch></BatchSequence></ShowPlanXML>"
    )


def reads(operator: str, table: str, *, ordered: bool = False) -> str:
    schema, name = table.split(".")
    at = f'<Object Database="[shop]" Schema="[{schema}]" Table="[{name}]" Index="[i]"/>'
    return f'<RelOp PhysicalOp="{operator}"><IndexScan Ordered="{str(ordered).lower()}">{at}</IndexScan></RelOp>'


def above(operator: str, *inputs: str) -> str:
    return f'<RelOp PhysicalOp="{operator}"><Any>{"".join(inputs)}</Any></RelOp>'


@pytest.mark.parametrize("table", ["cdc.dbo_orders_CT", "cdc.lsn_time_mapping", "dbo.orders"])
def test_a_scan_of_a_growing_table_is_found_and_a_seek_is_not(table: str):
    scan = plan(above("Nested Loops", reads("Clustered Index Scan", table)))
    seek = plan(above("Nested Loops", reads("Clustered Index Seek", table)))
    assert findings(scan, keys=frozenset({"dbo.orders"})) == [Finding("Clustered Index Scan", table)]
    assert findings(seek, keys=frozenset({"dbo.orders"})) == []


def test_a_scan_of_catalog_tables_and_of_tables_without_a_key_is_none():
    assert findings(plan(reads("Index Scan", "cdc.change_tables"), reads("Table Scan", "dbo.heap"))) == []


@pytest.mark.parametrize("ordered", [True, False])
def test_a_scan_under_a_top_is_none_when_it_is_ordered(*, ordered: bool):
    found = findings(plan(above("Top", reads("Clustered Index Scan", "cdc.lsn_time_mapping", ordered=ordered))))
    assert bool(found) is not ordered


@pytest.mark.parametrize("operator", ["Sort", "Top N Sort", "Table Spool", "Index Spool"])
def test_a_sort_or_spool_over_a_growing_table_is_found(operator: str):
    found = findings(plan(above(operator, reads("Clustered Index Seek", "cdc.dbo_orders_CT"))))
    assert found == [Finding(operator, "cdc.dbo_orders_CT")]
    assert findings(plan(above(operator, reads("Clustered Index Seek", "sys.sysschobjs")))) == []
