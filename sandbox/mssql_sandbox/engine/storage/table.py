"""Tables: definition and reading; rows and their versions are in `rows.py`, writing goes through `writing.py`.

What does not belong here: ALTER TABLE (alter.py), foreign keys (references.py), names (database.py).
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from mssql_sandbox.engine import types
from mssql_sandbox.engine.lock_requests import Resource
from mssql_sandbox.engine.storage import writing
from mssql_sandbox.engine.storage.columns import Column, Identity
from mssql_sandbox.engine.storage.constraints import Check, ForeignKey
from mssql_sandbox.engine.storage.index import Index
from mssql_sandbox.engine.storage.large_values import is_large_object
from mssql_sandbox.engine.storage.objects import Schema, private_listing
from mssql_sandbox.engine.storage.rows import StoredRows
from mssql_sandbox.engine.storage.scan import EntryScan, Scan
from mssql_sandbox.engine.storage.views import ReadView, row_view
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import error

if TYPE_CHECKING:
    from mssql_sandbox.engine.storage.database import Database

Kind = Literal["user", "temporary", "variable", "system"]
Values = Sequence[object]


class Table(StoredRows):
    """A table with its rows. Row tuples hold one value per entry of `columns`, in that order, in storage form.

    `kind`: 'user' and 'system' tables are logged and locked; 'temporary' and 'variable' ones belong to one session, and
    'variable' ones survive a rollback. `tracked`: change data capture reads the table's log records.
    """

    __slots__ = (
        "checks", "columns", "computed_at", "database", "fills", "foreign_keys", "history", "kind", "large_at",
        "next_column_id", "period_at", "private", "referenced_by", "required_at", "resource", "rowversion_at",
        "schema_sequence", "tracked", "triggers",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        *,
        database: Database,
        schema: Schema,
        object_id: int,
        columns: Sequence[Column],
        kind: Kind = "user",
        create_date: int = 0,
        is_ms_shipped: bool = False,
    ) -> None:
        code = {"user": "U", "system": "S", "temporary": "U", "variable": "TT"}[kind]
        super().__init__(name, object_id, schema, code, create_date, create_date, is_ms_shipped=is_ms_shipped)
        self.database = database
        self.kind: Kind = kind
        self.private = kind in {"temporary", "variable"}
        """Whether only one session can see the table, so that it needs no locks and no log."""
        self.columns: list[Column] = list(columns)
        for number, column in enumerate(self.columns, 1):
            column.column_id = number
        self.next_column_id = len(self.columns) + 1
        self.checks: list[Check] = []
        self.foreign_keys: list[ForeignKey] = []
        self.referenced_by: list[ForeignKey] = []
        self.triggers: list[Any] = []
        self.tracked = False
        self.schema_sequence = 0
        self.resource = Resource("OBJECT", database.id, object_id)
        self.history: Table | None = None
        """The history table of a system-versioned table."""
        self.rowversion_at = -1
        self.computed_at: list[int] = []
        self.period_at: tuple[int, int] | None = None
        self.large_at: list[int] = []
        self.required_at: list[int] = []
        self._bind()

    # -- definition ---------------------------------------------------------------------------------------------

    def _bind(self) -> None:
        places = [i for i, column in enumerate(self.columns) if column.is_rowversion]
        self.rowversion_at = places[0] if places else -1
        self.computed_at = [i for i, column in enumerate(self.columns) if column.computed and column.computed.stored]
        self.required_at = [
            i for i, column in enumerate(self.columns) if not column.nullable and column.computed is None
        ]
        self.large_at = [i for i, column in enumerate(self.columns) if is_large_object(column.type)]
        period = {column.generated: i for i, column in enumerate(self.columns) if column.generated}
        self.period_at = (period["start"], period["end"]) if len(period) == 2 else None
        self.fills = self.rowversion_at >= 0 or bool(self.computed_at) or self.period_at is not None
        """Whether storage computes some columns of every written row."""
        for index in self.indexes:
            index.bind(self.columns)

    def rebind(self) -> None:
        """Recompute everything that depends on the columns' positions; called after every change of `columns`."""
        self._bind()

    @property
    def full_name(self) -> str:
        """Name as messages show it: 'dbo.t'; temporary tables and table variables by their bare name."""
        return self.name if self.private else f"{self.schema.name}.{self.name}"

    @property
    def listed_name(self) -> str:
        """The name in the catalogue, which differs for temporary tables."""
        return private_listing(self.name, self.object_id) if self.kind == "temporary" else self.name

    @property
    def long_name(self) -> str:
        """Name with the database: 'db.dbo.t' (messages 515, 2628)."""
        return self.name if self.kind == "variable" else f"{self.database.name}.{self.schema.name}.{self.name}"

    def column(self, name: str) -> Column | None:
        """The column of this name under the database's collation, or None."""
        place = self.ordinal(name)
        return None if place is None else self.columns[place]

    def ordinal(self, name: str) -> int | None:
        """Position of the column in row tuples, or None."""
        key = self.database.collation.key
        wanted = key(name)
        for place, column in enumerate(self.columns):
            if column.name == name or key(column.name) == wanted:
                return place
        return None

    @property
    def identity(self) -> Identity | None:
        """The identity definition of the table, if a column has one."""
        return next((column.identity for column in self.columns if column.identity is not None), None)

    @property
    def identity_column(self) -> Column | None:
        """The identity column."""
        return next((column for column in self.columns if column.identity is not None), None)

    def next_identity(self) -> int | Decimal:
        """Take the next identity value, in the column's type; used even if the insert fails later."""
        column = self.identity_column
        if column is None or column.identity is None:
            raise error(8106, table=self.full_name)
        value = column.identity.take(column.type)
        return value if column.type.name in types.INTEGERS else Decimal(value)

    @property
    def clustered(self) -> Index | None:
        """The clustered index; a table without one is a heap."""
        return next((index for index in self.indexes if index.clustered and not index.disabled), None)

    @property
    def primary_key(self) -> Index | None:
        """The index of the primary key."""
        return next((index for index in self.indexes if index.constraint == "PRIMARY KEY"), None)

    def index(self, name: str) -> Index | None:
        """The index (or key constraint) of this name."""
        key = self.database.collation.key
        return next((index for index in self.indexes if key(index.name) == key(name)), None)

    # -- reading --------------------------------------------------------------------------------------------------

    def scan(
        self,
        view: ReadView,
        *,
        index: Index | None = None,
        low: Values | None = None,
        high: Values | None = None,
        low_inclusive: bool = True,
        high_inclusive: bool = True,
        descending: bool = False,
    ) -> Scan:
        """Slices (lists) of row tuples, in clustered order, or in the order of `index` and between two key prefixes.

        `low` and `high` are column values (storage form, the index columns' own types) of the first index columns, in
        index order. The lists must not be changed by the caller. Raises `MustWait` here or while iterating.
        """
        return Scan(self, view, **self._range(index, low, high, low_inclusive, high_inclusive, descending))

    def scan_entries(
        self,
        view: ReadView,
        *,
        index: Index | None = None,
        low: Values | None = None,
        high: Values | None = None,
        low_inclusive: bool = True,
        high_inclusive: bool = True,
        descending: bool = False,
    ) -> EntryScan:
        """Like `scan`, with slices of (row id, row), for UPDATE and DELETE."""
        return EntryScan(self, view, **self._range(index, low, high, low_inclusive, high_inclusive, descending))

    def _range(
        self,
        index: Index | None,
        low: Values | None,
        high: Values | None,
        low_inclusive: bool,  # noqa: FBT001
        high_inclusive: bool,  # noqa: FBT001
        descending: bool,  # noqa: FBT001
    ) -> dict[str, Any]:
        index = index or self.clustered
        bounds = None
        if index is not None and (low is not None or high is not None):
            bounds = index.bounds(low, high, low_inclusive=low_inclusive, high_inclusive=high_inclusive)
        return {"index": index, "bounds": bounds, "descending": descending}

    def seek(self, view: ReadView, index: Index, values: Values) -> list[tuple[int, tuple]]:
        """(row id, row) of the rows whose first index columns equal `values` (NULL equals NULL here)."""
        if view.key_mode is not None and index.unique and len(values) == len(index.columns):
            found = self._seek_locked(view, index, values)
            if found:
                return found
        scan = self.scan_entries(view, index=index, low=values, high=values)
        return [entry for slice_ in scan for entry in slice_]

    def _seek_locked(self, view: ReadView, index: Index, values: Values) -> list[tuple[int, tuple]]:
        """SERIALIZABLE point read of an existing row: a row lock is enough, an existing key has no phantoms."""
        scan = self.scan_entries(row_view(view), index=index, low=values, high=values)
        return [entry for slice_ in scan for entry in slice_]

    def fetch(self, view: ReadView, rowid: int) -> tuple | None:
        """The row of `rowid` as the view sees it."""
        return view.resolve(self, rowid, self.heap[rowid]) if rowid < len(self.heap) else None

    def row_resource(self, rowid: int) -> Resource:
        """The lock resource of a row."""
        return Resource("RID", self.database.id, self.object_id, rowid)

    # -- writing ----------------------------------------------------------------------------------------------------

    def insert(self, transaction: Transaction, row: tuple, *, statement: str = "INSERT") -> int:
        """Insert a complete row (identity and defaults filled, computed and rowversion cells None); returns its row id.

        Errors 515, 547, 2627/2601; raises `MustWait` when another transaction decides about the key.
        """
        return writing.insert(self, transaction, (row,), statement)[0]

    def insert_many(self, transaction: Transaction, rows: Sequence[tuple], *, statement: str = "INSERT") -> list[int]:
        """Insert rows in the given order."""
        return writing.insert(self, transaction, rows, statement) if rows else []

    def update(
        self, transaction: Transaction, changes: Sequence[tuple[int, tuple]], *, statement: str = "UPDATE",
        assigned: Container[int] = (),
    ) -> list[tuple[tuple, tuple]]:  # fmt: skip
        """Replace rows by (row id, complete new row); returns (old, new) of each, with computed and rowversion values.

        `assigned` are the positions that the statement sets, whether or not a value changes.

        Unique keys are checked after all rows have changed. SNAPSHOT transactions get 3960 for rows that changed since.
        """
        return writing.update(self, transaction, changes, statement, assigned)

    def delete(self, transaction: Transaction, rowids: Sequence[int], *, statement: str = "DELETE") -> list[tuple]:
        """Delete rows and return them. Row ids of rows already gone are skipped."""
        return writing.delete(self, transaction, rowids, statement)

    def truncate(self, transaction: Transaction) -> None:
        """TRUNCATE TABLE: errors 4711 (tracked), 4712 (referenced); resets the identity."""
        writing.truncate(self, transaction)
