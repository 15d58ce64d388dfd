"""Plans the fold of a section of the change log into one row per `_key`, and expresses it for MERGE (correctness D).

`lake/arrow_fold.py` does the same with Arrow; `lake/merge.py` reads, merges and commits with Spark. Unknown is not
NULL: a column that is unknown in some row (`partial`) folds to its last known value within the row's incarnation; all
other columns take the last row's value. A computed column keeps no value: each change may have given it another one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.errors import OvertakenError
from mssql_cdc.lake.spark_sql import literal, quoted, sql_type
from mssql_cdc.schema.arrow import RESERVED_CURRENT, current_names, former_names
from mssql_cdc.schema.lives import lives
from mssql_cdc.schema.tables import TableSchema
from mssql_cdc.spark.session import run_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EMPTY_MAP = "CAST(map() AS MAP<STRING, STRING>)"


@dataclass(frozen=True)
class FoldPlan:
    """How to fold: the newest schema, its columns' names in the current table, and the columns that may be unknown.

    `lacking` maps a partial column to the `_schema` versions whose rows do not have it, or had it in an earlier life.
    `former` maps a partial column to the Delta columns that held its values before (name in the change log -> in the
    current table), `earlier` to the versions whose rows have it in one of these. `retired` are columns of the current
    table that get no more values: they are NULL from then on. `partition_by` are the source columns that the current
    table is partitioned by.
    """

    table_schema: TableSchema
    partial: frozenset[str]
    lacking: Mapping[str, tuple[int, ...]]
    retired: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    former: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    earlier: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    absent: frozenset[str] = frozenset()

    @cached_property
    def names(self) -> dict[str, str]:
        """Maps each source column to its column in the current table."""
        return current_names(self.table_schema)

    @cached_property
    def images(self) -> dict[str, str]:
        """Maps each source column to its column in the images of the change log."""
        return {column.name: column.stored_name for column in self.table_schema.value_columns}

    @cached_property
    def whole(self) -> list[str]:
        """The columns that are known in every row of the section."""
        return [c.name for c in self.table_schema.value_columns if c.name not in self.partial]

    @cached_property
    def uncertain(self) -> list[str]:
        """The partial columns in source order."""
        return [c.name for c in self.table_schema.value_columns if c.name in self.partial]

    @cached_property
    def computed(self) -> frozenset[str]:
        """The computed columns, which are known only if the last row knows them."""
        return frozenset(column.name for column in self.table_schema.value_columns if column.computed)

    @property
    def texts_of_partitions(self) -> frozenset[str]:
        """The partition columns that hold text."""
        columns = self.table_schema.value_columns
        return frozenset(c.name for c in columns if c.name in self.partition_by and pa.types.is_string(c.type.arrow))


def same_key(versions: Sequence[TableSchema]) -> list[TableSchema]:
    """The versions since the key got its present definition: `_key` of older rows identifies rows in another way."""
    return [schema for schema in versions if schema.key_id == versions[-1].key_id]


def require_known(uri: str, newest: TableSchema, schemas: pa.Array) -> None:
    """Require that no row of a change log has a newer structure than the newest known one.

    Another run may record a structure, and write rows with it, after this run reads the history and before it reads the
    offsets.

    Args:
        uri: the change log.
        newest: the newest version that is known.
        schemas: `_schema` of some rows.

    Raises:
        OvertakenError: a row has a newer one; the next read of the history finds it.
    """
    found = pc.max(schemas).as_py()
    if found is not None and found > newest.version:
        raise OvertakenError(
            f"Another run has written rows of structure {found} to {uri}, and this run knows structures up to "
            f"{newest.version}; its next look at the schema history finds it"
        )


def plan_fold(
    usable: Sequence[TableSchema],
    *,
    schemas: Collection[int],
    unavailable: Collection[str],
    stored: Collection[str],
    logged: Collection[str],
    partition_by: Collection[str] = (),
) -> FoldPlan:
    """The plan for a section of the change log.

    Args:
        usable: the versions with the present key, oldest first.
        schemas: the `_schema` versions of the section's rows.
        unavailable: the columns that some row's `_unavailable` lists.
        stored: the columns of the current table.
        logged: the columns of the change log's images.
        partition_by: the columns that the current table is partitioned by.
    """
    newest = usable[-1]
    lacking: dict[str, tuple[int, ...]] = {}
    earlier: dict[str, tuple[int, ...]] = {}
    seen = [schema for schema in usable if schema.version in schemas]
    held = [(schema.version, {c.name: c.stored_name for c in schema.value_columns}) for schema in seen]
    for column in newest.value_columns if seen != [newest] else ():
        own = column.stored_name
        life = lives(usable, own)
        # What it held before it was dropped and came back is not a value of the present column.
        without = tuple(
            version
            for version, columns in held
            if column.name not in columns or (columns[column.name] == own and life[version] != life[newest.version])
        )
        if without:
            lacking[column.name] = without
        if before := tuple(version for version, columns in held if columns.get(column.name, own) != own):
            earlier[column.name] = before
    names = {column.name for column in newest.value_columns}
    absent = {column.name: column.stored_name for column in newest.value_columns if column.stored_name not in logged}
    partial = frozenset((set(unavailable) & names) | lacking.keys() | earlier.keys() | absent.keys())
    former = {
        name: {one: target for one, target in columns.items() if one in logged and target in stored}
        for name, columns in former_names(newest).items()
        if name in partial
    }
    kept = {target for columns in former.values() for target in columns.values()}
    retired = tuple(sorted(set(stored) - set(current_names(newest).values()) - set(RESERVED_CURRENT) - kept))
    sources = tuple(source for source, name in current_names(newest).items() if name in partition_by)
    return FoldPlan(newest, partial, lacking, retired, sources, former, earlier, frozenset(absent.values()))


def fold(log: DataFrame, plan: FoldPlan) -> DataFrame:
    """Fold into one row per key: `k, pos, batch, del, inc, img, exact`, and `p<i>` for each partial column number i.

    The log must belong to a private session, where it becomes the view `section`.

    `img` is the last row's image, `exact` its `_exact.after`; `p<i>` is a struct of the column's last known value (pos,
    version, value, exact, f<j> for each former column); `inc` is the start of the row's incarnation, NULL if it is
    before the section.
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
            f"max_by({_candidate(plan, name)}, _pos)"
            f" FILTER (WHERE {_known(name, plan.lacking.get(name, ()))}) AS p{number}"
            for number, name in enumerate(plan.uncertain)
        ),
    ]
    log.createOrReplaceTempView("section")
    return run_sql(log.sparkSession, f"SELECT {', '.join(columns)} FROM section GROUP BY _key")


