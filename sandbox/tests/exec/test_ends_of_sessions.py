"""Errors that end the connection: RAISERROR of severity 20 and above, KILL [doc: RAISERROR, KILL]."""

import asyncio
from collections.abc import Callable

import pytest

from mssql_sandbox.engine.events import Done, Event, Message
from tests.exec.conftest import Client


def told(events: list[Event]) -> list[tuple[int, int, int]]:
    return [(event.number, event.severity, event.state) for event in events if isinstance(event, Message)]


@pytest.mark.parametrize(
    "text", ["{}", "BEGIN TRY {} END TRY BEGIN CATCH SELECT 1 END CATCH", "EXEC sp_executesql N'{}'; SELECT 1"]
)
@pytest.mark.parametrize("severity", [20, 25])
def test_raiserror_of_severity_20_is_told_after_2745_and_never_caught(sql: Client, text: str, severity: int) -> None:
    raising = f"DECLARE @m varchar(9) = CHAR(71); RAISERROR(@m, {severity}, 3) WITH LOG"
    events = sql(text.format(raising)).events
    assert told(events) == [(2745, 16, 2), (50000, severity, 3)]
    process = f"Process ID {sql.session.spid} has raised user error 50000, severity {severity}."
    assert next(event.text for event in events if isinstance(event, Message)).startswith(process)


def test_request_that_waits_is_told_of_its_kill_by_error_596(connect: Callable[[], Client]) -> None:
    victim, killer = connect(), connect()
    killer("CREATE TABLE dbo.held (a int); INSERT dbo.held VALUES (1)")
    killer("BEGIN TRAN; UPDATE dbo.held SET a = 2")

    async def kill() -> list[Event]:
        waiting = asyncio.create_task(victim.batch("SELECT a FROM dbo.held; SELECT 2"))
        await asyncio.sleep(0)
        await killer.batch(f"KILL {victim.session.spid}")
        return (await waiting).events

    events = asyncio.run(kill())
    assert told(events) == [(596, 21, 1)]
    assert not any(isinstance(event, Done) for event in events)
    assert victim.session.killed
