"""The methods of xml values over their text: value(), query(), exist(), nodes() and modify()."""

from __future__ import annotations

from collections.abc import Iterator

from mssql_sandbox.engine.xml import syntax as x
from mssql_sandbox.engine.xml.atomics import Atomic, atomized, shown
from mssql_sandbox.engine.xml.changes import changed
from mssql_sandbox.engine.xml.evaluation import Focus, Items, SqlValues, evaluate
from mssql_sandbox.engine.xml.parsing import parse, parsed
from mssql_sandbox.engine.xml.tree import Node, Text, Types
from mssql_sandbox.engine.xml.writing import written
from mssql_sandbox.errors import SqlError


class NodeReference(str):
    """A cell of nodes(): the node in its tree; paths begin there and can go up from it."""

    __slots__ = ("node",)
    node: Node

    @classmethod
    def to(cls, node: Node) -> NodeReference:
        """The reference to a node; as text it is the node."""
        made = cls(written([node]))
        made.node = node
        return made


def select(value: str, query: x.Expr, sql: SqlValues, types: Types | None = None) -> Items:
    """The items that a query finds in a value."""
    item = value.node if isinstance(value, NodeReference) else parsed(value, types)
    return evaluate(query, Focus(item, sql=sql))


def exists(value: str, query: x.Expr, sql: SqlValues, types: Types | None = None) -> bool:
    """Whether a query finds anything."""
    return bool(select(value, query, sql, types))


def single_value(value: str, query: x.Expr, sql: SqlValues, types: Types | None = None) -> Atomic | None:
    """The single value that a query finds; None for none. 2389 if there are several after all."""
    found = select(value, query, sql, types)
    if len(found) > 1:
        raise several("value")
    return atomized(found[0]) if found else None


def several(method: str) -> SqlError:
    """2389."""
    return SqlError(
        2389, f"XQuery [{method}()]: 'value()' requires a singleton (or empty sequence), found operand of type "
        "'xdt:untypedAtomic *'"
    )  # fmt: skip


def fragment(value: str, query: x.Expr, sql: SqlValues, types: Types | None = None) -> str:
    """The nodes that a query finds, as a new xml value."""
    return written(_nodes(select(value, query, sql, types)))


def _nodes(items: Items) -> Iterator[Node]:
    """Items as nodes: runs of atomic values are texts, with spaces between."""
    run: list[str] = []
    for item in items:
        if not isinstance(item, Node):
            run.append(shown(item))
            continue
        if run:
            yield Text(None, " ".join(run))
            run = []
        yield item
    if run:
        yield Text(None, " ".join(run))


def references(value: str, query: x.Expr, sql: SqlValues, types: Types | None = None) -> Iterator[NodeReference]:
    """One cell for each node that a query finds."""
    for item in select(value, query, sql, types):
        if isinstance(item, Node):
            yield NodeReference.to(item)


def modified(value: str, change: x.Expr, sql: SqlValues, types: Types | None = None) -> str:
    """The value after a change."""
    document = parse(value, keep_blanks=True)
    document.types = types
    changed(document, change, sql)
    return written([document])


def normalised(text: str, *, keep_blanks: bool = False) -> str:
    """Text as stored in a column of type xml: checked, without insignificant white space."""
    return written([parse(text, keep_blanks=keep_blanks)])
