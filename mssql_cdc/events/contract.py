"""The contract of the change log's metadata columns, run on every batch before it is written.

User-defined rules about columns belong to the checks of `defs/`; this contract covers the connector's own columns. It
keeps positions and LSNs in one text form (rule B16): `deltalake` would not evaluate a Delta constraint because it
commits files unchanged. Messages name rules and count rows; they never contain row values.
"""

# pandera does not type its checks.
# pyright: standard

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.errors import ContractError

if TYPE_CHECKING:
    from pandera.pyarrow import DataFrameSchema

_POSITION = r"^[0-9a-f]{4}-[0-9a-f]{20}-[0-9a-f]{8}-[0-9a-f]{20}-[0-9a-f]$"
_COLUMNS = ("_pos", "_batch", "_schema", "op")
_LSNS = ("commit_lsn", "change_lsn")
_IMAGES = "images"


def check_batch(batch: pa.RecordBatch, *, keyed: bool) -> None:
    """Check positions, LSNs, operations, batch numbers, keys, and that each operation has its required images.

    Raises:
        ContractError: names each violated rule and the number of rows that violate it.
    """
    from pandera.errors import SchemaErrors

    if not batch.num_rows:
        return
    op = batch.column("op")
    has_before, has_after = batch.column("before").is_valid(), batch.column("after").is_valid()
    wants_before = pc.is_in(op, value_set=pa.array(["u", "d"]))
    wants_after = pc.not_equal(op, "d")
    fits = pc.and_(pc.equal(has_before, wants_before), pc.equal(has_after, wants_after))
    columns = {name: batch.column(name) for name in _COLUMNS} | {_IMAGES: fits}
    columns |= {name: _in_form(pc.struct_field(batch.column("source"), name)) for name in _LSNS}
    if keyed:
        columns["_key"] = batch.column("_key")
    try:
        _contract(keyed).validate(pa.table(columns), lazy=True)
    except SchemaErrors as errors:
        raise ContractError(_report(errors.failure_cases, batch.num_rows)) from None


def _in_form(lsns: pa.Array) -> pa.Array:
    """Whether each is NULL or like `00000027:00000ac0:0002`; a regular expression takes ten times as long."""
    sized = pc.and_(pc.equal(pc.binary_length(lsns), 22), pc.equal(pc.find_substring(lsns, ":"), 8))
    return pc.fill_null(pc.and_(sized, pc.equal(pc.ascii_lower(lsns), lsns)), fill_value=True)


@cache
def _contract(keyed: bool) -> DataFrameSchema:  # noqa: FBT001 - a cache key
    from pandera.pyarrow import Check, Column, DataFrameSchema

    columns = {
        "_pos": Column(pa.string(), Check.str_matches(_POSITION), nullable=False),
        "_batch": Column(pa.int64(), Check.ge(1), nullable=False),
        "_schema": Column(pa.int32(), Check.ge(1), nullable=False),
        **{name: Column(pa.bool_(), Check.isin([True]), nullable=False) for name in _LSNS},
        "op": Column(pa.string(), Check.isin(["c", "r", "u", "d"]), nullable=False),
        _IMAGES: Column(pa.bool_(), Check.isin([True]), nullable=False),
    }
    if keyed:
        columns["_key"] = Column(pa.string(), nullable=False)
    return DataFrameSchema(columns, strict=True)


def _report(cases: pa.Table, rows: int) -> str:
    broken = cases.group_by(["column", "check"]).aggregate([([], "count_all")])
    told = [
        f"{row['column']}: {row['check']} broken by {row['count_all']} of {rows} rows" for row in broken.to_pylist()
    ]
    return f"A batch of {rows} rows breaks the change log's contract and was not written: " + "; ".join(told)
