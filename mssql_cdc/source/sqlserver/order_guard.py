"""Refuses what function mode cannot put in order (rule B11's second half).

The functions return no command id. When one transaction deletes and inserts the same key under different change
LSNs (`UPDATE … SET id = id + 1`), the order of the two decides whether the row exists, and it is unknown.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.errors import SourceError
from mssql_cdc.schema import TableSchema

_GONE_OR_NEW = pa.array(["c", "d"])


class OrderGuard:
    """Watches the neutral batches of one table, in order; a transaction may span several of them."""

    def __init__(self, schema: TableSchema) -> None:
        self._schema = schema
        self._commit: str | None = None
        self._seen: dict[Any, dict[str, str]] = defaultdict(dict)

    def check(self, batch: pa.RecordBatch) -> None:
        """Raises SourceError when a key was deleted and inserted in an order that cannot be known."""
        if not self._schema.key_columns:
            return
        rows = batch.filter(pc.is_in(batch.column("op"), value_set=_GONE_OR_NEW))
        names = list(self._schema.key_columns)
        befores, afters = rows.column("before").to_pylist(), rows.column("after").to_pylist()
        places = zip(*(rows.column(name).to_pylist() for name in ("commit_lsn", "change_lsn", "op")), strict=True)
        for (commit, change, op), before, after in zip(places, befores, afters, strict=True):
            if commit != self._commit:
                self._commit = commit
                self._seen.clear()
            image = before if op == "d" else after
            operations = self._seen[tuple(image[name] for name in names)]
            operations[op] = change
            if len(operations) == 2 and operations["c"] != operations["d"]:
                raise SourceError(
                    f"{self._schema.table_id}: transaction {commit} deletes and inserts one key, and without SELECT "
                    f"on the change table of {self._schema.instance!r} their order is unknown. "
                    "GRANT SELECT ON SCHEMA::cdc TO the login's user"
                )
