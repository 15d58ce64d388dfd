"""Rejects changes that function mode cannot order (second half of rule B11). `changes` reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.errors import SourceError
from mssql_cdc.schema import TableSchema
from mssql_cdc.source.sqlserver.numpy_arrays import Flags

REMEMBERED = 100_000
"""Above this many deletions, or insertions, in a transaction, the server is asked whether it has both."""
_GONE_OR_NEW = pa.array(["c", "d"])
_OTHER = {"c": "d", "d": "c"}
_Hashes = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass(frozen=True, slots=True)
class _Operations:
    """Deletions or insertions: 8-byte hashes of their transactions and keys, sorted, and of their change LSNs.

    Two of ten million keys share a hash once in 400,000 transactions: then the table stops unnecessarily.
    """

    keys: _Hashes = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    changes: _Hashes = field(default_factory=lambda: np.empty(0, dtype=np.uint64))

    @classmethod
    def of(cls, keys: _Hashes, changes: _Hashes) -> _Operations:
        """Make them from rows in any order."""
        order = np.argsort(keys, kind="stable")
        return cls(keys[order], changes[order])

    def __add__(self, other: _Operations) -> _Operations:
        if not len(self.keys) or not len(other.keys):
            return self if len(self.keys) else other
        return self.of(np.concatenate([self.keys, other.keys]), np.concatenate([self.changes, other.changes]))

    def contradicted(self, keys: _Hashes, changes: _Hashes) -> Flags:
        """Which rows of the other kind have one of these keys under another change LSN."""
        if not len(self.keys):
            return np.zeros(len(keys), dtype=bool)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return (self.keys[at] == keys) & (self.changes[at] != changes)


class OrderGuard:
    """Watches the neutral batches of one table, in order; a transaction may span several of them.

    The functions of CDC return no command id. When one transaction deletes and inserts the same key under different
    change LSNs (`UPDATE … SET id = id + 1`), the order of the two decides whether the row exists, and it is unknown.
    For the newest transaction, 16 bytes are remembered per deletion and insertion; for a large one that only deletes or
    only inserts, nothing.
    """

    def __init__(self, schema: TableSchema, has_both: Callable[[str], bool], *, by_choice: bool = False) -> None:
        """Create a guard.

        Args:
            schema: The table's schema.
            has_both: Whether a transaction, given by its LSN's text, both deletes and inserts rows of the table.
            by_choice: Whether the function is used because of `data.query.mode`, not for lack of a permission.
        """
        self._schema = schema
        self._by_choice = by_choice
        self._has_both = has_both
        self._commit: str | None = None
        self._asked = self._one_kind = False
        self._seen = {"c": _Operations(), "d": _Operations()}

    @property
    def remembered(self) -> int:
        """The number of deletions and insertions that are in memory."""
        return sum(len(one.keys) for one in self._seen.values())

    def check(self, batch: pa.RecordBatch) -> None:
        """Check the next batch.

        Raises:
            SourceError: a key was deleted and inserted in an order that cannot be known.
        """
        if not self._schema.key_columns:
            return
        rows = batch.filter(pc.is_in(batch.column("op"), value_set=_GONE_OR_NEW))
        if self._one_kind:
            rows = rows.filter(pc.not_equal(rows.column("commit_lsn"), self._commit))
        if rows.num_rows:
            self._check(rows)

    def _check(self, rows: pa.RecordBatch) -> None:
        commits, last = rows.column("commit_lsn"), rows.column("commit_lsn")[-1].as_py()
        newest: dict[str, _Operations] = {}
        for op, image in (("d", "before"), ("c", "after")):
            chosen = pc.equal(rows.column("op"), op)
            own = commits.filter(chosen)
            keys = _hashes(own, *(rows.column(image).field(name).filter(chosen) for name in self._schema.key_columns))
            changes = _hashes(rows.column("change_lsn").filter(chosen))
            wrong = self._seen[_OTHER[op]].contradicted(keys, changes)
            if wrong.any():
                raise self._unknown(own[int(np.argmax(wrong))].as_py())
            self._seen[op] += _Operations.of(keys, changes)
            kept = pc.equal(own, last).to_numpy(zero_copy_only=False)
            newest[op] = _Operations.of(keys[kept], changes[kept])
        if last != self._commit:
            self._commit, self._asked, self._one_kind, self._seen = last, False, False, newest
        if not self._asked and self.remembered > REMEMBERED and not all(len(one.keys) for one in self._seen.values()):
            self._asked, self._one_kind = True, not self._has_both(last)
            if self._one_kind:
                self._seen = {"c": _Operations(), "d": _Operations()}

    def _unknown(self, commit: str) -> SourceError:
        what = f"{self._schema.table_id}: transaction {commit} deletes and inserts the same key"
        of = f"the change table of {self._schema.instance!r}"
        grant = "GRANT SELECT ON SCHEMA::cdc TO the login's user"
        if self._by_choice:
            return SourceError(
                f"{what}; only {of} tells the order. Remove data.query.mode=function, and if the login may not read "
                f"that table, {grant}"
            )
        return SourceError(f"{what}; without SELECT on {of} the order is unknown. {grant}")


def _hashes(*columns: pa.Array) -> _Hashes:
    """A hash of the values of each row."""
    rows: Sequence[tuple[object, ...]] = list(zip(*(column.to_pylist() for column in columns), strict=True))
    found = (blake2b(repr(row).encode(), digest_size=8).digest() for row in rows)
    return np.frombuffer(b"".join(found), dtype=np.uint64)
