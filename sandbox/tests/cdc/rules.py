"""Rules as data: statements, a question, and the rows or the error number that must come."""

from __future__ import annotations

from dataclasses import dataclass

from tests.cdc.client import World

CAPTURE = "-- capture"
"""Stands among statements where everything committed is to be brought into the change tables."""
WAIT = "-- wait"
"""Stands where a second has to pass."""
T = "CREATE TABLE dbo.t (id int NOT NULL, a int NULL, b int NULL, CONSTRAINT PK_t PRIMARY KEY (id))"
ENABLE_DB = "EXEC sys.sp_cdc_enable_db"


def enable(table: str = "t", **arguments: str) -> str:
    """`sp_cdc_enable_table`; arguments as T-SQL literals."""
    given = {"source_schema": "N'dbo'", "source_name": f"N'{table}'", "role_name": "NULL", **arguments}
    return "EXEC sys.sp_cdc_enable_table " + ", ".join(f"@{name} = {value}" for name, value in given.items())


TRACKED = (T, ENABLE_DB, enable())
"""A table with a primary key, tracked by one instance."""


@dataclass(frozen=True)
class Rule:
    """What must hold: `expected` are the rows of the question's last result set, or the number of its first error.

    `text` is what the error's text begins with, `procedure` the one that raises it.
    """

    statements: tuple[str, ...]
    question: str
    expected: list[tuple] | int
    text: str = ""
    procedure: str = ""


def prepare(world: World, statements: tuple[str, ...]) -> None:
    """Run the statements; the first error fails the test."""
    for statement in statements:
        if statement == CAPTURE:
            world.capture()
        elif statement == WAIT:
            world.wait(1)
        else:
            world.execute(statement)


def check(world: World, rule: Rule) -> None:
    """Assert a rule; bytes are compared as lower-case hexadecimal text."""
    prepare(world, rule.statements)
    if isinstance(rule.expected, int):
        failure = world.error(rule.question)
        assert (failure.number, failure.text[: len(rule.text)]) == (rule.expected, rule.text)
        assert rule.procedure in ("", failure.procedure)
        return
    rows = [
        tuple(value.hex() if isinstance(value, bytes) else value for value in row) for row in world.rows(rule.question)
    ]
    assert rows == rule.expected
