"""Columns, keys, constraints and indexes made from their definitions, for CREATE TABLE and ALTER TABLE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.masking import parse_mask
from mssql_sandbox.engine.storage import index_changes, rule_changes
from mssql_sandbox.engine.storage.columns import Column, Computed, Default, Identity
from mssql_sandbox.engine.storage.constraints import Check, ForeignKey
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.index import Index
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError, after, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import coerce
from mssql_sandbox.exec.scope import Scope, table_fields
from mssql_sandbox.exec.security import require_columns
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.exec.tables import columnstores
from mssql_sandbox.exec.tables.constraint_names import key_name, rule_name
from mssql_sandbox.exec.tables.partitions import place_table
from mssql_sandbox.exec.tables.typed_xml import collection_named
from mssql_sandbox.exec.variables import walk
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.render import render


class TableBuilder:
    """Makes columns and constraints of one table from their definitions."""

    def __init__(self, compiler: Compiler, database: Database, name: str) -> None:
        self.compiler = compiler
        self.database = database
        self.name = name

    # ---- columns ----------------------------------------------------------------------------------------

    def column(self, node: st.ColumnDefinition, ordinal: int, key: frozenset[str]) -> Column:
        """A column without its computed expression; key columns of a primary key are NOT NULL by default."""
        if node.type is None:
            return Column(node.name, t.INT, nullable=True)
        type_ = self.compiler.type_of(node.type, ordinal=ordinal)
        identity = None
        if node.identity is not None:
            identity = Identity(*node.identity, not_for_replication=node.not_for_replication)
        nullable = node.nullable
        if nullable is None:
            nullable = identity is None and not node.generated and node.name.lower() not in key
            nullable = nullable and self._alias_nullable(node.type, type_)
            if type_.name == "rowversion":
                nullable = False
        elif nullable and node.name.lower() in key:
            raise error(8111, table=self.name)
        if identity is not None:
            if type_.name not in t.INTEGERS | t.EXACT or type_.scale or type_.name == "bit":
                raise SqlError(
                    2749, f"Identity column '{node.name}' must be of data type int, bigint, smallint, tinyint, "
                    "or decimal or numeric with a scale of 0, unencrypted, and constrained to be nonnullable.", state=2,
                )  # fmt: skip
            nullable = False
        column = Column(
            node.name,
            type_,
            nullable=nullable,
            identity=identity,
            rowguid=node.rowguid,
            sparse=node.sparse,
            hidden=node.hidden,
            generated=node.generated,
            masking=None if node.masking is None else parse_mask(node.masking, node.name, type_).text,
        )
        if node.type.schema:
            column.xml_schema = collection_named(self.compiler, node.type.schema).content
        if node.default is not None:
            column.default = self.default(node.default, column)
        return column

    def _alias_nullable(self, written: ast.TypeName, type_: t.SqlType) -> bool:
        """Whether a type of CREATE TYPE … FROM allows NULL if the column does not specify it."""
        found = self.compiler.names.find(written.name) if type_.alias and type_.alias != "sysname" else None
        return True if found is None else bool(found.properties.get("nullable", True))

    def default(self, node: st.Constraint, column: Column) -> Default:
        """A DEFAULT constraint for a column."""
        assert node.expression is not None
        expr = self.compiler.value(node.expression)
        source = coerce(expr, column.type).fn

        def evaluate(context: Any) -> Any:
            if not isinstance(context, Context):
                context = Context(context, [], None)
            return source((), context)

        number = self.database.next_object_id()
        name = node.name or rule_name("DF", self.name, column.name, number)
        return Default(name, number, _outer(render(node.expression)), evaluate, not node.name)

    def computed(
        self, node: st.ColumnDefinition, scope: Scope, session: SessionState
    ) -> tuple[Computed, t.SqlType, bool]:
        """A computed column's expression, type and nullability."""
        assert node.computed is not None
        expr = self.compiler.value(node.computed, scope)
        fn = expr.fn
        names = frozenset(part.parts[-1] for part in walk(node.computed) if isinstance(part, ast.ColumnRef))
        stored = not any(
            isinstance(part, ast.Function) and part.name[-1].upper() in _VARYING for part in walk(node.computed)
        )

        def evaluate(row: tuple) -> Any:
            return fn(row, Context(session, [], None))

        computed = Computed(_outer(render(node.computed)), evaluate, node.persisted, stored, names)
        # Arithmetic may overflow and then gives NULL under some settings, so the server treats it as nullable.
        overflows = isinstance(node.computed, (ast.Binary, ast.Unary))
        return computed, expr.type, expr.nullable or overflows if node.nullable is None else node.nullable

    # ---- constraints --------------------------------------------------------------------------------------

    def add_constraint(self, table: Table, transaction: Transaction, node: st.Constraint, column: str = "") -> None:
        """Add a key, check or foreign key."""
        if node.kind in ("primary", "unique"):
            try:
                key = self.key(table, node)
                index_changes.add_index(table, transaction, key)
            except SqlError as failure:
                raise after(failure, error(1750)) from None
            if key.clustered:
                place_table(table, node.options)
        elif node.kind == "check":
            rule_changes.add_check(table, transaction, self.check(table, node, column), existing=node.check_existing)
        elif node.kind == "foreign":
            rule_changes.add_foreign_key(transaction, self.foreign_key(table, node), existing=node.check_existing)

    def key(self, table: Table, node: st.Constraint) -> Index:
        """The index behind PRIMARY KEY or UNIQUE."""
        primary = node.kind == "primary"
        clustered = node.clustered
        if clustered is None:
            clustered = primary and table.clustered is None
        names = tuple((self._column(table, key.name).name, key.descending) for key in node.columns)
        name = node.name or key_name("PK" if primary else "UQ", table.name, [column for column, _ in names])
        return Index(
            name, 0, names, unique=True, clustered=clustered,
            constraint="PRIMARY KEY" if primary else "UNIQUE", object_id=self.database.next_object_id(),
            system_named=not node.name,
        )  # fmt: skip

    def _column(self, table: Table, name: str) -> Column:
        column = table.column(name)
        if column is None:
            raise error(1911, column=name)
        return column

    def check(self, table: Table, node: st.Constraint, column: str = "") -> Check:
        """A CHECK constraint."""
        assert node.expression is not None
        scope = Scope(table_fields(table, (table.name,)), self.compiler.fold)
        fn = self.compiler.condition(node.expression, scope).fn
        session = self.compiler.session
        number = self.database.next_object_id()
        name = node.name or rule_name("CK", table.name, column, number)
        return Check(
            name, number, _outer(render(node.expression)),
            lambda row: fn(row, Context(session, [], None)), column or None, trusted=node.check_existing,
            system_named=not node.name, not_for_replication=node.not_for_replication,
        )  # fmt: skip

    def foreign_key(self, table: Table, node: st.Constraint) -> ForeignKey:
        """A FOREIGN KEY; without columns it references the primary key (1773 if there is none)."""
        reference = node.reference
        assert reference is not None
        columns = tuple(self._column(table, key.name).name for key in node.columns)
        number = self.database.next_object_id()
        name = node.name or rule_name("FK", table.name, columns[0], number)
        referenced = self.compiler.names.find(reference.table)
        if not isinstance(referenced, Table):
            raise error(1767, name=name, table=".".join(reference.table))
        if not referenced.private:
            require_columns(self.compiler.session, referenced, "REFERENCES", reference.columns or ("",))
        target = reference.columns
        if not target:
            primary = referenced.primary_key
            if primary is None:
                raise error(1773, name=name, table=".".join(reference.table))
            target = tuple(column for column, _ in primary.columns)
        target = tuple(col.name if (col := referenced.column(n)) is not None else n for n in target)
        return ForeignKey(
            name, number, table, columns, referenced, target,
            reference.on_delete, reference.on_update, trusted=node.check_existing, system_named=not node.name,  # type: ignore[arg-type]
            not_for_replication=reference.not_for_replication,
        )  # fmt: skip

    def index(self, table: Table, node: st.IndexDefinition, options: Sequence[tuple[str, str]] = ()) -> Index:
        """An index that is not a constraint."""
        names = tuple((self._column(table, key.name).name, key.descending) for key in node.columns)
        predicate: Callable[[tuple], bool | None] | None = None
        text = ""
        if node.where is not None:
            scope = Scope(table_fields(table, (table.name,)), self.compiler.fold)
            fn = self.compiler.condition(node.where, scope).fn
            session = self.compiler.session
            predicate = lambda row: fn(row, Context(session, [], None))  # noqa: E731
            text = _outer(render(node.where))
        ignore = any(name == "IGNORE_DUP_KEY" and value.upper() == "ON" for name, value in options)
        include = tuple(self._column(table, name).name for name in node.include)
        imagined = any(name == "STATISTICS_ONLY" for name, _ in options)
        return Index(
            node.name, 0, names, node.unique, node.clustered, "", 0, include, predicate, text, ignore,
            disabled=imagined, hypothetical=imagined,
        )  # fmt: skip


