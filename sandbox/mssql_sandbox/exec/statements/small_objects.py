"""Types, sequences and synonyms; adding an object to its schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.storage.objects import SchemaObject
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.sequences import Sequence
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st


def new_object(
    compiler: Compiler, transaction: Transaction, name: ast.Name, code: str, definition: Any, text: str = "",
    parent: int = 0,
) -> SchemaObject:  # fmt: skip
    """Add an object to its schema; 2714 if the name is taken."""
    database, schema_name = compiler.names.schema_for_new(name)
    now = database.server.clock.local_datetime()
    schema = database.schema(schema_name)
    item = SchemaObject(name[-1], database.next_object_id(), schema, code, now, now, parent, definition, text)
    database.add_object(transaction, item)
    return item


def _create_type(frame: Frame, node: st.CreateType) -> Steps:
    session = frame.session
    compiler = frame.compiler()

    def work(transaction: Transaction) -> None:
        if node.table is not None:
            new_object(compiler, transaction, node.name, "TT", node.table)
            return
        assert node.base is not None
        made = replace(compiler.type_of(node.base), alias=node.name[-1])
        item = new_object(compiler, transaction, node.name, "TYPE", made)
        item.properties["nullable"] = node.nullable is not False

    yield from session.transactions.run(work)
    yield session.done(frame, None, "create type")
    return None


_RANGES = {"tinyint": (0, 255), "smallint": (-(2**15), 2**15 - 1), "int": (-(2**31), 2**31 - 1)}


def _create_sequence(frame: Frame, node: st.CreateSequence) -> Steps:
    session = frame.session
    compiler = frame.compiler()
    options = dict(node.options)

    def work(transaction: Transaction) -> None:
        if node.alter:
            found = compiler.names.find(node.name)
            if found is None or found.type_code != "SO":
                raise error(208, name=".".join(node.name))
            sequence: Sequence = found.definition
            if "restart" in options:
                again = options["restart"]
                sequence.next_value = sequence.start if again is None else again
            sequence.increment = options.get("increment") or sequence.increment
            return
        type_ = compiler.type_of(node.type) if node.type is not None else t.BIGINT
        low, high = _RANGES.get(type_.name, (-(2**63), 2**63 - 1))
        increment = options.get("increment") or 1
        smallest, largest = options.get("minvalue"), options.get("maxvalue")
        low = low if smallest is None else smallest
        high = high if largest is None else largest
        given = options.get("start")
        start = (low if increment > 0 else high) if given is None else given
        made = Sequence(node.name[-1], type_, start, increment, low, high, "cycle" in options)
        new_object(compiler, transaction, node.name, "SO", made)

    yield from session.transactions.run(work)
    yield session.done(frame, None, "create sequence")
    return None


def _create_synonym(frame: Frame, node: st.CreateSynonym) -> Steps:
    session = frame.session
    compiler = frame.compiler()
    yield from session.transactions.run(
        lambda transaction: new_object(compiler, transaction, node.name, "SN", node.target)
    )
    yield session.done(frame, None, "create synonym")
    return None


HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {
    st.CreateType: _create_type,
    st.CreateSequence: _create_sequence,
    st.CreateSynonym: _create_synonym,
}
