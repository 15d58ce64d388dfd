"""What the server conceals from the login when it reads source tables and change tables, without an error.

Dynamic data masking replaces values in both: CDC gives the columns of a change table the masks that those of the source
table have when CDC is enabled, each with its own permissions. Row-level security hides rows of the source table only.
So snapshots, the stream, or both would be wrong. `source` leaves such a table out; `snapshot_reader`, `changes` and
`shared_read` check again in the transactions that read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from mssql_cdc.errors import AccessDeniedError
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc.source.sqlserver.bulk import Bulk
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.sql import DECLARE_IDS, IDS, id_lists, quote, text
from mssql_cdc.source.values import CaptureInstance, Concealment

_FIELDS = [
    pa.field("object_id", pa.int32()),
    pa.field("policy", pa.int32()),
    pa.field("name", pa.binary()),
]
# UNMASK is a permission on objects and schemas since SQL Server 2022; before, the function returns NULL for them.
_DATABASE = "HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), N'DATABASE', N'UNMASK')"
_UNSEEN = f"""c.is_masked = 1 AND COALESCE(
    HAS_PERMS_BY_NAME(QUOTENAME({{schema}}) + N'.' + QUOTENAME({{table}}), N'OBJECT', N'UNMASK', c.name, N'COLUMN'),
    {_DATABASE}, 0) = 0"""
_CONCEALED = f"""
SELECT c.object_id, 0 AS policy, CAST(c.name AS varbinary(256)) AS name
FROM sys.columns c JOIN sys.tables t ON t.object_id = c.object_id JOIN sys.schemas s ON s.schema_id = t.schema_id
WHERE c.object_id {{tables}} AND {_UNSEEN.format(schema="s.name", table="t.name")}
UNION ALL
SELECT f.target_object_id, 1, CAST(s.name + N'.' + p.name AS varbinary(520))
FROM sys.security_predicates f
JOIN sys.security_policies p ON p.object_id = f.object_id JOIN sys.schemas s ON s.schema_id = p.schema_id
WHERE f.target_object_id {{tables}} AND f.predicate_type = 0 AND p.is_enabled = 1"""
# A login that may not read a change table does not see its columns; CDC has noted which of them have masks. The
# unqualified name is the table's column where that exists, and `d`'s in a database that an old version created.
_MASKED_CHANGES = f"""
SELECT i.{{owner}} AS object_id, 0 AS policy, CAST(own.name AS varbinary(256)) AS name
FROM {{instances}} AS i CROSS APPLY (
    SELECT c.name FROM sys.columns c WHERE c.object_id = i.object_id
    AND {_UNSEEN.format(schema="OBJECT_SCHEMA_NAME(i.object_id)", table="OBJECT_NAME(i.object_id)")}
) AS own
UNION ALL
SELECT i.{{owner}}, 0, CAST(noted.name AS varbinary(256))
FROM {{instances}} AS i CROSS JOIN (SELECT CAST(NULL AS nvarchar(4000)) AS masking_function) AS d CROSS APPLY (
    SELECT m.column_name AS name, masking_function AS mask FROM cdc.captured_columns m WHERE m.object_id = i.object_id
) AS noted
WHERE noted.mask IS NOT NULL AND NOT EXISTS (SELECT 1 FROM sys.columns c WHERE c.object_id = i.object_id)
  AND COALESCE(HAS_PERMS_BY_NAME(N'cdc', N'SCHEMA', N'UNMASK'), 0) = 0 AND COALESCE({_DATABASE}, 0) = 0"""
_OF_IDS = f"{DECLARE_IDS};" + _MASKED_CHANGES.format(
    owner="object_id", instances=f"(SELECT l.id AS object_id FROM {IDS} AS l)"
)
_CAPTURED = "\nUNION ALL".join(
    (
        _CONCEALED.format(tables="IN (SELECT source_object_id FROM cdc.change_tables)"),
        _MASKED_CHANGES.format(owner="source_object_id", instances="cdc.change_tables"),
    )
)
_SEES_POLICIES = """
SELECT CASE WHEN HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), N'DATABASE', N'VIEW DEFINITION') = 1
  OR HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), N'DATABASE', N'ALTER ANY SECURITY POLICY') = 1 THEN 1 ELSE 0 END"""


def concealments(control: Control) -> Mapping[int, Concealment]:
    """What is concealed in captured tables and in their change tables, by the object ids of the captured tables."""
    rows = control.rows(_CAPTURED, doing="looking for masked columns and filtered rows")
    found: dict[int, list[tuple[bool, str]]] = defaultdict(list)
    for row in rows:
        found[row.object_id].append((bool(row.policy), bytes(row.name).decode("utf-16-le")))
    return {table: _concealment(own) for table, own in found.items()}


def masked_changes(bulk: Bulk, instances: Sequence[CaptureInstance], *, doing: str) -> Mapping[int, AccessDeniedError]:
    """The capture instances in whose changes the login sees masks, by the object ids of their change tables.

    Args:
        bulk: The connection, in the transaction of the read.
        instances: The instances that are read, directly or through the functions.
        doing: Completes "while …" in the text of an error.
    """
    found: dict[int, list[tuple[bool, str]]] = defaultdict(list)
    for ids in id_lists(one.object_id for one in instances):
        for batch in bulk.read(_OF_IDS, _FIELDS, [ids], doing=doing, rows=len(instances)):
            for row in batch.to_pylist():
                found[row["object_id"]].append((False, row["name"].decode("utf-16-le")))
    problems: dict[int, AccessDeniedError] = {}
    for one in instances:
        problem = WholeRows.of(one.schema, trusted=True).problem(_concealment(found[one.object_id]))
        if problem is not None:
            problems[one.object_id] = AccessDeniedError(problem)
    return problems


def sees_policies(control: Control) -> bool:
    """Whether the login sees every security policy of the database."""
    return bool(control.value(_SEES_POLICIES, doing="asking whether the login sees security policies"))


@dataclass(frozen=True, slots=True)
class WholeRows:
    """What must hold for the rows of a table, and its changes, to be read completely.

    Attributes:
        table: the table.
        columns: the columns that are read.
        trusted: whether the operator says that security policies let the login see every row.
    """

    table: TableId
    columns: frozenset[str]
    trusted: bool

    @classmethod
    def of(cls, schema: TableSchema, *, trusted: bool, hidden: Collection[str] | None = None) -> WholeRows:
        """Make one for a table.

        Args:
            schema: its structure.
            trusted: whether the operator says that security policies let the login see every row.
            hidden: the columns that are not read; None: those that nothing uses.
        """
        unread = schema.hidden if hidden is None else hidden
        return cls(schema.table_id, frozenset(one.name for one in schema.columns if one.name not in unread), trusted)

    @classmethod
    def of_instances(cls, instances: Iterable[CaptureInstance], *, trusted: bool) -> WholeRows:
        """Make one for a table whose changes come from several instances: each may have columns that others lack.

        Args:
            instances: those of the table, at least one.
            trusted: whether the operator says that security policies let the login see every row.
        """
        own = [cls.of(one.schema, trusted=trusted) for one in instances]
        return replace(own[-1], columns=frozenset().union(*(one.columns for one in own)))

    def problem(self, concealed: Concealment) -> str | None:
        """Why the rows cannot be read as they are, and what to do; None if they can."""
        masked = sorted(set(concealed.masked) & self.columns)
        name = f"{quote(self.table.schema)}.{quote(self.table.name)}"
        if masked:
            return (
                f"{self.table}: the login sees masks in the place of values ({', '.join(masked)}: dynamic data "
                f"masking). GRANT UNMASK TO <login's user>, or since SQL Server 2022 GRANT UNMASK ON {name} TO "
                "<login's user> and, for its change tables, GRANT UNMASK ON SCHEMA::cdc TO <login's user>, or leave "
                "the columns out with column.exclude.list"
            )
        if concealed.policies and not self.trusted:
            policies = ", ".join(concealed.policies)
            return (
                f"{self.table}: row-level security ({policies}) may hide rows from the login, which no error shows: "
                "snapshots and checks would miss them. Let the predicate return every row to the login's user, then "
                "say so with snapshot.row.level.security=trust; or leave the table out"
            )
        return None

    def require(self, bulk: Bulk, *, doing: str) -> None:
        """Check with one short statement in the transaction of the read.

        Raises:
            AccessDeniedError: values or rows are concealed.
        """
        own = f"= OBJECT_ID({text(f'{quote(self.table.schema)}.{quote(self.table.name)}')})"
        rows = [
            (bool(row["policy"]), row["name"].decode("utf-16-le"))
            for batch in bulk.read(_CONCEALED.format(tables=own), _FIELDS, doing=doing, rows=len(self.columns))
            for row in batch.to_pylist()
        ]
        problem = self.problem(_concealment(rows))
        if problem is not None:
            raise AccessDeniedError(problem)


def trusted_policies(table: TableId, concealed: Concealment) -> str:
    """What is taken on the operator's word."""
    return (
        f"{table}: row-level security ({', '.join(concealed.policies)}): that the login sees every row is not proven; "
        "snapshot.row.level.security=trust says so"
    )


UNSEEN_POLICIES = (
    "the login does not see security policies: where row-level security hides rows from it, snapshots and checks miss "
    "them without a word. GRANT VIEW DEFINITION TO <login's user>"
)


def _concealment(rows: Collection[tuple[bool, str]]) -> Concealment:
    masked = dict.fromkeys(name for is_policy, name in rows if not is_policy)  # The names are of several tables.
    return Concealment(tuple(masked), tuple(name for is_policy, name in rows if is_policy))
