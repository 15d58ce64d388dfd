"""ALTER TABLE … SWITCH: moves rows without reading them one by one.

Change data capture does not see them [doc]. `switch_checks` compares the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mssql_sandbox.engine.events import Message
from mssql_sandbox.engine.storage import index_changes, schema_change
from mssql_sandbox.engine.storage.sorted_keys import SortedKeys
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.versions import Slot, newest
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.definition_rights import require_alter
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.statements.switch_checks import FAILED, Part, require_alike, require_within
from mssql_sandbox.exec.tables.partitions import partitioning
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st


@dataclass(frozen=True, slots=True)
class _Ignored:
    """A partition was named for a table without partitions (4903)."""

    number: int
    table: str


def switch(frame: Frame, node: st.SwitchPartition) -> Steps:
    """Move the rows of a table or partition into an empty one.

    Raises:
        SqlError: 4902 no such table, 4904, 4905 not empty, 4911, 4950 the partitions named, 22842, 22843 change data
            capture does not allow it, and what `switch_checks` finds different.
    """
    session = frame.session
    compiler = frame.compiler()
    ignored: list[_Ignored] = []

    def work(transaction: Transaction) -> None:
        tables = [_table(frame, name) for name in (node.table, node.target)]
        if tables[0] is tables[1]:
            raise SqlError(4955, f"{FAILED}. The source table '{tables[0].long_name}' and target table "
                           f"'{tables[1].long_name}' are same.")  # fmt: skip
        ignored.clear()
        numbers = (node.source_partition, node.target_partition)
        source, target = (_part(frame, table, one, ignored) for table, one in zip(tables, numbers, strict=True))
        catalog = session.server.catalog
        if catalog is not None:
            catalog.cdc.switching(source.table, target.table)
        require_alike(source.table, target.table)
        require_within(compiler, source, target)
        for table in tables:
            schema_change.begin_ddl(table, transaction)
        moved, kept = _rows(source, inside=True), _rows(source, inside=False)
        own = _rows(target, inside=False)
        if _rows(target, inside=True):
            raise _not_empty(target)
        for table in tables:
            _keep_for_undo(table, transaction)
        _fill(source.table, kept)
        _fill(target.table, [*own, *moved])

    yield from session.transactions.run(work)
    for one in ignored:
        yield Message(
            4903, 1, 10, f"Warning: The specified partition {one.number} for the table '{one.table}' was ignored in "
            "ALTER TABLE SWITCH statement because the table is not partitioned.", "", node.line,
        )  # fmt: skip
    yield session.done(frame, None, "alter table")
    return None


def _table(frame: Frame, name: ast.Name) -> Table:
    found = frame.compiler().names.find(name)
    if not isinstance(found, Table):
        raise error(4902, name=".".join(name))
    require_alter(frame.session, found)
    return found


def _part(frame: Frame, table: Table, node: ast.Expression | None, ignored: list[_Ignored]) -> Part:
    """The table, or its named partition."""
    partitioned = partitioning(table)
    number = None if node is None else int(frame.compiler().value(node).fn((), frame.context()))
    if partitioned is None:
        if number is not None:
            ignored.append(_Ignored(number, table.long_name))
        return Part(table)
    if number is None:
        raise SqlError(4911, "Cannot specify a partitioned table without partition number in ALTER TABLE SWITCH "
                       f"statement. The table '{table.long_name}' is partitioned.")  # fmt: skip
    if not 1 <= number <= partitioned.scheme.function.count:
        raise SqlError(4950, f"{FAILED} because partition number {number} does not exist in table "
                       f"'{table.long_name}'.")  # fmt: skip
    return Part(table, partitioned, number)


def _not_empty(target: Part) -> SqlError:
    name = target.table.long_name
    if target.partitioned is None:
        return SqlError(4905, f"{FAILED}. The target table '{name}' must be empty.")
    return SqlError(4904, f"{FAILED}. The specified partition {target.number} of target table '{name}' must be empty.")


def _rows(part: Part, *, inside: bool) -> list[tuple]:
    """The rows in the part, or those in the other parts of its table."""
    return [row for slot in part.table.heap if (row := newest(slot)) is not None and part.holds(row) is inside]


def _keep_for_undo(table: Table, transaction: Transaction) -> None:
    before: tuple[Any, ...] = (table.heap, table.free, table.versions)
    entries = [index.entries for index in table.indexes]

    def undo() -> None:
        table.heap, table.free, table.versions = before
        for index, old in zip(table.indexes, entries, strict=True):
            index.entries = old

    transaction.on_undo(undo)


def _fill(table: Table, rows: Sequence[Slot]) -> None:
    """Replace the rows of a table."""
    table.heap, table.free, table.versions = [*rows], [], 0
    for index in table.indexes:
        index.entries = SortedKeys()
        if not index.disabled:
            index_changes.rebuild_index(table, index)


HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {st.SwitchPartition: switch}
