"""Compiled expressions and operations common to all of them: constants, coercion, once-per-statement values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mssql_sandbox.engine.conversion import converter
from mssql_sandbox.engine.conversion_columns import ColumnFunction, column_converter
from mssql_sandbox.engine.precedence import is_implicit
from mssql_sandbox.engine.types import INT, STRINGS, ResultColumn, SqlType, reported_name
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.context import Context

Fn = Callable[[tuple, Context], Any]
Fn1 = Callable[[Any], Any]
Chain = tuple[int, tuple[ColumnFunction, ...]]
"""A column's position in the row, and functions of whole columns to apply one after the other."""
_DAYS = frozenset({"date", "time", "datetime2", "datetimeoffset"})


@dataclass(frozen=True, slots=True)
class Expr:
    """`fn` gives the value in storage form of `type`; truth values (True, False, None) where `predicate`.

    `column` is the place in the row for a plain column of the own level, else -1. `constant`: the value does not depend
    on the own level's rows; `varying`: it depends on outer rows or differs from call to call, so it cannot be kept for
    the statement. `simple`: evaluating costs next to nothing. `null`: the word NULL. `rank` orders collations: 0
    literals and variables, 1 columns, 2 COLLATE clauses. `chain`: the same value as functions of a whole column, where
    it depends on nothing else. `masking`: how those without UNMASK see the value of a subquery.
    """

    type: SqlType
    fn: Fn
    nullable: bool = True
    column: int = -1
    constant: bool = False
    simple: bool = False
    predicate: bool = False
    null: bool = False
    varying: bool = False
    rank: int = 0
    literal: bool = False
    value: Any = None
    origin: ResultColumn | None = None
    chain: Chain | None = None
    masking: str = ""


def chain_of(expr: Expr) -> Chain | None:
    """The chain of an expression; that of a plain column has no functions."""
    return (expr.column, ()) if expr.column >= 0 else expr.chain


def chained(expr: Expr, function: ColumnFunction) -> Chain | None:
    """The chain of an expression with one more function applied."""
    chain = chain_of(expr)
    return None if chain is None else (chain[0], (*chain[1], function))


def constant(value: object, type_: SqlType, *, literal: bool = True) -> Expr:
    """A fixed value."""
    return Expr(
        type_, lambda _row, _context: value, value is None, constant=True, simple=True, literal=literal, value=value
    )


NULL = replace(constant(None, INT), null=True)


def column(place: int, type_: SqlType, *, nullable: bool = True, origin: ResultColumn | None = None) -> Expr:
    """A column of its own query level."""
    return Expr(type_, lambda row, _context: row[place], nullable, column=place, rank=1, origin=origin)


def outer_column(level: int, place: int, type_: SqlType, *, nullable: bool = True) -> Expr:
    """A column of an enclosing level."""
    return Expr(type_, lambda _row, context: context.outer[level][place], nullable, constant=True, simple=True,
                varying=True, rank=1)  # fmt: skip


def change(source: SqlType, target: SqlType) -> Fn1 | None:
    """How values of `source`, NULL included, become values of `target`; None if they already are."""
    if source == target or same_storage(source, target):
        return None
    function = converter(source, target)
    return lambda value: None if value is None else function(value)


def same_storage(source: SqlType, target: SqlType) -> bool:
    """Whether every value of `source` equals, unchanged, the converted value of `target`."""
    if source.name == target.name:
        if source.name in ("varchar", "nvarchar", "varbinary") and source.collation == target.collation:
            return target.length == -1 or (source.length != -1 and source.length <= target.length)
        return source.name in STRINGS and source.length == target.length and source.name.startswith("n")
    if source.name in ("varchar", "char") and target.name == "nvarchar":
        return target.length == -1 or (source.length != -1 and source.length <= target.length)
    widening = {"tinyint": 1, "smallint": 2, "int": 3, "bigint": 4}
    if source.name in widening and target.name in widening:
        return widening[source.name] <= widening[target.name]
    return source.name == "bit" and target.name in widening


def require_implicit(source: SqlType, target: SqlType) -> None:
    """Refuse conversions that need CAST (257) and impossible ones (206), where a value is stored or passed."""
    if source == target:
        return
    have, want = reported_name(source), reported_name(target)
    try:
        converter(source, target)
    except SqlError as failure:
        if failure.number != 529:
            raise
        raise error(206, left=have, right=want) from None
    if not is_implicit(source, target):
        clash = source.name in _DAYS and target.name not in STRINGS
        raise error(206, left=have, right=want) if clash else error(257, source=have, target=want)


def derived(type_: SqlType, fn: Fn, *parts: Expr, nullable: bool | None = None, predicate: bool = False) -> Expr:
    """An expression computed from others: constant if all are, varying if one is, nullable if one is."""
    return Expr(
        type_,
        fn,
        any(part.nullable for part in parts) if nullable is None else nullable,
        constant=all(part.constant for part in parts),
        varying=any(part.varying for part in parts),
        predicate=predicate,
        rank=max((part.rank for part in parts), default=0),
    )


def coerce(expr: Expr, target: SqlType) -> Expr:
    """The expression with its value converted implicitly to `target`."""
    if expr.null:
        return replace(expr, type=target)
    changed = change(expr.type, target)
    if changed is None:
        return expr if expr.type == target else replace(expr, type=target)
    if expr.literal:
        try:
            value = changed(expr.value)
        except SqlError:
            pass  # conversion errors are run-time errors: raised when the statement is reached
        else:
            return constant(value, target)
    inner, chain = expr.fn, chained(expr, column_converter(expr.type, target))
    if expr.column >= 0:
        place = expr.column
        return Expr(target, lambda row, _context: changed(row[place]), expr.nullable, rank=expr.rank, chain=chain)
    return Expr(
        target, lambda row, context: changed(inner(row, context)), expr.nullable, constant=expr.constant,
        varying=expr.varying, rank=expr.rank, chain=chain,
    )  # fmt: skip


def hoist(expr: Expr) -> Expr:
    """A constant expression evaluated once per statement instead of once per row."""
    if not expr.constant or expr.simple or expr.varying:
        return expr
    inner = expr.fn
    key = object()

    def fn(row: tuple, context: Context) -> Any:
        cache = context.cache
        if key in cache:
            return cache[key]
        value = cache[key] = inner(row, context)
        return value

    return replace(expr, fn=fn, simple=True)
