"""DBCC USEROPTIONS, and what every DBCC says at its end [doc: DBCC, DBCC USEROPTIONS]."""

import pytest

from mssql_sandbox.engine.events import Message
from tests.exec.conftest import Client

AFTER_LOGIN = [
    ("textsize", "2147483647"),
    ("language", "us_english"),
    ("dateformat", "mdy"),
    ("datefirst", "7"),
    ("lock_timeout", "-1"),
    ("quoted_identifier", "SET"),
    ("ansi_null_dflt_on", "SET"),
    ("ansi_warnings", "SET"),
    ("ansi_padding", "SET"),
    ("ansi_nulls", "SET"),
    ("concat_null_yields_null", "SET"),
    ("isolation level", "read committed"),
]


def test_options_are_listed_as_after_login(sql: Client) -> None:
    answer = sql("DBCC USEROPTIONS")
    assert [column.name for column in answer.columns.columns] == ["Set Option", "Value"]
    assert answer.rows == AFTER_LOGIN
    assert answer.counts[0] == len(AFTER_LOGIN)


@pytest.mark.parametrize(
    ("change", "shown", "hidden"),
    [
        ("SET LOCK_TIMEOUT 250", {"lock_timeout": "250"}, ""),
        ("SET DATEFIRST 1", {"datefirst": "1"}, ""),
        ("SET ARITHABORT ON", {"arithabort": "SET"}, ""),
        ("SET ANSI_WARNINGS OFF", {}, "ansi_warnings"),
        ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", {"isolation level": "serializable"}, ""),
        (
            "ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON",
            {"isolation level": "read committed snapshot"},
            "",
        ),
    ],
)
def test_options_that_were_set_show(sql: Client, change: str, shown: dict[str, str], hidden: str) -> None:
    assert not sql(change).errors
    expected = {name: value for name, value in AFTER_LOGIN if name != hidden} | shown
    assert dict(sql("DBCC USEROPTIONS").rows) == expected


@pytest.mark.parametrize(
    ("statement", "numbers"), [("DBCC FREEPROCCACHE", [2528]), ("DBCC FREEPROCCACHE WITH NO_INFOMSGS", [])]
)
def test_the_end_is_told_unless_it_is_not_wanted(sql: Client, statement: str, numbers: list[int]) -> None:
    assert [event.number for event in sql(statement).events if isinstance(event, Message)] == numbers
