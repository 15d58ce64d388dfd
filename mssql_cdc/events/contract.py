"""The contract of the change log's metadata columns, run on every batch before it is written.

User-defined rules about columns belong to the checks of `defs/`; this contract covers the connector's own columns. It
keeps positions and LSNs in one text form (rule B16): `deltalake` would not evaluate a Delta constraint because it
commits files unchanged. Messages name rules and count rows; they never contain row values.
"""

# pandera does not type its checks.
# pyright: standard

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
_TYPES = {
    "_pos": pa.string(),
    "_batch": pa.int64(),
    "_schema": pa.int32(),
    **dict.fromkeys(_LSNS, pa.bool_()),
    "op": pa.string(),
    _IMAGES: pa.bool_(),
    "_key": pa.string(),
}


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
    table, contract = pa.table(columns), _contract(keyed)
    if _holds(table, contract):
        return
    try:
        contract.validate(table, lazy=True)
    except SchemaErrors as errors:
        raise ContractError(_report(errors.failure_cases, batch.num_rows)) from None


def _in_form(lsns: pa.Array) -> pa.Array:
    """Whether each is NULL or like `00000027:00000ac0:0002`; a regular expression takes ten times as long."""
    sized = pc.and_(pc.equal(pc.binary_length(lsns), 22), pc.equal(pc.find_substring(lsns, ":"), 8))
    return pc.fill_null(pc.and_(sized, pc.equal(pc.ascii_lower(lsns), lsns)), fill_value=True)


@cache
def _contract(keyed: bool) -> DataFrameSchema:  # noqa: FBT001 - a cache key
    from pandera.pyarrow import Check, Column, DataFrameSchema

    checks = {
        "_pos": Check.str_matches(_POSITION),
        "_batch": Check.ge(1),
        "_schema": Check.ge(1),
        **{name: Check.isin([True]) for name in _LSNS},
        "op": Check.isin(["c", "r", "u", "d"]),
        _IMAGES: Check.isin([True]),
    }
    names = [name for name in _TYPES if keyed or name != "_key"]
    return DataFrameSchema(
        {name: Column(_TYPES[name], checks.get(name), nullable=False) for name in names}, strict=True
    )


def _holds(table: pa.Table, contract: DataFrameSchema) -> bool:
    """Whether the table fulfills the contract, as evaluated by Arrow.

    pandera needs 50 ms for a batch, however small. It only reports violations, and evaluates rules that are unknown
    to Arrow.
    """
    for name, column in contract.columns.items():
        values = table.column(name)
        if values.type != _TYPES[name] or (values.null_count and not column.nullable):
            return False
        for check in column.checks:
            rule = _BY_ARROW.get(check.name)
            if rule is None or not pc.all(rule(values, *check.statistics.values())).as_py():
                return False
    return True


def _one_of(values: pa.ChunkedArray, allowed: Sequence[object]) -> pa.ChunkedArray:
    return pc.is_in(values, value_set=pa.array(allowed, values.type))


_BY_ARROW: Mapping[str, Callable[..., pa.ChunkedArray]] = {
    "str_matches": pc.match_substring_regex,
    "greater_than_or_equal_to": pc.greater_equal,
    "isin": _one_of,
}
"""The contract's checks by their pandera names; their only argument comes second."""


def _report(cases: pa.Table, rows: int) -> str:
    broken = cases.group_by(["column", "check"]).aggregate([([], "count_all")])
    told = [
        f"{row['column']}: {row['check']} broken by {row['count_all']} of {rows} rows" for row in broken.to_pylist()
    ]
    return f"A batch of {rows} rows breaks the change log's contract and was not written: " + "; ".join(told)
