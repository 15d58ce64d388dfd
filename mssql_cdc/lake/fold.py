"""Plans the fold of a section of the change log to one row per `_key`, and expresses it for MERGE (correctness D).

`lake/arrow_fold.py` does the same with Arrow; `lake/merge.py` reads, merges and commits with Spark. Unknown is not
NULL: a column that is unknown in some row (`partial`) folds to its last known value within the row's incarnation; all
other columns take the last row's value.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from mssql_cdc.lake.spark_sql import literal, quoted
from mssql_cdc.schema.arrow import current_names, current_schema
from mssql_cdc.schema.tables import TableSchema
from mssql_cdc.spark.session import run_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EMPTY_MAP = "CAST(map() AS MAP<STRING, STRING>)"


@dataclass(frozen=True)
class FoldPlan:
    """How to fold: the newest schema, its columns' names in the current table, and the columns that may be unknown.

    `lacking` maps a partial column to the `_schema` versions whose rows do not have it at all. `retired` are columns of
    the current table which the source no longer delivers: NULL from then on. `partition_by` are the source columns that
    the current table is partitioned by.
    """

    table_schema: TableSchema
    partial: frozenset[str]
    lacking: Mapping[str, tuple[int, ...]]
    retired: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()

    @cached_property
    def names(self) -> dict[str, str]:
        """Maps each source column to its column in the current table."""
        return current_names(self.table_schema)

    @cached_property
    def whole(self) -> list[str]:
        """The columns that are known in every row of the section."""
        return [c.name for c in self.table_schema.value_columns if c.name not in self.partial]

    @cached_property
    def uncertain(self) -> list[str]:
        """The partial columns in source order."""
        return [c.name for c in self.table_schema.value_columns if c.name in self.partial]

    @property
    def texts_of_partitions(self) -> frozenset[str]:
        """The columns of partitions that hold text."""
        columns = self.table_schema.value_columns
        return frozenset(c.name for c in columns if c.name in self.partition_by and pa.types.is_string(c.type.arrow))


def same_key(versions: Sequence[TableSchema]) -> list[TableSchema]:
    """The versions since the key has been defined as it is: `_key` of older rows names rows in another way."""
    return [schema for schema in versions if schema.key_id == versions[-1].key_id]


def plan_fold(
    usable: Sequence[TableSchema],
    *,
    schemas: Collection[int],
    unavailable: Collection[str],
    stored: Collection[str],
    partition_by: Collection[str] = (),
) -> FoldPlan:
    """The plan for a section of the change log.

    Args:
        usable: the versions with the present key, oldest first.
        schemas: the `_schema` versions of the section's rows.
        unavailable: the columns that some row's `_unavailable` lists.
        stored: the columns of the current table.
        partition_by: those that it is partitioned by.
    """
    newest = usable[-1]
    lacking: dict[str, tuple[int, ...]] = {}
    known = {s.version: {column.name for column in s.value_columns} for s in usable if s.version in schemas}
    for column in newest.value_columns:
        without = tuple(version for version, columns in known.items() if column.name not in columns)
        if without:
            lacking[column.name] = without
    names = {column.name for column in newest.value_columns}
    retired = tuple(sorted(set(stored) - set(current_schema(newest).names)))
    partial = frozenset((set(unavailable) & names) | lacking.keys())
    sources = tuple(source for source, name in current_names(newest).items() if name in partition_by)
    return FoldPlan(newest, partial, lacking, retired, sources)


def fold(log: DataFrame, plan: FoldPlan) -> DataFrame:
    """Fold to one row per key: `k, pos, batch, del, inc, img, exact`, and `p<i>` for each partial column number i.

    The log must belong to a private session, where it becomes the view `section`.

    `img` is the last row's image, `exact` its `_exact.after`; `p<i>` is a struct (pos, value, exact) of the column's
    last known value; `inc` is the start of the row's incarnation, NULL if it is before the section.
    """
    columns = [
        "_key AS k",
        "max(_pos) AS pos",
        "max(_batch) AS batch",
        "max_by(op, _pos) = 'd' AS del",
        "max(_pos) FILTER (WHERE op IN ('c', 'r', 'd')) AS inc",
        "max_by(after, _pos) AS img",
        "max_by(_exact.after, _pos) AS exact",
        *(
            f"max_by(struct(_pos AS pos, after.{quoted(name)} AS value, _exact.after[{literal(name)}] AS exact), _pos)"
            f" FILTER (WHERE {_known(name, plan.lacking.get(name, ()))}) AS p{number}"
            for number, name in enumerate(plan.uncertain)
        ),
    ]
    log.createOrReplaceTempView("section")
    return run_sql(log.sparkSession, f"SELECT {', '.join(columns)} FROM section GROUP BY _key")


def insert_expressions(plan: FoldPlan) -> dict[str, str]:
    """Map each current-table column to an expression over `s`, for a key missing from the current table."""
    values = {plan.names[name]: f"s.img.{quoted(name)}" for name in plan.whole}
    for number, name in enumerate(plan.uncertain):
        values[plan.names[name]] = f"IF({_has(number)}, s.p{number}.value, NULL)"
    unknown = [f"IF({_has(n)}, NULL, {literal(name)})" for n, name in enumerate(plan.uncertain)]
    exact = [f"IF({_has(n)}, {_exact(plan, n)}, NULL)" for n in range(len(plan.uncertain))]
    return {**values, **_own(plan, exact=exact, unknown=unknown)}


def update_expressions(plan: FoldPlan) -> dict[str, str]:
    """Return the expressions for an existing key: values unknown in the row's incarnation keep `t`'s value."""
    values = {plan.names[name]: f"s.img.{quoted(name)}" for name in plan.whole}
    values |= dict.fromkeys(plan.retired, "NULL")
    exact: list[str] = []
    unknown: list[str] = []
    for number, name in enumerate(plan.uncertain):
        has, text = _has(number), literal(name)
        target = f"t.{quoted(plan.names[name])}"
        # A row that was re-created within the section inherits nothing from its predecessor.
        values[plan.names[name]] = (
            f"CASE WHEN {has} THEN s.p{number}.value WHEN s.inc IS NOT NULL THEN NULL ELSE {target} END"
        )
        exact.append(f"CASE WHEN {has} THEN {_exact(plan, number)} WHEN s.inc IS NULL THEN t.`_exact`[{text}] END")
        stays = f"s.inc IS NOT NULL OR array_contains(coalesce(t.`_unavailable`, array()), {text})"
        unknown.append(f"CASE WHEN {has} THEN NULL WHEN {stays} THEN {text} END")
    return {**values, **_own(plan, exact=exact, unknown=unknown)}


def _own(plan: FoldPlan, *, exact: Sequence[str], unknown: Sequence[str]) -> dict[str, str]:
    """The current table's own columns."""
    last = f"coalesce(s.exact, {_EMPTY_MAP})"
    for name in (name for name in plan.whole if name in plan.texts_of_partitions):
        # Delta has no partition of the empty text: it means NULL.
        lost = f"s.img.{quoted(name)} = '' AND NOT map_contains_key({last}, {literal(name)})"
        last = f"map_concat({last}, IF({lost}, map({literal(name)}, ''), {_EMPTY_MAP}))"
    if plan.uncertain:
        names = ", ".join(literal(name) for name in plan.uncertain)
        pairs = ", ".join(
            f"struct({literal(name)} AS key, {value} AS value)"
            for name, value in zip(plan.uncertain, exact, strict=True)
        )
        folded = f"map_from_entries(filter(array({pairs}), e -> e.value IS NOT NULL))"
        sidecar = f"map_concat(map_filter({last}, (c, v) -> NOT c IN ({names})), {folded})"
        listed = f"filter(array({', '.join(unknown)}), c -> c IS NOT NULL)"
    else:
        sidecar, listed = last, "CAST(array() AS ARRAY<STRING>)"
    return {
        "_key": "s.k",
        "_pos": "s.pos",
        "_batch": "s.batch",
        "_exact": f"IF(cardinality({sidecar}) = 0, NULL, {sidecar})",
        "_unavailable": f"IF(size({listed}) = 0, NULL, {listed})",
    }


def _exact(plan: FoldPlan, number: int) -> str:
    """The exact text of a partial column's last known value."""
    found = f"s.p{number}.exact"
    if plan.uncertain[number] in plan.texts_of_partitions:
        return f"coalesce({found}, IF(s.p{number}.value = '', '', NULL))"
    return found


def _has(number: int) -> str:
    """Whether the column's value is known within the row's incarnation (NULL counts as no)."""
    return f"coalesce(s.p{number}.pos >= coalesce(s.inc, ''), false)"


def _known(name: str, lacking: Sequence[int]) -> str:
    known = f"op <> 'd' AND NOT array_contains(coalesce(_unavailable, array()), {literal(name)})"
    if lacking:
        known += f" AND NOT _schema IN ({', '.join(map(str, lacking))})"
    return known