_VARYING = frozenset(
    {
        "GETDATE",
        "GETUTCDATE",
        "SYSDATETIME",
        "SYSUTCDATETIME",
        "SYSDATETIMEOFFSET",
        "CURRENT_TIMESTAMP",
        "NEWID",
        "RAND",
    }
)


def _outer(text: str) -> str:
    """Stored texts are in parentheses."""
    return f"({text})"


def build_columns(builder: TableBuilder, definition: st.TableDefinition) -> list[Column]:
    """Columns of a table definition, computed ones still without their expression."""
    keys = [c for c in definition.constraints if c.kind == "primary"]
    keys += [c for col in definition.columns for c in col.constraints if c.kind == "primary"]
    key = frozenset(col.name.lower() for c in keys for col in c.columns)
    return [builder.column(node, ordinal, key) for ordinal, node in enumerate(definition.columns, 1)]


def check_sparse(table: Table) -> None:
    """Error 1731 for an invalid sparse column."""
    for column in table.columns:
        if column.sparse and (not column.nullable or column.default is not None or column.identity is not None):
            raise SqlError(
                1731, f"Cannot create the sparse column '{column.name}' in the table '{table.name}' because an option "
                "or data type specified is not valid. A sparse column must be nullable and cannot have the ROWGUIDCOL, "
                "IDENTITY, or FILESTREAM properties. A sparse column cannot be of the following data types: text, "
                "ntext, image, geometry, geography, or user-defined type."
            )  # fmt: skip