def _candidate(plan: FoldPlan, name: str) -> str:
    """What a row says about a partial column: in its own Delta column and in the former ones, one of which has it."""
    kind, image = sql_type(plan.table_schema.column(name).type.arrow), plan.images[name]
    value = f"CAST(NULL AS {kind})" if image in plan.absent else f"after.{quoted(image)}"
    values = [
        "_pos AS pos",
        "_schema AS version",
        f"{value} AS value",
        f"_exact.after[{literal(name)}] AS exact",
        *(f"after.{quoted(one)} AS f{place}" for place, one in enumerate(plan.former.get(name, ()))),
    ]
    return f"struct({', '.join(values)})"


def insert_expressions(plan: FoldPlan) -> dict[str, str]:
    """Map each current-table column to an expression over `s`, for a key missing from the current table."""
    values = {plan.names[name]: f"s.img.{quoted(plan.images[name])}" for name in plan.whole}
    for number, name in enumerate(plan.uncertain):
        for target, value in _targets(plan, number, name):
            values[target] = f"IF({_has(plan, number)}, {value}, NULL)"
    unknown = [f"IF({_has(plan, n)}, {_of_before(plan, n)}, {literal(name)})" for n, name in enumerate(plan.uncertain)]
    exact = [f"IF({_has(plan, n)}, {_exact(plan, n)}, NULL)" for n in range(len(plan.uncertain))]
    return {**values, **_own(plan, exact=exact, unknown=unknown)}


def update_expressions(plan: FoldPlan) -> dict[str, str]:
    """Return the expressions for an existing key: values unknown in the row's incarnation keep `t`'s value."""
    values = {plan.names[name]: f"s.img.{quoted(plan.images[name])}" for name in plan.whole}
    values |= dict.fromkeys(plan.retired, "NULL")
    exact: list[str] = []
    unknown: list[str] = []
    for number, name in enumerate(plan.uncertain):
        has, text = _has(plan, number), literal(name)
        # A row that was re-created within the section inherits nothing from its predecessor.
        lost = "true" if name in plan.computed else "s.inc IS NOT NULL"
        for target, value in _targets(plan, number, name):
            values[target] = f"CASE WHEN {has} THEN {value} WHEN {lost} THEN NULL ELSE t.{quoted(target)} END"
        exact.append(f"CASE WHEN {has} THEN {_exact(plan, number)} WHEN {lost} THEN NULL ELSE t.`_exact`[{text}] END")
        stays = f"{lost} OR array_contains(coalesce(t.`_unavailable`, array()), {text})"
        unknown.append(f"CASE WHEN {has} THEN {_of_before(plan, number)} WHEN {stays} THEN {text} END")
    return {**values, **_own(plan, exact=exact, unknown=unknown)}


def _own(plan: FoldPlan, *, exact: Sequence[str], unknown: Sequence[str]) -> dict[str, str]:
    """The current table's own columns."""
    last = f"coalesce(s.exact, {_EMPTY_MAP})"
    for name in (name for name in plan.whole if name in plan.texts_of_partitions):
        # Delta has no partition for the empty text: there it means NULL.
        lost = f"s.img.{quoted(plan.images[name])} = '' AND NOT map_contains_key({last}, {literal(name)})"
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


def _targets(plan: FoldPlan, number: int, name: str) -> list[tuple[str, str]]:
    """The current table's columns for a partial column, each with its last known value."""
    former = plan.former.get(name, {}).values()
    return [
        (plan.names[name], f"s.p{number}.value"),
        *((target, f"s.p{number}.f{place}") for place, target in enumerate(former)),
    ]


def _of_before(plan: FoldPlan, number: int) -> str:
    """The column's name if its last known value is from a version with another Delta column; NULL otherwise."""
    name = plan.uncertain[number]
    versions = plan.earlier.get(name)
    return (
        f"IF(s.p{number}.version IN ({', '.join(map(str, versions))}), {literal(name)}, NULL)" if versions else "NULL"
    )


def _has(plan: FoldPlan, number: int) -> str:
    """Whether the column's value is known within the row's incarnation (NULL counts as no)."""
    since = "s.pos" if plan.uncertain[number] in plan.computed else "coalesce(s.inc, '')"
    return f"coalesce(s.p{number}.pos >= {since}, false)"


def _known(name: str, lacking: Sequence[int]) -> str:
    known = f"op <> 'd' AND NOT array_contains(coalesce(_unavailable, array()), {literal(name)})"
    if lacking:
        known += f" AND NOT _schema IN ({', '.join(map(str, lacking))})"
    return known
