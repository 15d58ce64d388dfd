"""Methods of hierarchyid values: GetLevel, ToString, GetAncestor, IsDescendantOf; GetRoot and Parse of the type."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mssql_sandbox.engine import hierarchy
from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr, coerce, constant, derived

if TYPE_CHECKING:
    from mssql_sandbox.exec.compiler import Compiler

HIERARCHY = SqlType("hierarchyid", 892)


def _ancestor(value: bytes, count: int) -> bytes | None:
    levels = hierarchy.decode(value)
    return hierarchy.encode(levels[: len(levels) - count]) if 0 <= count <= len(levels) else None


def _descends(value: bytes, parent: bytes) -> int:
    own, above = hierarchy.decode(value), hierarchy.decode(parent)
    return int(own[: len(above)] == above)


_METHODS: dict[str, tuple[SqlType, tuple[SqlType, ...], Callable[..., Any]]] = {
    "getlevel": (t.SMALLINT, (), lambda value: len(hierarchy.decode(value))),
    "tostring": (t.nvarchar(4000), (), hierarchy.to_text),
    "getancestor": (HIERARCHY, (t.INT,), _ancestor),
    "isdescendantof": (t.BIT, (HIERARCHY,), _descends),
}
NAMES = frozenset(_METHODS)


def call(compiler: Compiler, target: Expr, method: str, arguments: list[Expr]) -> Expr:
    """A method of a hierarchyid expression; 6506 for an unknown one."""
    found = _METHODS.get(method.lower())
    if found is None:
        raise SqlError(
            6506, f"Could not find method '{method}' for type 'Microsoft.SqlServer.Types.SqlHierarchyId': this server "
            "knows GetLevel, ToString, GetAncestor and IsDescendantOf.", state=10,
        )  # fmt: skip
    type_, wanted, apply = found
    if len(arguments) != len(wanted):
        raise error(174, name=method, count=len(wanted))
    type_ = t.with_collation(type_, compiler.collation) if type_.name == "nvarchar" else type_
    parts = [target, *(coerce(one, kind) for one, kind in zip(arguments, wanted, strict=True))]
    functions = [part.fn for part in parts]

    def fn(row: tuple, context: Context) -> Any:
        values = [one(row, context) for one in functions]
        return None if None in values else apply(*values)

    return derived(type_, fn, *parts, nullable=True)


def static(compiler: Compiler, method: str, arguments: list[Expr]) -> Expr:
    """hierarchyid::GetRoot() and hierarchyid::Parse(text)."""
    if method.lower() == "getroot" and not arguments:
        return constant(b"", HIERARCHY)
    if method.lower() == "parse" and len(arguments) == 1:
        text = coerce(arguments[0], t.nvarchar(4000, collation=compiler.collation))
        inner = text.fn

        def fn(row: tuple, context: Context) -> Any:
            value = inner(row, context)
            return None if value is None else hierarchy.from_text(value)

        return derived(HIERARCHY, fn, text, nullable=True)
    raise SqlError(6506, f"Could not find method '{method}' for type 'Microsoft.SqlServer.Types.SqlHierarchyId' in "
                         "assembly "
                   "'Microsoft.SqlServer.Types'", state=10)  # fmt: skip
