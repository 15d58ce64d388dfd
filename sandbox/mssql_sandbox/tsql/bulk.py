"""INSERT BULK, which drivers send before a message with rows, and BULK INSERT, which reads rows from a file."""

from __future__ import annotations

from dataclasses import replace

from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.ast import Name, TypeName
from mssql_sandbox.tsql.queries import QueryParser

_OPTIONS = ("CHECK_CONSTRAINTS", "FIRE_TRIGGERS", "KEEP_NULLS", "TABLOCK", "ALLOW_ENCRYPTED_VALUE_MODIFICATIONS")
_SIZES = ("ROWS_PER_BATCH", "KILOBYTES_PER_BATCH")
_FILE_FLAGS = ("CHECK_CONSTRAINTS", "FIRE_TRIGGERS", "KEEPIDENTITY", "KEEPNULLS", "TABLOCK")
_FILE_NUMBERS = ("BATCHSIZE", "FIRSTROW", "LASTROW", "MAXERRORS", *_SIZES)
_FILE_TEXTS = (
    "CODEPAGE", "DATAFILETYPE", "FIELDTERMINATOR", "ROWTERMINATOR", "ERRORFILE", "FORMAT", "FIELDQUOTE", "FORMATFILE",
    "DATA_SOURCE", "ERRORFILE_DATA_SOURCE", "FORMATFILE_DATA_SOURCE",
)  # fmt: skip


class BulkParser(QueryParser):
    """Adds INSERT BULK and BULK INSERT."""

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

    def bulk_insert(self) -> st.Statement:
        """BULK INSERT target FROM 'file' [WITH (options)]."""
        line = self.line()
        self.expect("BULK", "INSERT")
        target = self.name()
        self.expect("FROM")
        file = self.string()
        options: list[tuple[str, str]] = []
        if self.accept("WITH"):
            self.expect("(")
            options.append(self._file_option())
            while self.accept(","):
                options.append(self._file_option())
            self.expect(")")
        return st.BulkInsert(target, file, tuple(options), line=line)

    def _file_option(self) -> tuple[str, str]:
        if self.accept("ORDER"):
            self.skip_parentheses()
            return "ORDER", ""
        word = self.expect_one(*_FILE_FLAGS, *_FILE_NUMBERS, *_FILE_TEXTS)
        if word in _FILE_FLAGS:
            return word, ""
        self.expect("=")
        if word in _FILE_NUMBERS:
            return word, str(self.integer())
        return word, str(self.integer()) if word == "CODEPAGE" and self.token.kind == "i" else self.string()
