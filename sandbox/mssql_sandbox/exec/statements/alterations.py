"""ALTER TABLE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mssql_sandbox.cdc_messages import cdc_error
from mssql_sandbox.engine.conversion import assigner
from mssql_sandbox.engine.masking import parse_mask
from mssql_sandbox.engine.storage import alter, index_changes, rule_changes, schema_change
from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.storage.index import Index
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec import temporal
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.definition_rights import require_alter
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.scope import Scope, table_fields
from mssql_sandbox.exec.statements import database_triggers
from mssql_sandbox.exec.statements import table_settings as settings
from mssql_sandbox.exec.tables.builder import TableBuilder, check_sparse
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st


def _altered(frame: Frame, name: ast.Name, work: Callable[[Compiler, Table, Transaction], None]) -> Steps:
    """Run a change of a table's definition as one statement."""
    session = frame.session
    compiler = frame.compiler()

    def run(transaction: Transaction) -> None:
        found = compiler.names.find(name)
        if not isinstance(found, Table):
            raise error(4902, name=".".join(name))
        require_alter(session, found)
        work(compiler, found, transaction)

    yield from session.transactions.run(run)
    yield session.done(frame, None, "alter table")
    return None


def _command(frame: Frame, node: st.Statement) -> str:
    """The statement's text, for cdc.ddl_history."""
    return frame.session.statement_text(node)


def _add(frame: Frame, node: st.AlterTableAdd) -> Steps:
    session = frame.session

    def work(compiler: Compiler, table: Table, transaction: Transaction) -> None:
        builder = TableBuilder(compiler, table.database, table.name)
        definition = node.definition
        key = frozenset(
            col.name.lower() for c in definition.constraints if c.kind == "primary" for col in c.columns
        ) | frozenset(col.name.lower() for col in definition.columns for c in col.constraints if c.kind == "primary")
        for number, item in enumerate(definition.columns, len(table.columns) + 1):
            column = builder.column(item, number, key)
            if item.computed is not None:
                scope = Scope(table_fields(table, (table.name,)), compiler.fold)
                column.computed, column.type, column.nullable = builder.computed(item, scope, session)
            alter.add_column(table, transaction, column, _fill(frame, column, with_values=node.with_values))
            check_sparse(table)
            schema_change.log_ddl(
                table, transaction, "add column", _command(frame, node), column=column.name, details=column
            )
            if table.history is not None:
                _add_to_history(table.history, transaction, column)
        if definition.period is not None:
            temporal.add_period(table, definition.period)
        for item in definition.columns:
            for constraint in item.constraints:
                builder.add_constraint(table, transaction, constraint, item.name)
        for constraint in definition.constraints:
            if constraint.kind == "default":
                _add_default(builder, table, transaction, constraint)
            else:
                builder.add_constraint(table, transaction, constraint)
        for index in definition.indexes:
            index_changes.add_index(table, transaction, builder.index(table, index))

    yield from _altered(frame, node.table, work)
    return None


def _fill(frame: Frame, column: Column, *, with_values: bool) -> Callable[[], object]:
    """The value of existing rows in a new column: identity values, the default if NULL is not allowed, else NULL."""
    identity, default = column.identity, column.default
    if identity is not None:
        return lambda: identity.take(column.type)
    if default is not None and (with_values or not column.nullable):
        context = Context(frame.session, [], None)
        return lambda: default.evaluate(context)
    return lambda: None


def _add_to_history(history: Table, transaction: Transaction, column: Column) -> None:
    """A new column of a system-versioned table is added to its history too; former rows take the default there."""
    if column.identity is not None or column.computed is not None:
        raise SqlError(
            13544, f"System-versioned table schema modification failed because adding column '{column.name}' (identity "
            "or computed) to a table whose SYSTEM_VERSIONING is ON is not supported."
        )  # fmt: skip
    default = None if column.nullable else column.default
    alter.add_column(
        history, transaction, temporal.former_column(column),
        (lambda: default.evaluate(transaction)) if default is not None else (lambda: None),
    )  # fmt: skip


def _add_default(builder: TableBuilder, table: Table, transaction: Transaction, node: st.Constraint) -> None:
    column = table.column(node.column)
    if column is None:
        raise error(1752, column=node.column, table=table.name)
    if column.default is not None:
        raise SqlError(1781, "Column already has a DEFAULT bound to it.")
    schema_change.begin_ddl(table, transaction)
    column.default = builder.default(node, column)
    transaction.on_undo(lambda: setattr(column, "default", None))
    _touch(table)


def _touch(table: Table) -> None:
    """Invalidate compiled statements: they compare the list of columns by identity."""
    table.columns = list(table.columns)


def _alter_column(frame: Frame, node: st.AlterColumn) -> Steps:
    def work(compiler: Compiler, table: Table, transaction: Transaction) -> None:
        old = table.column(node.column)
        if old is None:
            raise error(4924, statement="ALTER TABLE ALTER COLUMN", column=node.column, table=table.name)
        if node.type is None:
            _column_property(table, old, node)
            return
        if old.computed is not None or old.is_rowversion:
            kind = "COMPUTED" if old.computed is not None else "timestamp"
            raise SqlError(4928, f"Cannot alter column '{old.name}' because it is '{kind}'.")
        type_ = compiler.type_of(node.type)
        if old.replicated and type_.name in _TRUNCATABLE and not frame.session.options.ansi_warnings:
            raise cdc_error(22888, procedure="")
        if not node.type.collation and type_.collation is not None and old.type.collation is not None:
            type_ = replace(type_, collation=old.type.collation)
        _refuse_dependants(table, old, type_)
        nullable = True if node.nullable is None else node.nullable
        column = Column(
            old.name, type_, nullable=nullable, identity=old.identity, default=old.default, rowguid=old.rowguid,
            sparse=old.sparse, hidden=old.hidden,
            masking=old.masking if node.masking is None else parse_mask(node.masking, old.name, type_).text,
            replicated=old.replicated,
        )  # fmt: skip
        convert = assigner(old.type, type_, table=table.long_name, column=old.name)
        before = alter.alter_column(table, transaction, column, convert)
        if table.history is not None:
            alter.alter_column(table.history, transaction, temporal.former_column(column), convert)
        schema_change.log_ddl(
            table, transaction, "alter column", _command(frame, node), column=old.name, details=(before, column)
        )

    yield from _altered(frame, node.table, work)
    return None


