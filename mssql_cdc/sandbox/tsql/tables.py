"""Table definitions, CREATE/ALTER TABLE and indexes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mssql_cdc.sandbox.tsql import ast
from mssql_cdc.sandbox.tsql import statements as st
from mssql_cdc.sandbox.tsql.ast import TypeName
from mssql_cdc.sandbox.tsql.changes import ChangeParser

_CONSTRAINT_WORDS = frozenset({"CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK"})
_STORAGE_OPTIONS = frozenset(
    [
        "PAD_INDEX",
        "FILLFACTOR",
        "SORT_IN_TEMPDB",
        "IGNORE_DUP_KEY",
        "STATISTICS_NORECOMPUTE",
        "STATISTICS_INCREMENTAL",
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
"""Options of tables and indexes that mean something here, or nothing that anybody could see."""
_COLUMN_FLAGS: dict[tuple[str, ...], dict[str, Any]] = {
    ("NOT", "NULL"): {"nullable": False},
    ("NULL",): {"nullable": True},
    ("NOT", "FOR", "REPLICATION"): {},
    ("SPARSE",): {"sparse": True},
    ("HIDDEN",): {"hidden": True},
    ("ROWGUIDCOL",): {"rowguid": True},
    ("PERSISTED",): {},
    ("FILESTREAM",): {},
    ("GENERATED", "ALWAYS", "AS", "ROW", "START"): {"generated": "start"},
    ("GENERATED", "ALWAYS", "AS", "ROW", "END"): {"generated": "end"},
}
"""Properties of a column that are only words, and what they say."""


class TableParser(ChangeParser):
    """Adds what stands between the parentheses of CREATE TABLE, and the statements around it."""

    __slots__ = ()

    def create_table(self, line: int) -> st.Statement:
        """CREATE TABLE name (…) [ON filegroup] [WITH (…)]; CREATE TABLE has been read."""
        name = self.name()
        definition = self.table_definition()
        return st.CreateTable(name, definition, self.storage_options(), line=line)

    def table_definition(self) -> st.TableDefinition:
        """(columns, constraints, indexes, period)."""
        self.expect("(")
        found = self.table_elements(closing=True)
        self.expect(")")
        return found

    def table_elements(self, *, closing: bool) -> st.TableDefinition:
        """Elements with commas, up to `)` (closing) or the end of the list."""
        columns: list[st.ColumnDefinition] = []
        constraints: list[st.Constraint] = []
        indexes: list[st.IndexDefinition] = []
        period: tuple[str, str] | None = None
        while True:
            if self.text in _CONSTRAINT_WORDS:
                constraints.append(self.table_constraint())
            elif self.text == "DEFAULT" and not closing:
                constraints.append(self._default_for(""))
            elif self.text == "INDEX":
                indexes.append(self._inline_index(()))
            elif self.at("PERIOD", "FOR"):
                self.expect("PERIOD", "FOR", "SYSTEM_TIME")
                start, end = self.names()
                period = (start, end)
            else:
                column, index = self.column_definition()
                columns.append(column)
                indexes.extend(index)
            if not self.accept(",") or (closing and self.text == ")"):
                break
        return st.TableDefinition(tuple(columns), tuple(constraints), tuple(indexes), period)

    def column_definition(self) -> tuple[st.ColumnDefinition, list[st.IndexDefinition]]:
        """One column with its properties, and an index declared inline."""
        name = self.identifier()
        if self.accept("AS"):
            return self._computed_column(name), []
        column = st.ColumnDefinition(name, self._column_type(name))
        constraints: list[st.Constraint] = []
        indexes: list[st.IndexDefinition] = []
        while True:
            changed = self._column_property(column)
            if changed is not None:
                column = changed
            elif self.text == "DEFAULT" or (self.text == "CONSTRAINT" and self.peek(2).text == "DEFAULT"):
                column = replace(column, default=self._column_default(name))
            elif self.text == "INDEX":
                indexes.append(self._inline_index((st.KeyColumn(name),)))
            elif self.text in _CONSTRAINT_WORDS or self.text == "REFERENCES":
                constraints.append(self._column_constraint(name))
            else:
                break
        return replace(column, constraints=tuple(constraints)), indexes

    def _column_property(self, column: st.ColumnDefinition) -> st.ColumnDefinition | None:
        """The column with the property that stands next, or None when none stands there."""
        for words, changes in _COLUMN_FLAGS.items():
            if self.accept(*words):
                return replace(column, **changes)
        if self.accept("IDENTITY"):
            return replace(column, identity=self._identity())
        if self.accept("COLLATE"):
            type_name = column.type
            assert type_name is not None
            return replace(column, type=TypeName(type_name.name, type_name.arguments, self.word_as_written()))
        if self.at("MASKED", "WITH"):
            self.expect("MASKED", "WITH")
            self.skip_parentheses()
            return column
        return None

    def _column_type(self, name: str) -> TypeName:
        """The type; `timestamp` may be both name and type of a column."""
        if name.lower() == "timestamp" and (self.text in (",", ")") or not self.at_name()):
            return TypeName(("timestamp",))
        return self.type_name()

    def _computed_column(self, name: str) -> st.ColumnDefinition:
        expression = self.expression()
        persisted = self.accept("PERSISTED")
        nullable = None
        constraints: list[st.Constraint] = []
        while True:
            if self.accept("NOT", "NULL"):
                nullable = False
            elif self.text in _CONSTRAINT_WORDS:
                constraints.append(self._column_constraint(name))
            else:
                break
        return st.ColumnDefinition(
            name, None, nullable, computed=expression, persisted=persisted, constraints=tuple(constraints)
        )

    def _identity(self) -> tuple[int, int]:
        if not self.accept("("):
            return (1, 1)
        seed = self.integer()
        self.expect(",")
        increment = self.integer()
        self.expect(")")
        return (seed, increment)

    def _column_default(self, column: str) -> st.Constraint:
        name = self.identifier() if self.accept("CONSTRAINT") else ""
        self.expect("DEFAULT")
        expression = self.value()
        self.accept("WITH", "VALUES")
        return st.Constraint("default", name, expression=expression, column=column)

    def _default_for(self, name: str) -> st.Constraint:
        """DEFAULT value FOR column, of ALTER TABLE ADD."""
        self.expect("DEFAULT")
        expression = self.value()
        self.expect("FOR")
        column = self.identifier()
        self.accept("WITH", "VALUES")
        return st.Constraint("default", name, expression=expression, column=column)

    def _column_constraint(self, column: str) -> st.Constraint:
        name = self.identifier() if self.accept("CONSTRAINT") else ""
        if self.text in ("PRIMARY", "UNIQUE"):
            return self._key(name, (st.KeyColumn(column),))
        if self.text == "CHECK":
            return self._check(name)
        self.accept("FOREIGN", "KEY")
        return st.Constraint("foreign", name, (st.KeyColumn(column),), reference=self._reference())

    def table_constraint(self) -> st.Constraint:
        """[CONSTRAINT name] PRIMARY KEY | UNIQUE | FOREIGN KEY | CHECK | DEFAULT … FOR column."""
        name = self.identifier() if self.accept("CONSTRAINT") else ""
        if self.text in ("PRIMARY", "UNIQUE"):
            return self._key(name, ())
        if self.text == "CHECK":
            return self._check(name)
        if self.text == "DEFAULT":
            return self._default_for(name)
        self.expect("FOREIGN", "KEY")
        columns = tuple(st.KeyColumn(column) for column in self.names())
        return st.Constraint("foreign", name, columns, reference=self._reference())

    def _key(self, name: str, columns: tuple[st.KeyColumn, ...]) -> st.Constraint:
        kind = "primary" if self.accept("PRIMARY", "KEY") else "unique"
        if kind == "unique":
            self.expect("UNIQUE")
        word = self.accept_one("CLUSTERED", "NONCLUSTERED")
        clustered = None if not word else word == "CLUSTERED"
        if not columns or self.text == "(":
            columns = self.key_columns()
        self.storage_options()
        return st.Constraint(kind, name, columns, clustered)  # type: ignore[arg-type]

    def _check(self, name: str) -> st.Constraint:
        self.expect("CHECK")
        self.accept("NOT", "FOR", "REPLICATION")
        self.expect("(")
        expression = self.expression()
        self.expect(")")
        return st.Constraint("check", name, expression=expression)

    def _reference(self) -> st.ForeignReference:
        self.expect("REFERENCES")
        table = self.name()
        columns = self.names() if self.text == "(" else ()
        actions = {"DELETE": "NO ACTION", "UPDATE": "NO ACTION"}
        while self.text == "ON" and self.peek().text in actions:
            self.advance()
            event = self.advance().text
            if self.accept("CASCADE"):
                actions[event] = "CASCADE"
            elif self.accept("NO"):
                self.expect("ACTION")
            else:
                self.expect("SET")
                actions[event] = f"SET {self.expect_one('NULL', 'DEFAULT')}"
        self.accept("NOT", "FOR", "REPLICATION")
        return st.ForeignReference(table, columns, actions["DELETE"], actions["UPDATE"])

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

    def _inline_index(self, columns: tuple[st.KeyColumn, ...]) -> st.IndexDefinition:
        self.expect("INDEX")
        name = self.identifier()
        unique = self.accept("UNIQUE")
        clustered = self.accept_one("CLUSTERED", "NONCLUSTERED") == "CLUSTERED"
        columnstore = self.accept("COLUMNSTORE")
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
        """WITH (…), ON filegroup, TEXTIMAGE_ON filegroup: options as (NAME, text), places as (ON, name)."""
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
                    self.skip_parentheses()
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
