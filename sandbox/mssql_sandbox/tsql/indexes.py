"""Indexes, their columns and options, and the ON clause of tables and indexes."""

from __future__ import annotations

from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.changes import ChangeParser

_STORAGE_OPTIONS = frozenset(
    [
        "PAD_INDEX",
        "FILLFACTOR",
        "SORT_IN_TEMPDB",
        "IGNORE_DUP_KEY",
        "STATISTICS_NORECOMPUTE",
        "STATISTICS_INCREMENTAL",
        "STATISTICS_ONLY",
        "DROP_EXISTING",
        "ONLINE",
        "RESUMABLE",
        "MAX_DURATION",
        "ALLOW_ROW_LOCKS",
        "ALLOW_PAGE_LOCKS",
        "OPTIMIZE_FOR_SEQUENTIAL_KEY",
        "MAXDOP",
        "DATA_COMPRESSION",
        "XML_COMPRESSION",
        "COMPRESSION_DELAY",
        "BUCKET_COUNT",
        "LOB_COMPACTION",
        "COMPRESS_ALL_ROW_GROUPS",
        "SYSTEM_VERSIONING",
        "MEMORY_OPTIMIZED",
        "DURABILITY",
        "WAIT_AT_LOW_PRIORITY",
        "MOVE",
    ]
)
"""Options of tables and indexes that have an effect here, or no visible one."""


class IndexParser(ChangeParser):
    """Adds statements on indexes, and what CREATE TABLE shares with them."""

    __slots__ = ()

    def key_columns(self) -> tuple[st.KeyColumn, ...]:
        """(a ASC, b DESC)."""
        self.expect("(")
        found = []
        while True:
            name = self.identifier()
            found.append(st.KeyColumn(name, self.accept_one("ASC", "DESC") == "DESC"))
            if not self.accept(","):
                break
        self.expect(")")
        return tuple(found)

    def inline_index(self, columns: tuple[st.KeyColumn, ...]) -> st.IndexDefinition:
        """INDEX name … inside CREATE TABLE."""
        self.expect("INDEX")
        name = self.identifier()
        unique = self.accept("UNIQUE")
        clustered = self.accept_one("CLUSTERED", "NONCLUSTERED") == "CLUSTERED"
        columnstore = self.accept("COLUMNSTORE")
        self.accept("HASH")
        if self.text == "(":
            columns = self.key_columns()
        include, where = self._index_tail()
        self.storage_options()
        return st.IndexDefinition(name, columns, unique, clustered, include, where, columnstore)

    def _index_tail(self) -> tuple[tuple[str, ...], ast.Expression | None]:
        include = self.names() if self.accept("INCLUDE") else ()
        where = self.expression() if self.accept("WHERE") else None
        return include, where

    def storage_options(self) -> tuple[tuple[str, str], ...]:
        """WITH (…), ON filegroup, TEXTIMAGE_ON filegroup: options as (NAME, text), filegroups as (ON, name).

        A partition scheme is followed by its column as (ON COLUMN, name).
        """
        options: tuple[tuple[str, str], ...] = ()
        while True:
            if self.at("WITH", "("):
                self.advance()
                options += self.option_list(known=_STORAGE_OPTIONS)
            elif self.at("WITH", "FILLFACTOR"):
                self.expect("WITH", "FILLFACTOR", "=")
                self.advance()
            elif (
                self.text == "ON"
                and self.peek().kind in ("q", "w", "s")
                and self.peek().text not in ("DELETE", "UPDATE")
            ):
                self.advance()
                options += (("ON", str(self.advance().value)),)
                if self.text == "(":
                    options += tuple(("ON COLUMN", name) for name in self.names())
            elif self.accept("TEXTIMAGE_ON") or self.accept("FILESTREAM_ON"):
                options += (("ON", str(self.advance().value)),)
            else:
                return options

    def option_list(self, *, known: frozenset[str] | None = None) -> tuple[tuple[str, str], ...]:
        """(NAME [= value [(…)]], …) with the values as written; 155 for a name that is not `known`."""
        self.expect("(")
        found = []
        while not self.accept(")"):
            token = self.token
            name = self.word().upper()
            if known is not None and name not in known:
                raise self.error(
                    155, f"'{token.value}' is not a recognized CREATE TABLE or CREATE INDEX option.", token
                )
            value = ""
            if self.accept("="):
                start = self.token.start
                self.advance()
                if self.text == "(":
                    self.skip_parentheses()
                while self.text not in (",", ")") and self.token.kind != "e":
                    self.advance()
                value = self.source.text[start : self.peek(-1).end]
            found.append((name, value))
            if not self.accept(",") and self.text != ")":
                self.fail()
        return tuple(found)

    def create_index(self, line: int) -> st.Statement:
        """[UNIQUE] [CLUSTERED] [COLUMNSTORE] INDEX name ON table (…) …; CREATE has been read."""
        unique = self.accept("UNIQUE")
        clustered = self.accept_one("CLUSTERED", "NONCLUSTERED") == "CLUSTERED"
        columnstore = self.accept("COLUMNSTORE")
        self.expect("INDEX")
        name = self.identifier()
        self.expect("ON")
        table = self.name()
        columns = self.key_columns() if self.text == "(" else ()
        if not columns and not columnstore:
            self.fail()
        include, where = self._index_tail()
        options = self.storage_options()
        index = st.IndexDefinition(name, columns, unique, clustered, include, where, columnstore)
        return st.CreateIndex(table, index, options, line=line)

    def drop_index(self, line: int) -> st.Statement:
        """DROP INDEX [IF EXISTS] name ON table | table.name; DROP INDEX has been read."""
        if_exists = self.accept("IF", "EXISTS")
        name = self.name()
        if self.accept("ON"):
            table = self.name()
            self.storage_options()
            return st.DropIndex(table, name[-1], if_exists, line=line)
        return st.DropIndex(name[:-1], name[-1], if_exists, line=line)

    def alter_index(self, line: int) -> st.Statement:
        """ALTER INDEX name | ALL ON table action; ALTER INDEX has been read."""
        index = "ALL" if self.accept("ALL") else self.identifier()
        self.expect("ON")
        table = self.name()
        action = self.expect_one("REBUILD", "REORGANIZE", "DISABLE", "SET", "RESUME", "PAUSE", "ABORT")
        if self.accept("PARTITION"):
            self.expect("=")
            self.advance()
        if self.text == "(":
            self.skip_parentheses()
        self.storage_options()
        return st.AlterIndex(table, index, action.lower(), line=line)