def finish_table(
    builder: TableBuilder, table: Table, definition: st.TableDefinition, transaction: Transaction, session: SessionState
) -> None:
    """Computed columns, keys, constraints and indexes of a new table."""
    fields = table_fields(table, (table.name,))
    for column, node in zip(table.columns, definition.columns, strict=True):
        if node.computed is not None:
            scope = Scope(fields, builder.compiler.fold)
            column.computed, column.type, column.nullable = builder.computed(node, scope, session)
    table.rebind()
    check_sparse(table)
    nodes = [(constraint, node.name) for node in definition.columns for constraint in node.constraints]
    nodes += [(constraint, "") for constraint in definition.constraints]
    if any(constraint.kind == "default" for constraint, _ in nodes):
        raise SqlError(142, "Incorrect syntax for definition of the 'TABLE' constraint.", severity=15)
    if sum(constraint.kind == "primary" for constraint, _ in nodes) > 1:
        raise error(8110, table=table.name)
    order = {"primary": 0, "unique": 1, "check": 2, "foreign": 3}
    clustered_first = sorted(nodes, key=lambda n: (order[n[0].kind], n[0].clustered is not True))
    for constraint, column_name in clustered_first:
        builder.add_constraint(table, transaction, constraint, column_name)
    for index in definition.indexes:
        if index.columnstore:
            columnstores.add(table, transaction, index)
        else:
            index_changes.add_index(table, transaction, builder.index(table, index))