_VARIABLE = frozenset({"varchar", "nvarchar", "varbinary"})
_TRUNCATABLE = frozenset({"char", "varchar", "nchar", "nvarchar", "binary", "varbinary"})


def _refuse_dependants(table: Table, column: Column, type_: SqlType) -> None:
    """5074/4922: an index prevents a change of the type, except that a variable length grows."""
    old = column.type
    grows = old.name in _VARIABLE and type_.length >= old.length and type_ == replace(old, length=type_.length)
    if type_ == old or grows:
        return
    users = [
        ("object" if index.constraint else "index", index.name)
        for index in table.indexes
        if column.name in index.included or any(name == column.name for name, _ in index.columns)
    ]
    if users:
        raise _accessed("ALTER COLUMN", column, users)


def _column_property(table: Table, column: Column, node: st.AlterColumn) -> None:
    action, word = node.property.split(" ", 1)
    attribute = {"rowguidcol": "rowguid", "sparse": "sparse", "hidden": "hidden"}.get(word)
    if attribute is not None:
        setattr(column, attribute, action == "add")
    elif word == "persisted" and column.computed is not None:
        column.computed.persisted = action == "add"
    elif word == "masked":
        if node.masking is None and column.masking is None:
            raise SqlError(16007, f"The column '{column.name}' does not have a data masking function.", state=0)
        column.masking = None if node.masking is None else parse_mask(node.masking, column.name, column.type).text
    elif word == "not for replication":
        if column.identity is None:
            raise SqlError(
                4991, f"Cannot alter NOT FOR REPLICATION attribute on column '{column.name}' in table '{table.name}' "
                "because this column is not an identity column."
            )  # fmt: skip
        column.identity.not_for_replication = action == "add"
    _touch(table)


def _drop(frame: Frame, node: st.AlterTableDrop) -> Steps:
    def work(_compiler: Compiler, table: Table, transaction: Transaction) -> None:
        for kind, name in node.items:
            if kind == "column":
                _drop_column(frame, table, transaction, name, node)
            elif kind == "constraint":
                _drop_constraint(table, transaction, name, if_exists=node.if_exists)
            else:
                temporal.drop_period(table, transaction)

    yield from _altered(frame, node.table, work)
    return None


def _accessed(action: str, column: Column, users: Sequence[tuple[str, str]]) -> SqlError:
    """5074 for each (kind, name) that needs the column, then 4922."""
    last = error(4922, statement=f"ALTER TABLE {action} {column.name}")
    last.before = tuple(error(5074, kind=kind, name=name, column=column.name) for kind, name in users)
    return last


def _drop_column(frame: Frame, table: Table, transaction: Transaction, name: str, node: st.AlterTableDrop) -> None:
    column = table.column(name)
    if column is None:
        if node.if_exists:
            return
        raise error(4924, statement="ALTER TABLE DROP COLUMN", column=name, table=table.name)
    users = alter.dependants(table, column.name)
    if users:
        raise _accessed("DROP COLUMN", column, users)
    schema_change.log_ddl(table, transaction, "drop column", _command(frame, node), column=column.name, details=column)
    alter.drop_column(table, transaction, name)
    if table.history is not None:
        alter.drop_column(table.history, transaction, name)


def refuse_captured_key(table: Table, index: Index) -> None:
    """Errors 22979, 22983: change data capture identifies rows by this key."""
    catalog = table.database.server.catalog
    if table.tracked and catalog is not None:
        catalog.cdc.dropping_index(table, index)


def _drop_constraint(table: Table, transaction: Transaction, name: str, *, if_exists: bool) -> None:
    fold = table.database.collation.key
    wanted = fold(name)
    index = table.index(name)
    if index is not None and index.constraint:
        refuse_captured_key(table, index)
        index_changes.drop_index(table, transaction, index)
        return
    for check in table.checks:
        if fold(check.name) == wanted:
            rule_changes.drop_check(table, transaction, check)
            return
    for key in table.foreign_keys:
        if fold(key.name) == wanted:
            rule_changes.drop_foreign_key(transaction, key)
            return
    for column in table.columns:
        default = column.default
        if default is not None and fold(default.name) == wanted:
            schema_change.begin_ddl(table, transaction)
            column.default = None
            transaction.on_undo(lambda column=column, default=default: setattr(column, "default", default))
            _touch(table)
            return
    if not if_exists:
        raise SqlError(3728, f"'{name}' is not a constraint.")


def _set(frame: Frame, node: st.AlterTableSet) -> Steps:
    if node.table == ("",):
        yield from database_triggers.switch(frame, node)
        return None
    yield from _altered(frame, node.table, lambda c, table, tx: settings.apply(c, table, tx, node))
    return None


HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {
    st.AlterTableAdd: _add,
    st.AlterColumn: _alter_column,
    st.AlterTableDrop: _drop,
    st.AlterTableSet: _set,
}
