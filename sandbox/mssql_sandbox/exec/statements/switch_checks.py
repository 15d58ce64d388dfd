"""The checks of ALTER TABLE … SWITCH: both tables must match, and the rows must belong in the target.

Numbers and texts: "Database engine events and errors (4000 to 4999)" [doc].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mssql_sandbox.engine.comparison import sort_key
from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.storage.constraints import Check
from mssql_sandbox.engine.storage.index import Index
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.types import declaration
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import coerce
from mssql_sandbox.exec.query.sargs import conjuncts
from mssql_sandbox.exec.tables.partitions import Partitioned
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql.parser import parse_expression

FAILED = "ALTER TABLE SWITCH statement failed"


@dataclass(frozen=True, slots=True)
class Part:
    """A table without partitions, or one partition of a partitioned table."""

    table: Table
    partitioned: Partitioned | None = None
    number: int = 0

    def holds(self, row: tuple) -> bool:
        """Whether a row of the table is in the part."""
        return self.partitioned is None or self.partitioned.number(self.table, row) == self.number


def require_alike(source: Table, target: Table) -> None:
    """Columns (4942 to 4945, 4965, 4985), indexes (4913, 4947), foreign keys (4967, 4968) that differ."""
    _require_columns(source, target)
    _require_indexes(source, target)
    for key in source.referenced_by:
        if key.table is not source:
            raise SqlError(4967, f"{FAILED}. SWITCH is not allowed because source table '{source.long_name}' contains "
                           f"primary key for constraint '{key.name}'.")  # fmt: skip
    for key in target.foreign_keys:
        if not any(own.columns == key.columns and own.referenced is key.referenced for own in source.foreign_keys):
            raise SqlError(4968, f"{FAILED}. Target table '{target.long_name}' has foreign key for constraint "
                           f"'{key.name}' but source table '{source.long_name}' does not have corresponding "
                           "key.")  # fmt: skip


def _require_columns(source: Table, target: Table) -> None:
    one, other = source.long_name, target.long_name
    if len(source.columns) != len(target.columns):
        raise SqlError(
            4943, f"{FAILED} because table '{one}' has {len(source.columns)} columns and table '{other}' has "
            f"{len(target.columns)} columns."
        )  # fmt: skip
    for number, (own, its) in enumerate(zip(source.columns, target.columns, strict=True), 1):
        if own.name.lower() != its.name.lower():
            raise SqlError(
                4942, f"{FAILED} because column '{own.name}' at ordinal {number} in table '{one}' has a different name "
                f"than the column '{its.name}' at the same ordinal in table '{other}'."
            )  # fmt: skip
        _require_column(own, its, one, other)


def _require_column(own: Column, its: Column, one: str, other: str) -> None:
    if declaration(own.type) != declaration(its.type):
        raise SqlError(
            4944, f"{FAILED} because column '{own.name}' has data type {declaration(own.type)} in source table '{one}' "
            f"which is different from its type {declaration(its.type)} in target table '{other}'."
        )  # fmt: skip
    if own.type != its.type:
        raise SqlError(4945, f"{FAILED} because column '{own.name}' does not have the same collation in tables '{one}' "
                       f"and '{other}'.")  # fmt: skip
    if own.nullable != its.nullable:
        raise SqlError(4985, f"{FAILED} because column '{own.name}' does not have the same nullability attribute in "
                       f"tables '{one}' and '{other}'.")  # fmt: skip
    if (own.computed is None) != (its.computed is None):
        first, second = (one, other) if own.computed is not None else (other, one)
        raise SqlError(4965, f"{FAILED}. Column '{own.name}' in table '{first}' is computed column but the same column "
                       f"in '{second}' is not computed.")  # fmt: skip


def _require_indexes(source: Table, target: Table) -> None:
    for table, lacking in ((source, target), (target, source)):
        if table.clustered is not None and lacking.clustered is None:
            raise SqlError(4913, f"{FAILED}. The table '{table.long_name}' has clustered index "
                           f"'{table.clustered.name}' while the table '{lacking.long_name}' does not have clustered "
                           "index.")  # fmt: skip
    known = {_shape(index) for index in source.indexes}
    for index in target.indexes:
        if not index.disabled and _shape(index) not in known:
            raise SqlError(4947, f"{FAILED}. There is no identical index in source table '{source.long_name}' for the "
                           f"index '{index.name}' in target table '{target.long_name}' .")  # fmt: skip


def _shape(index: Index) -> tuple[Any, ...]:
    columns = tuple((name.lower(), down) for name, down in index.columns)
    return columns, index.unique, index.clustered, frozenset(name.lower() for name in index.included)


# ---- ranges --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Range:
    """Values between two bounds, each as (sort key, inclusive); None: no bound. `null`: NULL is included."""

    low: tuple[Any, bool] | None = None
    high: tuple[Any, bool] | None = None
    null: bool = True

    def within(self, other: _Range) -> bool:
        """Whether every value is in the other range."""
        return (
            (other.null or not self.null)
            and (other.low is None or (self.low is not None and (self.low[0], not self.low[1]) >= (
                other.low[0], not other.low[1])))
            and (other.high is None or (self.high is not None and self.high <= other.high))
        )  # fmt: skip


def require_within(compiler: Compiler, source: Part, target: Part) -> None:
    """4970 to 4973, 4982: the target's checks and partition must allow all values that the source may contain."""
    _require_checks(compiler, source, target.table)
    if target.partitioned is None:
        return
    wanted = _of_partition(target)
    if source.partitioned is not None:
        if not _of_partition(source).within(wanted):
            raise SqlError(
                4973, f"{FAILED}. Range defined by partition {source.number} in table '{source.table.long_name}' is "
                f"not a subset of range defined by partition {target.number} in table '{target.table.long_name}'."
            )  # fmt: skip
        return
    column = source.table.column(target.partitioned.column)
    assert column is not None
    if not _of_checks(compiler, source.table, column, source.table.checks).within(wanted):
        raise SqlError(
            4982, f"{FAILED}. Check constraints of source table '{source.table.long_name}' allow values that are not "
            f"allowed by range defined by partition {target.number} on target table '{target.table.long_name}'."
        )  # fmt: skip


