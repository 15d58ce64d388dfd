"""XML SCHEMA COLLECTION, XML INDEX, FULLTEXT CATALOG and FULLTEXT INDEX."""

from __future__ import annotations

from typing import Literal as OneOf

from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.administration import AdministrationParser
from mssql_sandbox.tsql.ast import Name

_Action = OneOf["create", "alter", "drop"]
_CHANGES = ("ENABLE", "DISABLE", "ADD", "DROP", "SET", "START", "STOP", "PAUSE", "RESUME", "ALTER")


class DocumentParser(AdministrationParser):
    """Adds what XML and full-text search define."""

    __slots__ = ()

    def xml_object(self, action: _Action, line: int) -> st.Statement:
        """SCHEMA COLLECTION or INDEX; the action and XML have been read."""
        if self.accept("INDEX"):
            return self._xml_index(line, primary=False)
        self.expect("SCHEMA", "COLLECTION")
        name = self.name()
        if action == "drop":
            return st.XmlSchemaCollection(action, name, line=line)
        self.expect("AS" if action == "create" else "ADD")
        return st.XmlSchemaCollection(action, name, self.expression(), line=line)

    def primary_xml_index(self, line: int) -> st.Statement:
        """XML INDEX name ON table (column); CREATE PRIMARY has been read."""
        self.expect("XML", "INDEX")
        return self._xml_index(line, primary=True)

    def _xml_index(self, line: int, *, primary: bool) -> st.Statement:
        name = self.identifier()
        self.expect("ON")
        table = self.name()
        (column,) = self.names()
        base, purpose = "", ""
        if not primary:
            self.expect("USING", "XML", "INDEX")
            base = self.identifier()
            self.expect("FOR")
            purpose = self.expect_one("PATH", "PROPERTY", "VALUE")
        self.storage_options()
        return st.CreateXmlIndex(name, table, column, base, purpose, line=line)  # type: ignore[arg-type]

    def fulltext(self, action: _Action, line: int) -> st.Statement:
        """CATALOG, INDEX or STOPLIST; the action and FULLTEXT have been read."""
        if self.accept("INDEX"):
            self.expect("ON")
            table = self.name()
            if action == "create":
                return self._fulltext_index(table, line)
            if action == "drop":
                return st.FullTextIndex(action, table, line=line)
            return self._fulltext_change(table, line)
        if self.text == "STOPLIST":
            raise self.error(156, "Incorrect syntax near 'STOPLIST': lists of stop words are not known to this server.")
        self.expect("CATALOG")
        name = self.identifier()
        default, accents = False, None
        while action != "drop":
            if self.accept("AS"):
                self.expect("DEFAULT")
                default = True
            elif self.accept("WITH"):
                self.expect("ACCENT_SENSITIVITY", "=")
                accents = self.expect_one("ON", "OFF") == "ON"
            elif self.accept("ON"):
                self.expect("FILEGROUP")
                self.identifier()
            elif self.accept("IN"):
                self.expect("PATH")
                self.string()
            elif self.accept("AUTHORIZATION"):
                self.identifier()
            elif not self.accept_one("REBUILD", "REORGANIZE"):
                break
        return st.FullTextCatalog(action, name, default, accents, line=line)

    def _fulltext_index(self, table: Name, line: int) -> st.Statement:
        columns = self._fulltext_columns() if self.text == "(" else ()
        self.expect("KEY", "INDEX")
        key = self.identifier()
        catalog = ""
        if self.accept("ON"):
            catalog = self._fulltext_place() if self.accept("(") else self.identifier()
        return st.FullTextIndex("create", table, columns, key, catalog, "", self._fulltext_options(), line=line)

    def _fulltext_place(self) -> str:
        """(catalogue, FILEGROUP name) in any order; the parenthesis has been read."""
        catalog = ""
        while not self.accept(")"):
            if self.accept("FILEGROUP"):
                self.identifier()
            else:
                catalog = self.identifier()
            self.accept(",")
        return catalog

    def _fulltext_columns(self) -> tuple[st.FullTextColumn, ...]:
        self.expect("(")
        found = []
        while True:
            name, type_column, language = self.identifier(), "", ""
            if self.accept("TYPE"):
                self.expect("COLUMN")
                type_column = self.identifier()
            if self.accept("LANGUAGE"):
                language = str(self.advance().value)
            self.accept("STATISTICAL_SEMANTICS")
            found.append(st.FullTextColumn(name, type_column, language))
            if not self.accept(","):
                self.expect(")")
                return tuple(found)

    def _fulltext_options(self) -> tuple[tuple[str, str], ...]:
        """WITH [(] CHANGE_TRACKING [=] …, NO POPULATION, STOPLIST [=] …, SEARCH PROPERTY LIST [=] … [)]."""
        if not self.accept("WITH"):
            return ()
        closing = self.accept("(")
        found = []
        while True:
            if self.accept("NO"):
                self.expect("POPULATION")
                found.append(("NO POPULATION", ""))
            else:
                word = self.expect_one("CHANGE_TRACKING", "STOPLIST", "SEARCH")
                if word == "SEARCH":
                    self.expect("PROPERTY", "LIST")
                self.accept("=")
                found.append((word, str(self.advance().value).upper()))
            if not self.accept(","):
                break
        if closing:
            self.expect(")")
        return tuple(found)

    def _fulltext_change(self, table: Name, line: int) -> st.Statement:
        change = self.expect_one(*_CHANGES)
        columns: tuple[st.FullTextColumn, ...] = ()
        options: tuple[tuple[str, str], ...] = ()
        if change in ("ADD", "DROP"):
            columns = self._fulltext_columns()
            if self.accept("WITH"):
                self.expect("NO", "POPULATION")
        elif change == "SET":
            word = self.expect_one("CHANGE_TRACKING", "STOPLIST")
            self.accept("=")
            options = ((word, str(self.advance().value).upper()),)
        elif change in ("START", "STOP", "PAUSE", "RESUME"):
            self.accept_one("FULL", "INCREMENTAL", "UPDATE")
            self.expect("POPULATION")
        elif change == "ALTER":
            self.fail(self.peek(-1))
        return st.FullTextIndex("alter", table, columns, "", "", change, options, line=line)
