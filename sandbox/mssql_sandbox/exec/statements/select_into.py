"""SELECT … INTO new table."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.storage.columns import Column, Identity
from mssql_sandbox.engine.storage.objects import is_private
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.query.masks import concealed
from mssql_sandbox.exec.query.operators import gather
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.scope import Field
from mssql_sandbox.exec.statements.tables import note_shared
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st


@dataclass(frozen=True, slots=True)
class _Numbered:
    """IDENTITY(type, seed, increment) in the select list."""

    place: int
    type: ast.TypeName
    seed: int
    increment: int


def _numbered(body: ast.QueryBody) -> tuple[ast.QueryBody, _Numbered | None]:
    """The query with a column of zeros in place of the IDENTITY function, and its arguments; 177 for two of them."""
    if not isinstance(body, ast.Select):
        return body, None
    found: _Numbered | None = None
    items = list(body.items)
    for place, item in enumerate(items):
        node = item.expression
        if not (isinstance(node, ast.Function) and len(node.name) == 1 and node.name[0].upper() == "IDENTITY"):
            continue
        if found is not None:
            raise SqlError(8108, f"Cannot add identity column to table '{body.into[-1]}', which already has one.")
        kind, *numbers = node.arguments
        name = kind.parts if isinstance(kind, ast.ColumnRef) else kind.name if isinstance(kind, ast.Function) else ()
        sizes = tuple(int(str(one.value)) for one in getattr(kind, "arguments", ()) if isinstance(one, ast.Literal))
        values = [int(str(one.value)) for one in numbers if isinstance(one, ast.Literal)]
        if not name or len(values) not in (0, 2) or len(values) != len(numbers):
            raise error(102, near="IDENTITY")
        seed, increment = values or (1, 1)
        found = _Numbered(place, ast.TypeName(name, sizes), seed, increment)
        items[place] = replace(item, expression=ast.Literal(0, "int"))
    return replace(body, items=tuple(items)), found


def _column(field: Field) -> Column:
    if not field.name:
        raise error(1038)
    origin = field.origin
    identity = Identity() if origin is not None and origin.identity else None
    type_ = t.binary(8) if field.type.name == "rowversion" else field.type
    return Column(field.name, type_, nullable=field.nullable, identity=identity)


def into_of(body: ast.QueryBody) -> ast.Name:
    """The table that a query creates; in set operations the first SELECT names it. Empty: none."""
    if isinstance(body, ast.SetOperation):
        body, _ = body.chain()
    return body.into if isinstance(body, ast.Select) else ()


def _without_into(body: ast.QueryBody) -> ast.QueryBody:
    if isinstance(body, ast.SetOperation):
        first, steps = body.chain()
        found = _without_into(first)
        for operator, operand in steps:
            found = ast.SetOperation(operator, found, operand)
        return found
    return replace(body, into=()) if isinstance(body, ast.Select) else body


def select_into(frame: Frame, node: st.SelectStatement) -> Steps:
    """SELECT … INTO new table: columns take names, types, nullability and identity from the query."""
    name = into_of(node.query.body)
    session = frame.session
    body, numbered = _numbered(node.query.body)
    query = replace(node.query, body=_without_into(body))
    plan = frame.compiled(node, lambda compiler: concealed(compiler.query(query)))
    compiler = frame.compiler()

    def work(transaction: Transaction) -> int:
        columns = [_column(field) for field in plan.fields]
        if numbered is not None:
            identity = Identity(numbered.seed, numbered.increment)
            type_ = compiler.type_of(numbered.type)
            columns[numbered.place] = Column(columns[numbered.place].name, type_, nullable=False, identity=identity)
        if is_private(name[-1]):
            table = session.server.database("tempdb").make_table("dbo", name[-1], columns, kind="temporary")
        else:
            database, schema = compiler.names.schema_for_new(name)
            table = database.create_table(transaction, schema, name[-1], columns)
            note_shared(session, table)
        rows = gather(plan.open(frame.context(transaction)))
        if numbered is not None:
            place = numbered.place
            rows = [(*row[:place], table.next_identity(), *row[place + 1 :]) for row in rows]
        table.insert_many(transaction, rows)
        identity_at = next((i for i, col in enumerate(table.columns) if col.identity is not None), -1)
        for row in rows if identity_at >= 0 else ():
            table.columns[identity_at].identity.note(row[identity_at])  # type: ignore[union-attr]
        if table.private:
            session.temporary.add(table, transaction)
            transaction.on_undo(session.routines.clear)
        return len(rows)

    count = yield from session.transactions.run(work)
    session.row_count = count
    yield session.done(frame, count, "select into")
    return None
