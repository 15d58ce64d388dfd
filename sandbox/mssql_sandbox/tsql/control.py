"""DECLARE, SET, control of flow, transactions, cursors, WAITFOR, RAISERROR and related statements."""

from __future__ import annotations

from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.modules import ModuleParser

_SET_OPERATORS = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=")
_CURSOR_OPTIONS = frozenset(
    [
        "LOCAL",
        "GLOBAL",
        "FORWARD_ONLY",
        "SCROLL",
        "STATIC",
        "KEYSET",
        "DYNAMIC",
        "FAST_FORWARD",
        "READ_ONLY",
        "SCROLL_LOCKS",
        "OPTIMISTIC",
        "TYPE_WARNING",
        "INSENSITIVE",
    ]
)
_DIRECTIONS = frozenset({"NEXT", "PRIOR", "FIRST", "LAST", "ABSOLUTE", "RELATIVE"})
_LEVELS = {
    ("READ", "UNCOMMITTED"): "read uncommitted",
    ("READ", "COMMITTED"): "read committed",
    ("REPEATABLE", "READ"): "repeatable read",
}


class ControlParser(ModuleParser):
    """Adds procedural statements."""

    __slots__ = ()

    def statement(self) -> st.Statement:
        """One statement (provided by `Parser`)."""
        raise NotImplementedError

    # ---- DECLARE, SET ---------------------------------------------------------------------------------

    def declare(self) -> st.Statement:
        """DECLARE variables | table variable | cursor."""
        line = self.line()
        self.expect("DECLARE")
        if self.token.kind != "v":
            name = self.identifier()
            return self._cursor(name, line)
        if self.peek().text == "TABLE" or (self.peek().text == "AS" and self.peek(2).text == "TABLE"):
            name = self.variable()
            self.accept("AS")
            self.expect("TABLE")
            return st.DeclareTable(name, self.table_definition(), line=line)
        found = [self._declaration()]
        while self.accept(","):
            found.append(self._declaration())
        return st.Declare(tuple(found), line=line)

    def _declaration(self) -> st.VariableDeclaration:
        name = self.variable()
        self.accept("AS")
        if self.accept("CURSOR"):
            return st.VariableDeclaration(name, ast.TypeName(("cursor",)), cursor=True)
        type_name = self.type_name()
        default = self.expression() if self.accept("=") else None
        return st.VariableDeclaration(name, type_name, default)

    def _cursor(self, name: str, line: int) -> st.Statement:
        options = []
        while self.text in _CURSOR_OPTIONS:
            options.append(self.advance().text)
        self.expect("CURSOR")
        while self.text in _CURSOR_OPTIONS:
            options.append(self.advance().text)
        self.expect("FOR")
        query = self.query()
        if self.accept("FOR"):
            if self.accept("READ"):
                self.expect("ONLY")
            else:
                self.expect("UPDATE")
                if self.accept("OF"):
                    self.identifier()
                    while self.accept(","):
                        self.identifier()
        return st.DeclareCursor(name, tuple(options), query, line=line)

    def set_statement(self) -> st.Statement:
        """SET variable | option | isolation level | identity_insert."""
        line = self.line()
        self.expect("SET")
        if self.token.kind == "v":
            return self._set_variable(line)
        if self.accept("TRANSACTION"):
            self.expect("ISOLATION", "LEVEL")
            return st.SetIsolation(self._level(), line=line)
        if self.accept("IDENTITY_INSERT"):
            table = self.name()
            return st.SetIdentityInsert(table, self.expect_one("ON", "OFF") == "ON", line=line)
        names = [f"STATISTICS {self.word()}"] if self.accept("STATISTICS") else [self.word()]
        while self.accept(","):
            names.append(self.word())
        return st.SetOption(tuple(names), self._option_value(), line=line)

    def _set_variable(self, line: int) -> st.Statement:
        name = self.variable()
        if self.accept("."):
            value = self.mutation(ast.Variable(name), self.word_as_written())
            return st.SetVariable(name, "=", value, line=line)
        operator = self.expect_one(*_SET_OPERATORS)
        if operator == "=" and self.text == "CURSOR":
            return self._cursor(name, line)
        return st.SetVariable(name, operator, self.expression(), line=line)

    def _level(self) -> str:
        if self.accept("SERIALIZABLE"):
            return "serializable"
        if self.accept("SNAPSHOT"):
            return "snapshot"
        for words, level in _LEVELS.items():
            if self.accept(*words):
                return level
        self.fail()
        return None

    def _option_value(self) -> str | ast.Expression:
        word = self.accept_one("ON", "OFF")
        if word:
            return word
        if self.token.kind == "w":
            return self.word()
        return self.expression()

    # ---- control of flow ------------------------------------------------------------------------------

    def if_statement(self) -> st.Statement:
        """IF condition statement [ELSE statement]."""
        line = self.line()
        self.expect("IF")
        condition = self.expression()
        then = self.nested_statement()
        mark = self.mark()
        while self.accept(";"):
            pass
        if self.accept("ELSE"):
            return st.If(condition, then, self.nested_statement(), line=line)
        self.back_to(mark)
        return st.If(condition, then, line=line)

    def nested_statement(self) -> st.Statement:
        """The one statement under IF, ELSE or WHILE."""
        while self.accept(";"):
            pass
        return self.statement()

    def while_statement(self) -> st.Statement:
        """WHILE condition statement."""
        line = self.line()
        self.expect("WHILE")
        condition = self.expression()
        return st.While(condition, self.nested_statement(), line=line)

    def begin(self) -> st.Statement:
        """BEGIN block | TRY | TRANSACTION."""
        line = self.line()
        self.expect("BEGIN")
        if self.text in ("TRAN", "TRANSACTION", "DISTRIBUTED"):
            self.accept("DISTRIBUTED")
            self.advance()
            name = self._transaction_name()
            if self.accept("WITH"):
                self.expect("MARK")
                if self.token.kind in ("s", "n"):
                    self.advance()
            return st.TransactionStatement("begin", name, line=line)
        if self.accept("TRY"):
            body = self.statement_list("END")
            self.expect("END", "TRY")
            self.accept(";")
            self.expect("BEGIN", "CATCH")
            handler = self.statement_list("END")
            self.expect("END", "CATCH")
            return st.TryCatch(body, handler, line=line)
        if self.accept("ATOMIC"):
            self.expect("WITH")
            self.skip_parentheses()
        body = self.statement_list("END")
        self.expect("END")
        if not body:
            self.fail(self.peek(-1))
        return st.Block(body, line=line)

    def _transaction_name(self) -> str | ast.Expression:
        if self.token.kind == "v":
            return ast.Variable(self.variable())
        named = self.at_name() and not self.at_label() and not self.starts_bare_call()
        return self.identifier() if named else ""

    def starts_bare_call(self) -> bool:
        """Whether an unreserved word opens a statement (refined by `Parser`)."""
        return self.text == "THROW" and self.token.kind == "w"

    def transaction(self) -> st.Statement:
        """COMMIT, ROLLBACK, SAVE."""
        line = self.line()
        action = self.advance().text
        said = bool(self.accept_one("TRAN", "TRANSACTION"))
        name: str | ast.Expression = ""
        if said:
            name = self._transaction_name()
        else:
            self.accept("WORK")
        if action == "COMMIT" and self.at("WITH", "("):
            self.advance()
            self.skip_parentheses()
        return st.TransactionStatement(action.lower(), name, line=line)  # type: ignore[arg-type]

    def throw(self) -> st.Statement:
        """THROW [number, message, state]."""
        line = self.line()
        self.expect("THROW")
        if self.token.kind not in ("i", "v", "d"):
            return st.Throw(line=line)
        arguments = self.expressions()
        if len(arguments) != 3:
            self.fail()
        return st.Throw(arguments, line=line)

    def raiserror(self) -> st.Statement:
        """RAISERROR (message, severity, state, …) [WITH …]."""
        line = self.line()
        self.expect("RAISERROR", "(")
        message = self.expression()
        self.expect(",")
        severity = self.expression()
        self.expect(",")
        state = self.expression()
        arguments = []
        while self.accept(","):
            arguments.append(self.expression())
        self.expect(")")
        options = []
        if self.accept("WITH"):
            options.append(self.expect_one("LOG", "NOWAIT", "SETERROR"))
            while self.accept(","):
                options.append(self.expect_one("LOG", "NOWAIT", "SETERROR"))
        return st.RaiseError(message, severity, state, tuple(arguments), tuple(options), line=line)

    def waitfor(self) -> st.Statement:
        """WAITFOR DELAY | TIME value."""
        line = self.line()
        self.expect("WAITFOR")
        kind = self.expect_one("DELAY", "TIME")
        return st.WaitFor("DELAY" if kind == "DELAY" else "TIME", self.value(), line=line)

    # ---- cursors --------------------------------------------------------------------------------------

    def cursor_name(self) -> str:
        """[GLOBAL] name | @variable."""
        if self.text == "GLOBAL" and self.peek().kind in ("w", "q", "v"):
            self.advance()
        return self.variable() if self.token.kind == "v" else self.identifier()

    def cursor_action(self) -> st.Statement:
        """OPEN, CLOSE, DEALLOCATE."""
        line = self.line()
        action = self.advance().text.lower()
        return st.CursorAction(action, self.cursor_name(), line=line)  # type: ignore[arg-type]

    def fetch(self) -> st.Statement:
        """FETCH [direction] [FROM] cursor [INTO variables]."""
        line = self.line()
        self.expect("FETCH")
        direction, count = "NEXT", None
        if self.text in _DIRECTIONS and self.peek().kind != "e":
            direction = self.advance().text
            if direction in ("ABSOLUTE", "RELATIVE"):
                count = self.value()
        self.accept("FROM")
        cursor = self.cursor_name()
        into = []
        if self.accept("INTO"):
            into.append(self.variable())
            while self.accept(","):
                into.append(self.variable())
        return st.Fetch(direction.lower(), count, cursor, tuple(into), line=line)
