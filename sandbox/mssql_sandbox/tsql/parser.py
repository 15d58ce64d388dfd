"""Batches to statements: the statement table, BEGIN … END lists, and the cache of parsed texts."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from mssql_sandbox.errors import error
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.creation import CreationParser

LONG_TEXT = 16_384
"""Of batches with more characters only a few are cached."""
LONGEST_TEXT = 131_072
"""Batches with more characters carry data and are not cached."""


class Parser(CreationParser):
    """The whole language. Statements are recognised by their first word, so `;` is optional."""

    __slots__ = ()

    def batch(self) -> tuple[st.Statement, ...]:
        """All statements of the batch."""
        found = self.statement_list()
        if self.token.kind != "e":
            self.fail()
        return found

    def statement_list(self, *ends: str) -> tuple[st.Statement, ...]:
        """Statements up to one of these words or the end of the batch."""
        found: list[st.Statement] = []
        while True:
            while self.text == ";":
                self.advance()
            if self.token.kind == "e" or self.text in ends:
                return tuple(found)
            first = not found and not ends and self.mark() == 0
            found.append(self.statement(first=first))

    def statement(self, *, first: bool = False) -> st.Statement:
        """One statement; only the first of a batch may be a procedure call without EXEC."""
        reader = _READERS.get(self.text)
        if reader is not None and (self.text not in _SOFT or self._is_soft_statement()):
            return reader(self)
        if self.token.kind == "w" and self.peek().text == ":" and self.at_name():
            line = self.line()
            label = self.identifier()
            self.expect(":")
            return st.Label(label, line=line)
        if first and self.at_name():
            line = self.line()
            return self.procedure_call(self.name(), "", line)
        if self.text == "{":
            return self._odbc_call()
        self.fail()
        return None

    def _is_soft_statement(self) -> bool:
        """THROW, ENABLE, DISABLE are not reserved words: they open a statement only in their own form."""
        return self.text == "THROW" or self.peek().text == "TRIGGER"

    def _odbc_call(self) -> st.Statement:
        """`{call p(a, b)}` and `{? = call p}` as ODBC writes them."""
        line = self.line()
        self.expect("{")
        if self.accept("?"):
            self.expect("=")
        self.expect("CALL")
        name = self.name()
        arguments = tuple(st.Argument("", value) for value in self.call_arguments()) if self.text == "(" else ()
        self.expect("}")
        return st.Execute(name, arguments, line=line)

    # ---- statements whose first word decides little ------------------------------------------------------

    def select_statement(self) -> st.Statement:
        """A query."""
        line = self.line()
        return st.SelectStatement(self.query(), line=line)

    def with_statement(self) -> st.Statement:
        """WITH … before SELECT, INSERT, UPDATE, DELETE, MERGE."""
        line = self.line()
        return self._after_with(self.common_tables(), line)

    def _after_with(self, ctes: tuple[ast.CommonTable, ...], line: int) -> st.Statement:
        if self.text == "UPDATE":
            return self.update(ctes)
        if self.text == "DELETE":
            return self.delete(ctes)
        if self.text == "MERGE":
            return self.merge(ctes)
        if self.text == "INSERT":
            return self.insert(ctes)
        return st.SelectStatement(self.query_after_with(ctes), line=line)

    def update_statement(self) -> st.Statement:
        """UPDATE of rows or of statistics."""
        return self.update_statistics() if self.at("UPDATE", "STATISTICS") else self.update()

    def jump(self) -> st.Statement:
        """BREAK, CONTINUE."""
        line = self.line()
        return st.Jump("break" if self.advance().text == "BREAK" else "continue", line=line)

    def return_statement(self) -> st.Statement:
        """RETURN [value]."""
        line = self.line()
        self.expect("RETURN")
        token = self.token
        valued = token.kind in "idfmbsnv" or self.text in ("(", "-", "+", "~", "CASE", "NULL")
        named = self.at_name() or (token.kind == "w" and self.peek().text == "(" and self.text not in _READERS)
        if valued or (named and self.text not in ("THROW", "ENABLE", "DISABLE") and self.peek().text != ":"):
            return st.Return(self.expression(), line=line)
        return st.Return(line=line)

    def goto(self) -> st.Statement:
        """GOTO label."""
        line = self.line()
        self.expect("GOTO")
        return st.Goto(self.identifier(), line=line)

    def print_statement(self) -> st.Statement:
        """PRINT value."""
        line = self.line()
        self.expect("PRINT")
        return st.Print(self.expression(), line=line)

    def revert(self) -> st.Statement:
        """REVERT."""
        line = self.line()
        self.expect("REVERT")
        return st.ExecuteAs("revert", line=line)


_Reader = Callable[[Parser], st.Statement]
_READERS: dict[str, _Reader] = {
    "SELECT": Parser.select_statement,
    "(": Parser.select_statement,
    "WITH": Parser.with_statement,
    "INSERT": Parser.insert,
    "BULK": Parser.bulk_insert,
    "UPDATE": Parser.update_statement,
    "DELETE": Parser.delete,
    "MERGE": Parser.merge,
    "TRUNCATE": Parser.truncate,
    "EXEC": Parser.execute_statement,
    "EXECUTE": Parser.execute_statement,
    "DECLARE": Parser.declare,
    "SET": Parser.set_statement,
    "IF": Parser.if_statement,
    "WHILE": Parser.while_statement,
    "BEGIN": Parser.begin,
    "BREAK": Parser.jump,
    "CONTINUE": Parser.jump,
    "RETURN": Parser.return_statement,
    "GOTO": Parser.goto,
    "COMMIT": Parser.transaction,
    "ROLLBACK": Parser.transaction,
    "SAVE": Parser.transaction,
    "PRINT": Parser.print_statement,
    "THROW": Parser.throw,
    "RAISERROR": Parser.raiserror,
    "WAITFOR": Parser.waitfor,
    "OPEN": Parser.cursor_action,
    "CLOSE": Parser.cursor_action,
    "DEALLOCATE": Parser.cursor_action,
    "FETCH": Parser.fetch,
    "USE": Parser.use,
    "KILL": Parser.kill,
    "CREATE": Parser.create,
    "ALTER": Parser.alter,
    "DROP": Parser.drop_statement,
    "GRANT": Parser.permission,
    "DENY": Parser.permission,
    "REVOKE": Parser.permission,
    "REVERT": Parser.revert,
    "CHECKPOINT": Parser.maintenance,
    "DBCC": Parser.maintenance,
    "RECONFIGURE": Parser.maintenance,
    "ENABLE": Parser.trigger_switch,
    "DISABLE": Parser.trigger_switch,
}
_SOFT = frozenset({"THROW", "ENABLE", "DISABLE"})


def parse(text: str, *, quoted_identifier: bool = True) -> tuple[st.Statement, ...]:
    """Statements of a batch, cached by text; long texts mostly carry data, and few of them are repeated.

    Raises:
        SqlError: level 15, with the line, for anything that is not T-SQL known to this server; 191 for what is
            nested too deeply.
    """
    if len(text) <= LONG_TEXT:
        parse_text = _parsed
    else:
        parse_text = _parsed_long if len(text) <= LONGEST_TEXT else _parsed.__wrapped__
    try:
        return parse_text(text, quoted_identifier=quoted_identifier)
    except RecursionError:
        raise error(191) from None


@lru_cache(maxsize=2048)
def _parsed(text: str, *, quoted_identifier: bool) -> tuple[st.Statement, ...]:
    return Parser(text, quoted_identifier=quoted_identifier).batch()


_parsed_long = lru_cache(maxsize=16)(_parsed.__wrapped__)


def parse_rows(text: str) -> ast.Values:
    """The rows of `ast.LiteralRows`, cell by cell."""
    return Parser(f"VALUES {text}").values()


@lru_cache(maxsize=512)
def parse_expression(text: str) -> ast.Expression:
    """A single expression, such as the stored text of a default."""
    parser = Parser(text)
    found = parser.expression()
    if parser.token.kind != "e":
        parser.fail()
    return found


@lru_cache(maxsize=1024)
def parse_parameters(text: str) -> tuple[st.VariableDeclaration, ...]:
    """The parameter definitions of sp_executesql and sp_prepare: `@P0 int, @P1 nvarchar(4000) OUTPUT`."""
    parser = Parser(text)
    found = parser.parameters(ends=("",))
    if parser.token.kind != "e":
        parser.fail()
    return found
