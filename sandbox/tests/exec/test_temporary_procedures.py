"""Temporary procedures [doc: CREATE PROCEDURE]: `#p` is its session's own, `##p` everybody's until its maker leaves."""

from collections.abc import Callable

import pytest

from mssql_sandbox.engine.events import ReturnStatus
from tests.exec.conftest import Client


def test_an_own_procedure_runs_in_its_session_only(connect: Callable[[], Client]) -> None:
    mine, other = connect(), connect()
    assert not mine("CREATE PROC #p AS SELECT 42").errors
    assert mine("EXEC #p").rows == [(42,)]
    assert [event.value for event in mine.rpc("#p").events if isinstance(event, ReturnStatus)] == [0]
    assert other("EXEC #p").errors == [2812]
    other("CREATE PROC #p AS SELECT 43")
    assert (mine("EXEC #p").rows, other("EXEC #p").rows) == ([(42,)], [(43,)])


def test_a_shared_procedure_is_everybodys_until_its_maker_leaves(connect: Callable[[], Client]) -> None:
    maker, other = connect(), connect()
    maker("CREATE PROC ##p AS SELECT 42")
    assert other("EXEC ##p").rows == [(42,)]
    maker.session.close()
    assert other("EXEC ##p").errors == [2812]


def test_an_own_procedure_is_altered_and_ends_with_drop_or_reset(sql: Client) -> None:
    sql("CREATE PROC #p AS SELECT 42")
    assert sql("CREATE PROC #p AS SELECT 1").errors == [2714]
    assert not sql("ALTER PROC #p AS SELECT 43").errors
    assert sql("EXEC #p").rows == [(43,)]
    assert not sql("DROP PROC #p").errors
    assert sql("EXEC #p").errors == [2812]
    sql("CREATE PROC #p AS SELECT 42")
    sql.session.reset(keep_transaction=False)
    assert sql("EXEC #p").errors == [2812]


def test_a_procedure_that_was_rolled_back_is_not_there(sql: Client) -> None:
    sql("BEGIN TRAN; EXEC ('CREATE PROC #p AS SELECT 1'); ROLLBACK")
    assert sql("EXEC #p").errors == [2812]
    sql("CREATE PROC #p AS SELECT 1")
    sql("BEGIN TRAN; DROP PROC #p; ROLLBACK")
    assert sql("EXEC #p").rows == [(1,)]


def test_a_procedure_made_inside_another_outlives_it(sql: Client) -> None:
    sql("CREATE PROC dbo.maker AS EXEC ('CREATE PROC #p AS SELECT 1')")
    sql("EXEC dbo.maker")
    assert sql("EXEC #p").rows == [(1,)]


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("CREATE VIEW #v AS SELECT 1 AS a", 4103),
        ("CREATE FUNCTION #f () RETURNS int AS BEGIN RETURN 1 END", 1074),
        ("DROP PROC #absent", 3701),
        ("CREATE TABLE #t (a int); DROP PROC #t", 3701),
    ],
)
def test_only_procedures_may_be_temporary(sql: Client, statement: str, number: int) -> None:
    assert sql(statement).errors == [number]
