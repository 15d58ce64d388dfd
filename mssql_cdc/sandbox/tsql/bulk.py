"""INSERT BULK: what drivers say before they send rows as a bulk load message. BULK INSERT from files is not known."""

from __future__ import annotations

from dataclasses import replace

from mssql_cdc.sandbox.tsql import statements as st
from mssql_cdc.sandbox.tsql.ast import Name, TypeName
from mssql_cdc.sandbox.tsql.queries import QueryParser

_OPTIONS = ("CHECK_CONSTRAINTS", "FIRE_TRIGGERS", "KEEP_NULLS", "TABLOCK", "ALLOW_ENCRYPTED_VALUE_MODIFICATIONS")
_SIZES = ("ROWS_PER_BATCH", "KILOBYTES_PER_BATCH")


class BulkParser(QueryParser):
    """Adds INSERT BULK."""

    __slots__ = ()

    def insert_bulk(self, target: Name, line: int) -> st.Statement:
        """INSERT BULK target (column type, …) [WITH (options)]; the target has been read."""
        columns = []
        if self.accept("("):
            columns.append(self._bulk_column())
            while self.accept(","):
                columns.append(self._bulk_column())
            self.expect(")")
        options = set()
        if self.accept("WITH"):
            self.expect("(")
            options.add(self._bulk_option())
            while self.accept(","):
                options.add(self._bulk_option())
            self.expect(")")
        return st.InsertBulk(target, tuple(columns), frozenset(options), line=line)

    def _bulk_column(self) -> tuple[str, TypeName]:
        name = self.identifier()
        type_name = self.type_name()
        if self.accept("COLLATE"):
            type_name = replace(type_name, collation=str(self.advance().value))
        return name, type_name

    def _bulk_option(self) -> str:
        if self.accept("ORDER"):
            self.skip_parentheses()
            return "ORDER"
        word = self.expect_one(*_OPTIONS, *_SIZES)
        if word in _SIZES:
            self.expect("=")
            self.integer()
        return word
