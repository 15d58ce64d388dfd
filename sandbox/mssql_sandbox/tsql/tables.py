"""Table definitions and CREATE TABLE."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.ast import TypeName
from mssql_sandbox.tsql.indexes import IndexParser

_CONSTRAINT_WORDS = frozenset({"CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK"})
_COLUMN_FLAGS: dict[tuple[str, ...], dict[str, Any]] = {
    ("NOT", "NULL"): {"nullable": False},
    ("NULL",): {"nullable": True},
    ("NOT", "FOR", "REPLICATION"): {"not_for_replication": True},
    ("SPARSE",): {"sparse": True},
    ("HIDDEN",): {"hidden": True},
    ("ROWGUIDCOL",): {"rowguid": True},
    ("PERSISTED",): {},
    ("FILESTREAM",): {},
    ("GENERATED", "ALWAYS", "AS", "ROW", "START"): {"generated": "start"},
    ("GENERATED", "ALWAYS", "AS", "ROW", "END"): {"generated": "end"},
}
"""Column properties that are single keywords, and their effect."""


class TableParser(IndexParser):
    """Adds the contents of the parentheses of CREATE TABLE, and the statements around it."""

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
                indexes.append(self.inline_index(()))
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
                indexes.append(self.inline_index((st.KeyColumn(name),)))
            elif self.text in _CONSTRAINT_WORDS or self.text == "REFERENCES":
                constraints.append(self._column_constraint(name))
            else:
                break
        return replace(column, constraints=tuple(constraints)), indexes

    def _column_property(self, column: st.ColumnDefinition) -> st.ColumnDefinition | None:
        """The column with the next property, or None if there is none."""
        if self.text == "COLUMN_SET":
            raise self.unsupported("COLUMN_SET")
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
            return replace(column, masking=self.masking())
        return None

    def masking(self) -> str:
        """MASKED WITH (FUNCTION = 'text'): the text."""
        self.expect("MASKED", "WITH")
        self.expect("(")
        self.expect("FUNCTION")
        self.expect("=")
        text = self.string()
        self.expect(")")
        return text

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
        options = self.storage_options()
        return st.Constraint(kind, name, columns, clustered, options=options)  # type: ignore[arg-type]

    def _check(self, name: str) -> st.Constraint:
        self.expect("CHECK")
        spared = self.accept("NOT", "FOR", "REPLICATION")
        self.expect("(")
        expression = self.expression()
        self.expect(")")
        return st.Constraint("check", name, expression=expression, not_for_replication=spared)

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
        spared = self.accept("NOT", "FOR", "REPLICATION")
        return st.ForeignReference(table, columns, actions["DELETE"], actions["UPDATE"], spared)
