"""A row that is too wide for columnar buffers is fetched by rows: only what is declared is wide (rule E26)."""

from __future__ import annotations

import pytest

from mssql_cdc.source.sqlserver.columns import RowPlan
from mssql_cdc.source.sqlserver.shared_read import SharedRead
from mssql_cdc_tests.sandbox_source.kit import Shop, rows

MOST_EXPRESSIONS = 4096
"""Of a select list of SQL Server, which the sandbox does not check."""


@pytest.mark.parametrize(
    ("declared", "columns"), [("varchar(8000)", 450), ("nvarchar(4000)", 720), ("varchar(8000)", 1_000)]
)
def test_a_row_that_is_declared_wider_than_a_buffer_is_read(shop: Shop, declared: str, columns: int) -> None:
    """Review of the readers, 3: arrow-odbc gave up for good, with advice about arguments that nobody can give."""
    names = [f"c{number}" for number in range(columns)]
    shop.create("wide", f"id int NOT NULL PRIMARY KEY, {', '.join(f'{name} {declared} NULL' for name in names)}")
    whole = "y" * int(declared.partition("(")[2][:-1])
    shop.run(f"INSERT dbo.wide (id, c0, {names[-1]}) VALUES (1, '', 'é'), (2, NULL, '{whole}')")
    shop.scan()
    empty = dict.fromkeys(names)
    expected = [{"id": 1} | empty | {"c0": "", names[-1]: "é"}, {"id": 2} | empty | {names[-1]: whole}]

    assert [row["after"] for row in rows(shop.chunk("wide"))] == expected
    assert [row["after"] for row in rows(shop.changes("wide"))] == expected
    assert not SharedRead.takes(shop.changes("wide"))
    plan = RowPlan.of(shop.instance("wide").schema.columns)
    assert len(plan.select_list()) < MOST_EXPRESSIONS - 5  # The columns of CDC.


def test_a_row_of_long_texts_that_a_buffer_holds_is_read_in_columns(shop: Shop) -> None:
    shop.create("narrow", "id int NOT NULL PRIMARY KEY, a varchar(8000) NULL, b nvarchar(4000) NULL")
    assert SharedRead.takes(shop.changes("narrow", to=shop.instance("narrow").start_lsn.increment()))
