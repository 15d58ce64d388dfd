"""ALTER TABLE in all its forms."""

from __future__ import annotations

from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.ast import Expression
from mssql_sandbox.tsql.tables import TableParser

_COLUMN_PROPERTIES = ("ROWGUIDCOL", "PERSISTED", "SPARSE", "HIDDEN", "MASKED", "NOT")


class AlterTableParser(TableParser):
    """Adds `alter_table`."""

    __slots__ = ()

    def alter_table(self, line: int) -> st.Statement:
        """The rest of ALTER TABLE."""
        table = self.name()
        check_existing = True
        if self.text == "WITH" and self.peek().text in ("CHECK", "NOCHECK"):
            self.advance()
            check_existing = self.advance().text == "CHECK"
        word = self.text
        if word == "ADD":
            return self._add(table, line, check_existing=check_existing)
        if word == "ALTER":
            return self._alter_column(table, line)
        if word == "DROP":
            return self._drop(table, line)
        if word in ("CHECK", "NOCHECK"):
            self.advance()
            self.expect("CONSTRAINT")
            return st.AlterTableSet(table, word.lower(), self._all_or_names(), line=line)
        if word in ("ENABLE", "DISABLE"):
            self.advance()
            what = self.expect_one("TRIGGER", "CHANGE_TRACKING")
            if what == "TRIGGER":
                return st.AlterTableSet(table, f"{word.lower()} trigger", self._all_or_names(), line=line)
            options = self.option_list() if self.accept("WITH") else ()
            return st.AlterTableSet(table, f"{word.lower()} change_tracking", (), options, line=line)
        if self.accept("SET"):
            return st.AlterTableSet(table, "set", (), self.option_list(), line=line)
        if self.accept("REBUILD"):
            self.storage_options()
            return st.AlterTableSet(table, "rebuild", line=line)
        if self.accept("SWITCH"):
            return self._switch(table, line)
        self.fail()
        return None

    def _switch(self, table: tuple[str, ...], line: int) -> st.Statement:
        """SWITCH [PARTITION n] TO target [PARTITION m] [WITH (…)]."""
        source_partition = self._partition()
        self.expect("TO")
        target = self.name()
        target_partition = self._partition()
        self.storage_options()
        return st.SwitchPartition(table, target, source_partition, target_partition, line=line)

    def _partition(self) -> Expression | None:
        return self.expression() if self.accept("PARTITION") else None

    def _all_or_names(self) -> tuple[str, ...]:
        if self.accept("ALL"):
            return ()
        found = [self.identifier()]
        while self.accept(","):
            found.append(self.identifier())
        return tuple(found)

    def _add(self, table: tuple[str, ...], line: int, *, check_existing: bool) -> st.Statement:
        self.expect("ADD")
        start = self.mark()
        definition = self.table_elements(closing=False)
        if not check_existing:
            marked = tuple(
                st.Constraint(c.kind, c.name, c.columns, c.clustered, c.reference, c.expression, c.column, False)
                for c in definition.constraints
            )
            definition = st.TableDefinition(definition.columns, marked, definition.indexes, definition.period)
        return st.AlterTableAdd(table, definition, self._said_with_values(start), line=line)

    def _said_with_values(self, start: int) -> bool:
        """Whether the elements just read contained WITH VALUES."""
        end = self.mark()
        self.back_to(start)
        found = False
        while self.mark() < end:
            found = found or self.at("WITH", "VALUES")
            self.advance()
        return found

    def _alter_column(self, table: tuple[str, ...], line: int) -> st.Statement:
        self.expect("ALTER", "COLUMN")
        column = self.identifier()
        action = self.accept_one("ADD", "DROP")
        if action:
            if action == "ADD" and self.at("MASKED", "WITH"):
                return st.AlterColumn(table, column, None, None, "add masked", self.masking(), line=line)
            property_ = self.expect_one(*_COLUMN_PROPERTIES)
            if property_ == "NOT":
                self.expect("FOR", "REPLICATION")
                property_ = "NOT FOR REPLICATION"
            return st.AlterColumn(table, column, None, None, f"{action} {property_}".lower(), line=line)
        type_name = self.type_name()
        nullable: bool | None = None
        masking: str | None = None
        while True:
            if self.accept("NOT", "NULL"):
                nullable = False
            elif self.accept("NULL"):
                nullable = True
            elif self.at("MASKED", "WITH"):
                masking = self.masking()
            elif not self.accept("SPARSE"):
                break
        if self.text == "WITH" and self.peek().text == "(":
            self.storage_options()
        return st.AlterColumn(table, column, type_name, nullable, "", masking, line=line)

    def _drop(self, table: tuple[str, ...], line: int) -> st.Statement:
        self.expect("DROP")
        items: list[tuple[str, str]] = []
        if_exists = False
        kind = "constraint"
        while True:
            if self.accept("PERIOD", "FOR", "SYSTEM_TIME"):
                items.append(("period", ""))
            else:
                word = self.accept_one("COLUMN", "CONSTRAINT")
                kind = word.lower() or kind
                if self.accept("IF", "EXISTS"):
                    if_exists = True
                items.append((kind, self.identifier()))
                self.storage_options()
            if not self.accept(","):
                return st.AlterTableDrop(table, tuple(items), if_exists, line=line)  # type: ignore[arg-type]
