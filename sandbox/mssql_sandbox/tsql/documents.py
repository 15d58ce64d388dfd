"""XML SCHEMA COLLECTION, XML INDEX, FULLTEXT CATALOG and FULLTEXT INDEX."""

from __future__ import annotations

from typing import Literal as OneOf

from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.administration import AdministrationParser
from mssql_sandbox.tsql.ast import Name

_Action = OneOf["create", "alter", "drop"]


class DocumentParser(AdministrationParser):
    """Adds XML and full-text definitions."""

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

    def fulltext(self, action: OneOf["create", "drop"], line: int) -> st.Statement:
        """CATALOG or INDEX; the action and FULLTEXT have been read."""
        if self.accept("INDEX"):
            self.expect("ON")
            table = self.name()
            return (
                self._fulltext_index(table, line) if action == "create" else st.FullTextIndex(action, table, line=line)
            )
        if self.text == "STOPLIST":
            raise self.unsupported("STOPLIST")
        self.expect("CATALOG")
        name = self.identifier()
        default = action == "create" and self.accept("AS")
        if default:
            self.expect("DEFAULT")
        return st.FullTextCatalog(action, name, default, line=line)

    def _fulltext_index(self, table: Name, line: int) -> st.Statement:
        columns = []
        self.expect("(")
        while True:
            name, type_column, language = self.identifier(), "", ""
            if self.accept("TYPE"):
                self.expect("COLUMN")
                type_column = self.identifier()
            if self.accept("LANGUAGE"):
                language = str(self.advance().value)
            columns.append(st.FullTextColumn(name, type_column, language))
            if not self.accept(","):
                break
        self.expect(")")
        self.expect("KEY", "INDEX")
        key = self.identifier()
        catalog = self.identifier() if self.accept("ON") else ""
        return st.FullTextIndex("create", table, tuple(columns), key, catalog, line=line)
