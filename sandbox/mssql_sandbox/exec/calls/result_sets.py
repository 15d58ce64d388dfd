"""EXECUTE … WITH RESULT SETS: what a procedure sends, under other names and types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from mssql_sandbox.engine.events import Columns, Rows
from mssql_sandbox.engine.types import ResultColumn
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.expressions.base import change
from mssql_sandbox.exec.flow import StepsTo
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.tsql import statements as st

Cell = Callable[[Any], Any]
T = TypeVar("T")


def described(frame: Frame, steps: StepsTo[T], sets: tuple[tuple[st.ResultColumnDefinition, ...], ...]) -> StepsTo[T]:
    """The steps with their result sets described anew. 11535, 11536 other numbers of sets, 11537 of columns."""
    compiler = frame.compiler()
    number = 0
    cells: list[Cell | None] = []
    sent: Any = None
    while True:
        try:
            event = steps.send(sent)
        except StopIteration as end:
            if number < len(sets):
                raise SqlError(
                    11536, f"EXECUTE statement failed because its WITH RESULT SETS clause specified {len(sets)} result "
                    f"set(s), but the statement only sent {number} result set(s) at run time."
                ) from None  # fmt: skip
            return end.value
        if isinstance(event, Columns):
            number += 1
            if number > len(sets):
                raise SqlError(
                    11535, f"EXECUTE statement failed because its WITH RESULT SETS clause specified {len(sets)} result "
                    "set(s), and the statement tried to send more result sets than this."
                )  # fmt: skip
            wanted = sets[number - 1]
            if len(wanted) != len(event.columns):
                raise SqlError(
                    11537, f"EXECUTE statement failed because its WITH RESULT SETS clause specified {len(wanted)} "
                    f"column(s) for result set number {number}, but the statement sent {len(event.columns)} column(s) "
                    "at run time."
                )  # fmt: skip
            types = [compiler.type_of(column.type) for column in wanted]
            cells = [change(have.type, type_) for have, type_ in zip(event.columns, types, strict=True)]
            event = Columns(
                tuple(
                    ResultColumn(column.name, type_, nullable=column.nullable)
                    for column, type_ in zip(wanted, types, strict=True)
                )
            )
        elif isinstance(event, Rows):
            event = Rows([_row(row, cells) for row in event.rows])
        sent = yield event


def _row(row: tuple, cells: list[Cell | None]) -> tuple:
    return tuple([value if cell is None else cell(value) for value, cell in zip(row, cells, strict=True)])
