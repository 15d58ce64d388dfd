"""EXECUTE: procedures with their arguments, strings, EXECUTE AS."""

from __future__ import annotations

from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.alter_table import AlterTableParser


class ExecuteParser(AlterTableParser):
    """Adds EXECUTE."""

    __slots__ = ()

    def execute_statement(self) -> st.Statement:
        """EXEC[UTE] in all its forms."""
        line = self.line()
        self.expect_one("EXEC", "EXECUTE")
        if self.text == "AS":
            return self._execute_as(line)
        if self.text == "(":
            self.advance()
            text = self.expression()
            passed = self.accept(",")
            if passed:
                self.expressions()
            self.expect(")")
            kind = name = server = ""
            if self.accept("AS"):
                kind = self.expect_one("USER", "LOGIN").lower()
                self.expect("=")
                name = self.string()
            if self.accept("AT"):
                server = self.identifier()
            elif passed:
                self.fail()
            return st.ExecuteString(text, kind, name, server, line=line)
        result = ""
        if self.token.kind == "v" and self.peek().text == "=":
            result = self.variable()
            self.expect("=")
        procedure = self.variable() if self.token.kind == "v" else self.name()
        return self.procedure_call(procedure, result, line)

    def procedure_call(self, procedure: ast.Name | str, result: str, line: int) -> st.Statement:
        """Arguments of a call, after the procedure."""
        if self.accept(";"):
            if self.token.kind == "i":
                self.advance()
            else:
                self.back_to(self.mark() - 1)
        arguments = []
        if self._at_argument():
            arguments.append(self._argument())
            while self.accept(","):
                arguments.append(self._argument())
        if self.accept("WITH", "RECOMPILE"):
            self.accept(",")
        elif self.at("WITH", "RESULT"):
            raise self.unsupported("RESULT SETS")
        return st.Execute(procedure, tuple(arguments), result, line=line)

    def _at_argument(self) -> bool:
        if self.token.kind in ("s", "n", "i", "d", "f", "m", "b", "v", "q"):
            return True
        if self.text in ("-", "+", "DEFAULT", "NULL", "{"):
            return True
        return self.at_name() and self.peek().text != ":"

    def _argument(self) -> st.Argument:
        name = ""
        if self.token.kind == "v" and self.peek().text == "=":
            name = self.variable()
            self.expect("=")
        if self.accept("DEFAULT"):
            return st.Argument(name, None)
        token = self.token
        if token.kind == "w" and self.at_name():
            # A bare word is a string constant here.
            value: ast.Expression = ast.Literal(str(self.advance().value), "nstring")
        elif token.kind == "q":
            value = ast.Literal(str(self.advance().value), "nstring")
        else:
            value = self.constant()
        output = bool(self.accept_one("OUTPUT", "OUT"))
        return st.Argument(name, value, output)

    def constant(self) -> ast.Expression:
        """Constants and variables only: an argument is not an expression."""
        return self._prefix()

    def _execute_as(self, line: int) -> st.Statement:
        self.expect("AS")
        kind = self.expect_one("USER", "LOGIN", "CALLER", "SELF", "OWNER")
        name = self.expression() if self.accept("=") else None
        if self.accept("WITH"):
            self.expect("NO", "REVERT")
        return st.ExecuteAs(kind.lower(), name, line=line)
