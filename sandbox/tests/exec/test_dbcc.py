"""What every DBCC says at its end [doc: DBCC]."""

import pytest

from mssql_sandbox.engine.events import Message
from tests.exec.conftest import Client


@pytest.mark.parametrize(
    ("statement", "numbers"), [("DBCC FREEPROCCACHE", [2528]), ("DBCC FREEPROCCACHE WITH NO_INFOMSGS", [])]
)
def test_the_end_is_told_unless_it_is_not_wanted(sql: Client, statement: str, numbers: list[int]) -> None:
    assert [event.number for event in sql(statement).events if isinstance(event, Message)] == numbers
