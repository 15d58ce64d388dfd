"""`message.key.columns`: the columns of a record's key, where they are not the primary key (features EVT-05).

Only Debezium's record key: the identity of a row in the lake is `_key` (correctness B12).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mssql_cdc.config.patterns import compile_java

_ENTRY = re.compile(r"\s*([^\s:]+):([^:\s]+)\s*")


@dataclass(frozen=True, slots=True)
class RecordKeys:
    """Pairs of (table expression, column expression), in configured order."""

    entries: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> RecordKeys:
        """From `tableRegex:column,column;tableRegex:column` (raises ValueError)."""
        entries: list[tuple[str, str]] = []
        for part in text.split(";"):
            if not part.strip():
                continue
            found = _ENTRY.fullmatch(part)
            if found is None:
                raise ValueError(f"{part.strip()!r} is not of the form <table>:<column>,<column>")
            table, columns = found.groups()
            entries.extend((table, column) for column in columns.split(",") if column)
        for table, column in entries:
            compile_java(f"(?:{table})\\.(?:{column})")
        return cls(tuple(entries))

    def columns_for(self, catalog: str, schema: str, table: str, columns: Sequence[str]) -> tuple[str, ...]:
        """The key columns out of `columns`, in configured order; empty means: use the primary key."""
        found: list[str] = []
        for table_expression, column_expression in self.entries:
            expression = compile_java(f"(?:{table_expression})\\.(?:{column_expression})")
            for column in columns:
                name = f"{schema}.{table}.{column}"
                if column not in found and (expression.fullmatch(name) or expression.fullmatch(f"{catalog}.{name}")):
                    found.append(column)
        return tuple(found)
