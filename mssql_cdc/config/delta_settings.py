"""The lake's properties: where it is, how current tables are laid out, where records go."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, ValidationInfo, model_validator

from mssql_cdc.config.data_layout import DataLayout, TableColumns, table_columns
from mssql_cdc.config.property import GivenProperty, Group, members, prop, section
from mssql_cdc.config.report import Report
from mssql_cdc.config.secret import Secret

DELTA = "delta:"
"""Prefix of the name of an output of records that is a Delta table."""
_NAMED = re.compile(r"([A-Za-z][\w.+-]*):")
DATABASE = "{database}"
_MOST_CLUSTERING = 4


def _absolute(warehouse: str) -> str:
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", warehouse):
        return warehouse
    return str(Path(warehouse).expanduser().absolute())


def output_name(target: str) -> str | None:
    """The name before the colon of an output of records: `delta`, or an entry point; None: the output is a file."""
    found = _NAMED.match(target)
    return None if found is None else found[1]


def _absolute_output(target: str | None) -> str | None:
    if target is None or target == "-" or (output_name(target) is not None and not target.startswith(DELTA)):
        return target
    scheme, path = (DELTA, target.removeprefix(DELTA)) if target.startswith(DELTA) else ("", target)
    return scheme + _absolute(path)


def _option(one: GivenProperty, _: Report) -> tuple[str, str | Secret]:
    return one.parts[0], one.value


@section(Group.LAKE)
class DeltaSettings:
    """The lake. `warehouse` is an absolute path or a URI."""

    warehouse: Annotated[str, AfterValidator(_absolute)] = prop("delta.warehouse", "warehouse")
    """Sets the path or URI of the lake. A relative path becomes absolute on load. `--warehouse` wins."""
    storage: Annotated[tuple[tuple[str, str | Secret], ...], members(_option)] = prop("delta.storage.*", (), late=True)
    """Sets an option of the object store (`delta.storage.AWS_REGION`) for every reader and writer of the lake except
    Spark, which has its own options (docs/lake.md)."""
    key_secret: Secret | None = prop("delta.key.secret", None)
    """Sets the key for the HMAC that replaces masked key columns in `_key`, and for the seal of snapshot chunks. Masked
    key columns require it."""
    current_interval_s: int = prop("delta.current.interval", 5, ge=0)
    """Sets the minimum time in seconds between two merges into the current tables. A merge covers all ranges since the
    last one."""
    records_output: Annotated[str | None, AfterValidator(_absolute_output)] = prop("delta.records.output", None)
    """Also writes Debezium's records while runs in Dagster capture: to a file of JSON lines, to a Delta table
    (`delta:<path or URI>`) or to an entry point in the group `mssql_cdc.outputs` (`<name>:…`). Each database has an
    asset `records`. `{database}` stands for the database's name; connectors with several databases need it."""
    deletion_vectors: Literal["auto", "true", "false"] = prop("delta.deletion.vectors", "auto")
    """Chooses how rows of the current tables are deleted. `auto`: small files are rewritten, so that every reader can
    open the table; a table gets deletion vectors on the first update that would rewrite more than 30,000 rows. `true`:
    vectors from the start. `false`: never, at the cost of rewriting files. A table that has vectors keeps them."""
    partition_by: Annotated[tuple[TableColumns, ...], members(table_columns)] = prop(
        "delta.current.<table>.partition.by", ()
    )
    """Partitions the current table of one source table, `schema.table` or `db.schema.table`, by these columns: whole
    numbers, `bit`, `date` or text. A changed list rewrites the table on its next update."""
    cluster_by: Annotated[tuple[TableColumns, ...], members(table_columns)] = prop(
        "delta.current.<table>.cluster.by", ()
    )
    """Clusters the current table of one source table by up to four columns (liquid clustering); `maintain` sorts the
    rows. A changed list takes effect on the next update. A table is partitioned or clustered, not both."""

    def records_output_of(self, catalog: str) -> str | None:
        """The output of records of a database; None: there is none."""
        return None if self.records_output is None else self.records_output.replace(DATABASE, catalog)

    def layout_of(self, catalog: str, schema: str, table: str) -> DataLayout:
        """How the files of a current table are laid out.

        Args:
            catalog: the database.
            schema: the table's schema.
            table: the table's name.
        """
        names = (f"{catalog}.{schema}.{table}".lower(), f"{schema}.{table}".lower())
        return DataLayout(*(_columns_of(names, given) for given in (self.partition_by, self.cluster_by)))

    @model_validator(mode="after")
    def _check_layouts(self, info: ValidationInfo) -> DeltaSettings:
        report = Report.of(info)
        partitioned = {one.table for one in self.partition_by}
        for one in self.cluster_by:
            name = f"delta.current.{one.table}.cluster.by"
            if one.table in partitioned:
                report.complain(name, f"cannot be set together with delta.current.{one.table}.partition.by; keep one")
            if len(one.columns) > _MOST_CLUSTERING:
                report.complain(name, f"names {len(one.columns)} columns, Delta clusters by up to {_MOST_CLUSTERING}")
        return self


def _columns_of(names: Sequence[str], given: Sequence[TableColumns]) -> tuple[str, ...]:
    """The columns for the first of a table's names that is configured."""
    known = {one.table: one.columns for one in given}
    return next((known[name] for name in names if name in known), ())
