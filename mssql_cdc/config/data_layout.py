"""How the files of one current table are laid out: `delta.current.<table>.partition.by` and `….cluster.by`.

The columns are checked against the table where it is written (`lake/table_layout.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from mssql_cdc.config.filters import plain_name
from mssql_cdc.config.property import GivenProperty, split
from mssql_cdc.config.report import Report


@dataclass(frozen=True, slots=True)
class DataLayout:
    """The columns, by their names at the source, by which a table is partitioned or clustered; usually none."""

    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()


AS_IT_COMES = DataLayout()


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of `table` (in lower case, `schema.table` or `db.schema.table`) that one property lists."""

    table: str
    columns: tuple[str, ...]


def table_columns(one: GivenProperty, _: Report) -> TableColumns:
    """Parse a property whose name contains a table and whose text lists columns.

    Raises:
        ValueError: the name is not that of a table, or a column is listed twice.
    """
    table, columns = plain_name(one.parts[0]).lower(), split(one.text)
    if table.count(".") not in (1, 2):
        raise ValueError(f"found {one.parts[0]!r} as the table, expected <schema>.<table> or <db>.<schema>.<table>")
    lowered = [name.lower() for name in columns]
    doubled = sorted({name for name in columns if lowered.count(name.lower()) > 1})
    if doubled:
        raise ValueError(f"names {', '.join(doubled)} more than once (names are case-insensitive); keep one")
    return TableColumns(table, columns)
