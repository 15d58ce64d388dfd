"""XML SCHEMA COLLECTION: CREATE, ALTER … ADD and DROP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine.storage.documents import (
    FIRST_COLLECTION,
    XmlCollection,
    keep_collections,
    xml_collection,
    xml_collections,
)
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.definition_rights import require_create
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.tsql import statements as st


def _schema_collection(frame: Frame, node: st.XmlSchemaCollection) -> Steps:
    session = frame.session
    compiler = frame.compiler()
    text = None if node.text is None else frame.evaluate(node.text)

    def work(transaction: Transaction) -> None:
        database, schema_name = compiler.names.schema_for_new(node.name)
        require_create(session, database, "XML SCHEMA COLLECTION", schema_name)
        schema = database.schema(schema_name)
        found = xml_collection(database, schema_name, node.name[-1])
        known = xml_collections(database)
        if node.action == "create":
            if found is not None:
                raise error(2714, name=node.name[-1])
            now = database.server.clock.local_datetime()
            number = max((each.collection_id for each in known), default=FIRST_COLLECTION - 1) + 1
            made = XmlCollection(node.name[-1], number, schema, now, now)
            made.content.add(str(text or ""))
            keep_collections(database, transaction, (*known, made))
            return
        if found is None:
            raise _missing(node)
        if node.action == "alter":
            before = found.content.copy()
            transaction.on_undo(lambda: found.content.become(before))
            found.content.add(str(text or ""))
            found.modify_date = database.server.clock.local_datetime()
            return
        user = next((table for table in database.tables() for column in table.columns
                     if column.xml_schema is found.content), None)  # fmt: skip
        if user is not None:
            raise SqlError(6328, f"Specified collection '{found.name}' cannot be dropped because it is used by object "
                           f"'{user.full_name}'.")  # fmt: skip
        keep_collections(database, transaction, tuple(each for each in known if each is not found))

    yield from session.transactions.run(work)
    yield session.done(frame, None, f"{node.action} xml schema collection")
    return None


def _missing(node: st.XmlSchemaCollection) -> SqlError:
    if node.action == "drop":
        return error(3701, kind="XML Schema Collection", name=".".join(node.name))
    return SqlError(6314, f"Collection specified does not exist in metadata : '{node.name[-1]}'")


HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {st.XmlSchemaCollection: _schema_collection}
