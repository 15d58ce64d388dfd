"""What the server conceals from the login when it reads source tables, without an error.

Dynamic data masking replaces values, and row-level security leaves out rows. Change tables have neither: they are
tables of their own, whose columns take only the types of the source's. So the rows of a table would be falsified by its
snapshots, and not by its stream. `source` leaves such a table out; `snapshot_reader` asks again around each read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa

from mssql_cdc.errors import AccessDeniedError
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc.source.sqlserver.bulk import Bulk
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.sql import quote, text
from mssql_cdc.source.values import Concealment

_FIELDS = [
    pa.field("object_id", pa.int32()),
    pa.field("policy", pa.int32()),
    pa.field("name", pa.binary()),
]
# On objects UNMASK is a permission since SQL Server 2022; before, the function returns NULL for them.
_CONCEALED = """
SELECT c.object_id, 0 AS policy, CAST(c.name AS varbinary(256)) AS name
FROM sys.columns c JOIN sys.tables t ON t.object_id = c.object_id JOIN sys.schemas s ON s.schema_id = t.schema_id
WHERE c.object_id {tables} AND c.is_masked = 1
  AND COALESCE(
    HAS_PERMS_BY_NAME(QUOTENAME(s.name) + N'.' + QUOTENAME(t.name), N'OBJECT', N'UNMASK', c.name, N'COLUMN'),
    HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), N'DATABASE', N'UNMASK'), 0) = 0
UNION ALL
SELECT f.target_object_id, 1, CAST(s.name + N'.' + p.name AS varbinary(520))
FROM sys.security_predicates f
JOIN sys.security_policies p ON p.object_id = f.object_id JOIN sys.schemas s ON s.schema_id = p.schema_id
WHERE f.target_object_id {tables} AND f.predicate_type = 0 AND p.is_enabled = 1"""
_CAPTURED = "IN (SELECT source_object_id FROM cdc.change_tables)"
_SEES_POLICIES = """
SELECT CASE WHEN HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), N'DATABASE', N'VIEW DEFINITION') = 1
  OR HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), N'DATABASE', N'ALTER ANY SECURITY POLICY') = 1 THEN 1 ELSE 0 END"""


def concealments(control: Control) -> Mapping[int, Concealment]:
    """What is concealed of captured tables, by their object ids."""
    rows = control.rows(_CONCEALED.format(tables=_CAPTURED), doing="looking for masked columns and filtered rows")
    found: dict[int, list[tuple[bool, str]]] = defaultdict(list)
    for row in rows:
        found[row.object_id].append((bool(row.policy), bytes(row.name).decode("utf-16-le")))
    return {table: _concealment(own) for table, own in found.items()}


def sees_policies(control: Control) -> bool:
    """Whether the login sees every security policy of the database."""
    return bool(control.value(_SEES_POLICIES, doing="asking whether the login sees security policies"))


@dataclass(frozen=True, slots=True)
class WholeRows:
    """What has to hold for the rows of a table to be read whole.

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
        """That of a table.

        Args:
            schema: its structure.
            trusted: whether the operator says that security policies let the login see every row.
            hidden: the columns that are not read; None: those that nothing uses.
        """
        unread = schema.hidden if hidden is None else hidden
        return cls(schema.table_id, frozenset(one.name for one in schema.columns if one.name not in unread), trusted)

    def problem(self, concealed: Concealment) -> str | None:
        """Why the rows cannot be read as they are, and what to do; None if they can."""
        masked = sorted(set(concealed.masked) & self.columns)
        name = f"{quote(self.table.schema)}.{quote(self.table.name)}"
        if masked:
            return (
                f"{self.table}: the login sees masks in the place of values ({', '.join(masked)}: dynamic data "
                f"masking). GRANT UNMASK TO <login's user>, or since SQL Server 2022 GRANT UNMASK ON {name} TO "
                "<login's user>, or leave the columns out with column.exclude.list"
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
        """Check by one short statement in the transaction of the read.

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
    return Concealment(
        tuple(name for is_policy, name in rows if not is_policy), tuple(name for is_policy, name in rows if is_policy)
    )
