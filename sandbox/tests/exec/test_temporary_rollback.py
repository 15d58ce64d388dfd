"""Temporary tables belong to the transaction that makes or drops them, as all DDL does."""

import pytest

from tests.exec.conftest import Client


@pytest.mark.parametrize("make", ["CREATE TABLE #t (i int)", "SELECT 1 AS i INTO #t"])
def test_a_table_that_was_rolled_back_is_not_there(sql: Client, make: str) -> None:
    sql(f"BEGIN TRAN; {make}; ROLLBACK")
    assert sql("SELECT i FROM #t").errors == [208]
    assert not sql(f"BEGIN TRAN; {make}; COMMIT").errors
    assert not sql("SELECT i FROM #t").errors


def test_a_dropped_table_comes_back_with_its_rows(sql: Client) -> None:
    sql("CREATE TABLE #t (i int); INSERT #t VALUES (1); BEGIN TRAN; DROP TABLE #t")
    assert sql("SELECT i FROM #t").errors == [208]
    sql("ROLLBACK")
    assert sql("SELECT i FROM #t").rows == [(1,)]


def test_a_select_into_that_fails_leaves_no_table(sql: Client) -> None:
    assert sql("SELECT 1 / v AS x INTO #t FROM (VALUES (1), (0)) s (v)").errors == [8134]
    assert sql("SELECT x FROM #t").errors == [208]


def test_explicit_collations_that_differ_do_not_join(sql: Client) -> None:
    text = "SELECT 'a' COLLATE Latin1_General_CI_AS + 'b' COLLATE Latin1_General_CS_AS"
    assert sql(text).errors == [468]