def _of_partition(part: Part) -> _Range:
    assert part.partitioned is not None
    function = part.partitioned.scheme.function
    key = sort_key(function.type) or (lambda item: item)
    bounds = [key(one) for one in function.boundaries]
    low = (bounds[part.number - 2], function.right) if part.number > 1 else None
    high = (bounds[part.number - 1], not function.right) if part.number <= len(bounds) else None
    column = part.table.column(part.partitioned.column)
    return _Range(low, high, null=part.number == 1 and column is not None and column.nullable)


def _require_checks(compiler: Compiler, source: Part, target: Table) -> None:
    """Every check of the target is one of the source's, or follows from the range of the source's partition."""
    known = {check.text for check in source.table.checks}
    for check in target.checks:
        if check.text in known:
            continue
        column = None if source.partitioned is None else target.column(source.partitioned.column)
        if column is not None and all(list(_about(target, column, node)) for node in _conditions(check)):
            if _of_partition(source).within(_of_checks(compiler, target, column, [check])):
                continue
            raise SqlError(4972, f"{FAILED}. Check constraints or partition function of source table "
                           f"'{source.table.long_name}' allows values that are not allowed by check constraints or "
                           f"partition function on target table '{target.long_name}'.")  # fmt: skip
        number, kind = (4971, "column") if check.column else (4970, "table")
        raise SqlError(number, f"{FAILED}. Target table '{target.long_name}' has a {kind} level check constraint "
                       f"'{check.name}' but the source table '{source.table.long_name}' does not have a corresponding "
                       "constraint.")  # fmt: skip


def _of_checks(compiler: Compiler, table: Table, column: Column, checks: Sequence[Check]) -> _Range:
    """The range that trusted CHECK constraints allow for a column; a check allows NULL."""
    found = _Range(null=column.nullable)
    key = sort_key(column.type) or (lambda item: item)
    context = Context(compiler.session, [], None)
    for sign, node in (one for check in checks for part in _conditions(check) for one in _about(table, column, part)):
        if sign == "not null":
            found.null = False
            continue
        value = key(coerce(compiler.value(node), column.type).fn((), context))
        if sign in (">", ">=", "=") and (found.low is None or value > found.low[0]):
            found.low = (value, sign != ">")
        if sign in ("<", "<=", "=") and (found.high is None or value < found.high[0]):
            found.high = (value, sign != "<")
    return found


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def _conditions(check: Check) -> Sequence[ast.Expression]:
    return conjuncts(parse_expression(check.text)) if check.enabled and check.trusted else ()


def _about(table: Table, column: Column, node: ast.Expression) -> Iterator[tuple[str, Any]]:
    """The bounds that a condition gives to the column by comparing it with constants."""

    def is_column(node: Any) -> bool:
        return isinstance(node, ast.ColumnRef) and table.column(node.parts[-1]) is column

    if isinstance(node, ast.IsNull) and node.negated and is_column(node.operand):
        yield "not null", None
    elif isinstance(node, ast.Comparison) and node.operator in _MIRRORED:
        if is_column(node.left):
            yield node.operator, node.right
        elif is_column(node.right):
            yield _MIRRORED[node.operator], node.left
    elif isinstance(node, ast.Between) and not node.negated and is_column(node.operand):
        yield ">=", node.low
        yield "<=", node.high
