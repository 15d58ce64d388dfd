"""Principals, permissions, DROP, and administrative statements."""

from __future__ import annotations

from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.databases import DatabaseParser

_DROPPABLE = {
    "TABLE": "table",
    "VIEW": "view",
    "PROCEDURE": "procedure",
    "PROC": "procedure",
    "FUNCTION": "function",
    "TRIGGER": "trigger",
    "SCHEMA": "schema",
    "DATABASE": "database",
    "TYPE": "type",
    "SEQUENCE": "sequence",
    "SYNONYM": "synonym",
    "LOGIN": "login",
    "USER": "user",
    "ROLE": "role",
}

_PERMISSION_ACTIONS: dict[str, st.PermissionAction] = {"GRANT": "grant", "DENY": "deny", "REVOKE": "revoke"}


class AdministrationParser(DatabaseParser):
    """Adds administrative statements."""

    __slots__ = ()

    def use(self) -> st.Statement:
        """USE database."""
        line = self.line()
        self.expect("USE")
        return st.Use(self.identifier(), line=line)

    def kill(self) -> st.Statement:
        """KILL session."""
        line = self.line()
        self.expect("KILL")
        return st.Kill(self.value(), line=line)

    def drop(self) -> st.Statement:
        """DROP kind [IF EXISTS] names."""
        line = self.line()
        self.expect("DROP")
        if self.accept("INDEX"):
            return self.drop_index(line)
        if self.accept("STATISTICS"):
            names = [self.name()]
            while self.accept(","):
                names.append(self.name())
            return st.Maintenance("drop statistics", tuple(".".join(name) for name in names), line=line)
        if self.accept("PARTITION"):
            return st.Drop(f"partition {self.expect_one('FUNCTION', 'SCHEME').lower()}", (self.name(),), line=line)
        if self.accept("SECURITY", "POLICY"):
            if_exists = self.accept("IF", "EXISTS")
            return st.Drop("security policy", (self.name(),), if_exists, line=line)
        kind = "role" if self.accept("SERVER", "ROLE") else _DROPPABLE[self.expect_one(*_DROPPABLE)]
        if_exists = self.accept("IF", "EXISTS")
        names = [self.name()]
        while self.accept(","):
            names.append(self.name())
        if kind == "trigger" and self.accept("ON"):
            self.advance()
        return st.Drop(kind, tuple(names), if_exists, line=line)

    def principal(self, action: str, kind: str, line: int) -> st.Statement:
        """LOGIN, USER, ROLE …; the words before the name have been read."""
        name = self.identifier()
        options: list[tuple[str, str]] = []
        if kind in ("role", "server role"):
            if self.accept("AUTHORIZATION"):
                options.append(("AUTHORIZATION", self.identifier()))
            elif self.accept("WITH"):
                self.expect("NAME", "=")
                options.append(("NAME", self.identifier()))
            elif self.text in ("ADD", "DROP"):
                word = self.advance().text
                self.expect("MEMBER")
                options.append((f"{word} MEMBER", self.identifier()))
            return st.Principal(action, kind, name, tuple(options), line=line)  # type: ignore[arg-type]
        while True:
            if self.accept("FOR") or self.accept("FROM"):
                word = self.expect_one("LOGIN", "WINDOWS", "CERTIFICATE", "EXTERNAL")
                if word == "EXTERNAL":
                    self.expect("PROVIDER")
                options.append((word, self.identifier() if word in ("LOGIN", "CERTIFICATE") else ""))
            elif self.accept("WITHOUT"):
                self.expect("LOGIN")
                options.append(("WITHOUT LOGIN", ""))
            elif self.accept("ENABLE") or self.accept("DISABLE"):
                options.append((self.peek(-1).text, ""))
            elif self.accept("WITH") or self.accept(","):
                options.append(self._principal_option())
                while self.text in ("MUST_CHANGE", "HASHED", "UNLOCK"):
                    options.append((self.advance().text, ""))
                if self.text == "OLD_PASSWORD":
                    options.append(self._principal_option())
            else:
                return st.Principal(action, kind, name, tuple(options), line=line)  # type: ignore[arg-type]

    def _principal_option(self) -> tuple[str, str]:
        option = self.word()
        self.expect("=")
        token = self.advance()
        if token.kind not in ("s", "n", "w", "q", "b"):
            self.fail(token)
        return option, token.value.hex() if isinstance(token.value, bytes) else str(token.value)

    def permission(self) -> st.Statement:
        """GRANT, DENY, REVOKE."""
        line = self.line()
        action: st.PermissionAction = _PERMISSION_ACTIONS[self.advance().text]
        if action == "revoke":
            self.accept("GRANT", "OPTION", "FOR")
        columns: list[str] = []
        permissions = [self._permission_words(columns)]
        while self.accept(","):
            permissions.append(self._permission_words(columns))
        securable_class, securable = "", ()
        if self.accept("ON"):
            if self.peek().text == "::" or self.peek(2).text == "::":
                words = [self.word()]
                while not self.accept("::"):
                    words.append(self.word())
                securable_class = " ".join(words)
            securable = self.name()
            if self.text == "(":
                columns.extend(self.names())
        self.expect_one("TO", "FROM")
        principals = [self.word_as_written()]
        while self.accept(","):
            principals.append(self.word_as_written())
        if self.accept("WITH"):
            self.expect("GRANT", "OPTION")
        self.accept("CASCADE")
        if self.accept("AS"):
            self.identifier()
        return st.Permission(
            action,
            tuple(permissions),
            securable_class,
            securable,
            tuple(principals),
            tuple(columns),
            line=line,
        )

    def _permission_words(self, columns: list[str]) -> str:
        """The words of one permission; columns in parentheses after it are added to `columns`."""
        words = []
        while self.token.kind == "w" and self.text not in ("ON", "TO", "FROM"):
            words.append(self.advance().text)
        if not words:
            self.fail()
        if self.text == "(":
            columns.extend(self.names())
        return " ".join(words)

    def maintenance(self) -> st.Statement:
        """CHECKPOINT, DBCC, UPDATE STATISTICS, RECONFIGURE: the words and what follows in parentheses."""
        line = self.line()
        kind = self.advance().text.lower()
        words: list[str] = []
        if kind == "dbcc":
            words.append(self.word())
            if self.text == "(":
                words.append(self.skip_parentheses())
            if self.accept("WITH"):
                words.append(self.word())
                while self.accept(","):
                    words.append(self.word())
        elif kind == "reconfigure" and self.accept("WITH"):
            words.append(self.word())
        elif kind == "checkpoint" and self.token.kind == "i":
            self.advance()
        return st.Maintenance(kind, tuple(words), line=line)

    def update_statistics(self) -> st.Statement:
        """UPDATE STATISTICS table [(names)] [WITH …]."""
        line = self.line()
        self.expect("UPDATE", "STATISTICS")
        words = [".".join(self.name())]
        if self.text == "(":
            self.skip_parentheses()
        elif self.at_name():
            words.append(self.identifier())
        self.statistics_options()
        return st.Maintenance("update statistics", tuple(words), line=line)

    def statistics_options(self) -> None:
        """[WHERE filter] [WITH FULLSCAN | SAMPLE n …]: only the form is checked, because there are no statistics."""
        if self.accept("WHERE"):
            self.expression()
        if not self.accept("WITH"):
            return
        while True:
            word = self.expect_one("FULLSCAN", "SAMPLE", "RESAMPLE", "NORECOMPUTE", "ALL", "COLUMNS", "INDEX",
                                   "INCREMENTAL", "MAXDOP", "PERSIST_SAMPLE_PERCENT", "AUTO_DROP", "ROWCOUNT",
                                   "PAGECOUNT")  # fmt: skip
            if word == "SAMPLE":
                self.integer()
                self.expect_one("PERCENT", "ROWS")
            elif self.accept("="):
                self.advance()
            if not self.accept(","):
                return

    def trigger_switch(self) -> st.Statement:
        """ENABLE | DISABLE TRIGGER names ON table | DATABASE."""
        line = self.line()
        action = self.expect_one("ENABLE", "DISABLE").lower()
        self.expect("TRIGGER")
        names: list[str] = []
        if not self.accept("ALL"):
            names.append(self.name()[-1])
            while self.accept(","):
                names.append(self.name()[-1])
        self.expect("ON")
        table: ast.Name = ("",) if self.accept("DATABASE") else self.name()
        return st.AlterTableSet(table, f"{action} trigger", tuple(names), line=line)
