"""CREATE and ALTER: finds the statement by the words that follow."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.documents import DocumentParser
from mssql_sandbox.tsql.policies import security_policy

_MODULES = {"VIEW": "view", "PROCEDURE": "procedure", "PROC": "procedure", "FUNCTION": "function", "TRIGGER": "trigger"}
_INDEX_WORDS = ("INDEX", "UNIQUE", "CLUSTERED", "NONCLUSTERED", "COLUMNSTORE")


class CreationParser(DocumentParser):
    """Adds CREATE and ALTER of all kinds."""

    __slots__ = ()

    def create(self) -> st.Statement:
        """CREATE."""
        start, line, first = self.token.start, self.line(), self.mark() == 0
        self.expect("CREATE")
        form: st.ModuleForm = "create"
        if self.accept("OR"):
            self.expect("ALTER")
            form = "create or alter"
        if self.text in _MODULES:
            kind = _MODULES[self.advance().text]
            self._require_first(kind, first=first)
            return self.create_module(form, kind, start, line)
        if form != "create":
            self.fail()
        if self.text in _INDEX_WORDS:
            return self.create_index(line)
        reader = _CREATORS.get(self.text)
        if reader is None:
            return self._principal_of("create", line)
        self.advance()
        return reader(self, line)

    def create_synonym(self, line: int) -> st.Statement:
        """SYNONYM name FOR name; CREATE SYNONYM has been read."""
        name = self.name()
        self.expect("FOR")
        return st.CreateSynonym(name, self.name(), line=line)

    def create_statistics(self, line: int) -> st.Statement:
        """STATISTICS name ON table (columns) options; CREATE STATISTICS has been read."""
        name = self.identifier()
        self.expect("ON")
        self.name()
        self.names()
        self.statistics_options()
        return st.Maintenance("create statistics", (name,), line=line)

    def _require_first(self, kind: str, *, first: bool) -> None:
        """Error 111: a module must be the first, and therefore the only, statement of its batch."""
        if not first:
            word = "CREATE/ALTER PROCEDURE" if kind == "procedure" else f"CREATE {kind.upper()}"
            raise self.error(111, f"'{word}' must be the first statement in a query batch.", self.peek(-1))

    def _principal_of(self, action: str, line: int) -> st.Statement:
        if self.accept("SERVER", "ROLE"):
            return self.principal(action, "server role", line)
        return self.principal(action, self.expect_one("LOGIN", "USER", "ROLE").lower(), line)

    def alter(self) -> st.Statement:
        """ALTER."""
        start, line, first = self.token.start, self.line(), self.mark() == 0
        self.expect("ALTER")
        if self.text in _MODULES:
            kind = _MODULES[self.advance().text]
            self._require_first(kind, first=first)
            return self.create_module("alter", kind, start, line)
        if self.accept("TABLE"):
            found = self.alter_table(line)
            return dataclasses.replace(found, start=start, end=self.peek(-1).end)
        reader = _ALTERERS.get(self.text)
        if reader is None:
            return self._principal_of("alter", line)
        self.advance()
        return reader(self, line)

    def drop_statement(self) -> st.Statement:
        """DROP."""
        line = self.line()
        if self.accept("DROP", "XML"):
            return self.xml_object("drop", line)
        if self.accept("DROP", "FULLTEXT"):
            return self.fulltext("drop", line)
        return self.drop()

    def refuse_change(self, _line: int) -> st.Statement:
        """ALTER AUTHORIZATION and ALTER PARTITION, which the sandbox does not support."""
        raise self.unsupported(f"ALTER {self.peek(-1).text}")


_Reader = Callable[[CreationParser, int], st.Statement]
_CREATORS: dict[str, _Reader] = {
    "TABLE": CreationParser.create_table,
    "DATABASE": CreationParser.create_database,
    "SCHEMA": CreationParser.create_schema,
    "PARTITION": CreationParser.create_partition,
    "TYPE": CreationParser.create_type,
    "SEQUENCE": lambda parser, line: parser.sequence(line, alter=False),
    "SYNONYM": CreationParser.create_synonym,
    "STATISTICS": CreationParser.create_statistics,
    "PRIMARY": CreationParser.primary_xml_index,
    "XML": lambda parser, line: parser.xml_object("create", line),
    "FULLTEXT": lambda parser, line: parser.fulltext("create", line),
    "SECURITY": lambda parser, line: security_policy(parser, line, alter=False),
}
_ALTERERS: dict[str, _Reader] = {
    "DATABASE": CreationParser.alter_database,
    "SCHEMA": CreationParser.alter_schema,
    "INDEX": CreationParser.alter_index,
    "SEQUENCE": lambda parser, line: parser.sequence(line, alter=True),
    "AUTHORIZATION": CreationParser.refuse_change,
    "PARTITION": CreationParser.refuse_change,
    "XML": lambda parser, line: parser.xml_object("alter", line),
    "SECURITY": lambda parser, line: security_policy(parser, line, alter=True),
}
