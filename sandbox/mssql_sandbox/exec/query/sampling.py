"""What is said about a table in FROM besides its name: INDEX hints, which must name indexes, and TABLESAMPLE."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.query.leaves import Leaf, computed_values
from mssql_sandbox.exec.query.masks import masked_fields
from mssql_sandbox.exec.query.operators import Operator, Rows
from mssql_sandbox.exec.query.scans import Access, TableScan
from mssql_sandbox.exec.scope import table_fields
from mssql_sandbox.exec.variables import walk
from mssql_sandbox.tsql import ast

_INDEX = "INDEX="
_PAGE = 8060
_ROW = 7
"""Bytes of a page's rows, and of a row besides its columns."""


def check_index_hints(table: Table, name: ast.Name, hints: Sequence[str]) -> None:
    """Errors 307 and 308 when an INDEX hint means no index of the table; 0 is the table itself."""
    for hint in hints:
        index = hint.removeprefix(_INDEX)
        if index == hint:
            continue
        shown = ".".join(name)
        if index.isdecimal():
            known = {one.index_id for one in table.indexes} | {0}
            if int(index) not in known:
                raise SqlError(
                    307, f"Index ID {index} on table '{shown}' (specified in the FROM clause) does not exist."
                )
        elif table.index(index) is None:
            raise SqlError(308, f"Index '{index}' on table '{shown}' (specified in the FROM clause) does not exist.")


def stored_leaf(compiler: Compiler, table: Table, source: ast.NamedTable, qualifier: tuple[str, ...]) -> Leaf:
    """A stored table as a source of FROM, or a sample of it."""
    check_index_hints(table, source.name, source.hints)
    fields = masked_fields(compiler.session, table, table_fields(table, qualifier))
    hints = frozenset(hint.lower() for hint in source.hints)
    if source.sample is None:
        return Leaf(fields, table=table, hints=hints)
    scan = TableScan(table, fields, hints=hints, access=Access(), order=(), computed=computed_values(table))
    return Leaf(fields, operator=_sampled(compiler, scan, table, source.sample))


def _sampled(compiler: Compiler, plan: Operator, table: Table, sample: ast.Sample) -> Operator:
    """Some pages of a table: each is taken or not, so that few rows give all or none [doc].

    Raises:
        SqlError: 497 a variable, 476 a percentage out of range, 477 a number of rows or a seed which is none.
    """
    if any(isinstance(part, ast.Variable) for part in walk((sample.number, sample.seed))):
        raise SqlError(497, "Variables are not allowed in the TABLESAMPLE or REPEATABLE clauses.")
    number = compiler.value(sample.number).fn
    seed = None if sample.seed is None else compiler.value(sample.seed).fn
    page = max(1, _PAGE // (_ROW + sum(map(_bytes, (column.type for column in table.columns)))))

    def rows(context: Context) -> Iterable[tuple]:
        count = float(number((), context))
        found = [row for slice_ in plan.open(context) for row in slice_]
        share = _share(count, len(found), percent=sample.percent)
        source = context.random if seed is None else Random(int(seed((), context)))  # noqa: S311
        for start in range(0, len(found), page):
            if share >= 1 or source.random() < share:
                yield from found[start : start + page]

    return Rows(plan.fields, rows)


def _share(count: float, rows: int, *, percent: bool) -> float:
    if percent:
        if not 0 <= count <= 100:
            raise SqlError(
                476, f'Invalid PERCENT tablesample size "{count:g}" for table. The PERCENT tablesample size must be '
                "between 0 and 100."
            )  # fmt: skip
        return count / 100
    if count < 0 or count != int(count):
        raise SqlError(477, f'Invalid ROWS value or REPEATABLE seed "{count:g}". The value must be an integer.')
    return count / rows if rows else 0


def _bytes(type_: SqlType) -> int:
    """About how much room a value takes."""
    wide = 2 if type_.name in ("nchar", "nvarchar") else 1
    return min(8000, type_.length * wide) // 2 + 2 if type_.length > 0 else 8
