"""Queries: SELECT, set operations, WITH, ORDER BY."""

from __future__ import annotations

from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql.query_tails import TailParser

_LATE_INTO = "SELECT INTO must be the first query in a SQL statement containing a UNION, INTERSECT or EXCEPT operator."
_ASSIGNMENTS = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="})


class QueryParser(TailParser):
    """Adds `query`."""

    __slots__ = ()

    def query(self) -> ast.Query:
        """A query expression with WITH, ORDER BY, FOR and OPTION."""
        return self.query_after_with(self.common_tables() if self.text == "WITH" else ())

    def query_after_with(self, ctes: tuple[ast.CommonTable, ...]) -> ast.Query:
        """The rest of a query whose WITH has been read."""
        body = self._set_operations()
        order = self.order_items() if self.text == "ORDER" else ()
        offset = fetch = None
        if order and self.accept("OFFSET"):
            offset = self.value()
            self.expect_one("ROWS", "ROW")
            if self.accept("FETCH"):
                self.expect_one("NEXT", "FIRST")
                fetch = self.value()
                self.expect_one("ROWS", "ROW")
                self.expect("ONLY")
        for_clause = self.for_clause()
        options = self.option_clause() if self.text == "OPTION" else ()
        if isinstance(body, ast.Nested) and not (ctes or order or for_clause or options):
            return body.query
        return ast.Query(body, ctes, order, offset, fetch, for_clause, options)

    def common_tables(self) -> tuple[ast.CommonTable, ...]:
        """WITH name [(columns)] AS (query), with more of them after commas."""
        self.expect("WITH")
        if self.text == "XMLNAMESPACES":
            raise self.unsupported("XMLNAMESPACES")
        found = []
        while True:
            name = self.identifier()
            columns = self.names() if self.text == "(" else ()
            self.expect("AS")
            found.append(ast.CommonTable(name, columns, self.parenthesised_query()))
            if not self.accept(","):
                return tuple(found)

    def _set_operations(self) -> ast.QueryBody:
        left = self._intersections()
        while self.text in ("UNION", "EXCEPT"):
            word = self.advance().text
            every = word == "UNION" and self.accept("ALL")
            right = self._intersections()
            left = self._combined("EXCEPT" if word == "EXCEPT" else "UNION ALL" if every else "UNION", left, right)
        return left

    def _intersections(self) -> ast.QueryBody:
        left = self._operand()
        while self.accept("INTERSECT"):
            left = self._combined("INTERSECT", left, self._operand())
        return left

    def _combined(self, operator: ast.SetOperator, left: ast.QueryBody, right: ast.QueryBody) -> ast.SetOperation:
        """A set operation; its operands have no ORDER BY of their own (156), and only the first may have INTO (196)."""
        if any(isinstance(operand, ast.Nested) and operand.query.order for operand in (left, right)):
            raise self.error(156, "Incorrect syntax near the keyword 'ORDER'.")
        if isinstance(right, ast.Select) and right.into:
            raise self.error(196, _LATE_INTO)
        return ast.SetOperation(operator, left, right)

    def _operand(self) -> ast.QueryBody:
        if self.text == "(":
            return ast.Nested(self.parenthesised_query())
        if self.text == "VALUES":
            return self.values()
        return self._select()

    def values(self) -> ast.Values:
        """VALUES (…), (…)."""
        self.expect("VALUES")
        if self.token.kind == "r":
            self.expand_rows()
        rows = []
        while True:
            self.expect("(")
            rows.append(self.expressions())
            self.expect(")")
            if not self.accept(","):
                return ast.Values(tuple(rows))

    def _select(self) -> ast.Select:
        self.expect("SELECT")
        distinct = self.accept("DISTINCT")
        if not distinct:
            self.accept("ALL")
        top = self.top() if self.text == "TOP" else None
        items = [self._item()]
        while self.accept(","):
            items.append(self._item())
        into = self.name() if self.accept("INTO") else ()
        source = self.table_sources() if self.accept("FROM") else None
        where = self.expression() if self.accept("WHERE") else None
        group_by: tuple[ast.Expression, ...] = ()
        sets: tuple[tuple[ast.Expression, ...], ...] | None = None
        if self.accept("GROUP", "BY"):
            if self.text == "ALL":
                raise self.error(156, "Incorrect syntax near the keyword 'ALL': GROUP BY ALL is not known here.")
            group_by, sets = self.group_by()
        having = self.expression() if self.accept("HAVING") else None
        windows = self._windows() if self.text == "WINDOW" and self.peek(2).text == "AS" else ()
        return ast.Select(tuple(items), distinct, top, into, source, where, group_by, having, sets, windows)

    def _windows(self) -> tuple[tuple[str, ast.Over], ...]:
        """The WINDOW clause: names and their windows."""
        self.expect("WINDOW")
        found = []
        while True:
            name = self.identifier()
            self.expect("AS")
            found.append((name, self.window_specification()))
            if not self.accept(","):
                return tuple(found)

    def top(self) -> ast.Top:
        """TOP count | (expression) [PERCENT] [WITH TIES]."""
        self.expect("TOP")
        if self.accept("("):
            count = self.expression()
            self.expect(")")
        else:
            token = self.token
            if token.kind not in ("i", "d", "f", "v"):
                self.fail()
            self.advance()
            count = ast.Variable(str(token.value)) if token.kind == "v" else ast.Literal(token.value, "int")
        percent = self.accept("PERCENT")
        ties = self.accept("WITH", "TIES")
        return ast.Top(count, percent, ties)

    def _item(self) -> ast.SelectItem:
        token, following = self.token, self.peek().text
        if token.kind == "v" and following in _ASSIGNMENTS and not str(token.value).startswith("@@"):
            self.advance()
            self.advance()
            return ast.SelectItem(self.expression(), "", str(token.value), following)
        if following == "=" and token.kind in ("q", "w", "s", "n") and (token.kind in ("s", "n") or self.at_name()):
            self.advance()
            self.advance()
            return ast.SelectItem(self.expression(), str(token.value))
        expression = self.expression()
        return ast.SelectItem(expression, self.column_alias())

    def column_alias(self) -> str:
        """[AS] alias; empty if there is none."""
        if self.accept("AS"):
            if self.token.kind in ("s", "n"):
                return str(self.advance().value)
            return self.identifier()
        if self.token.kind in ("s", "n"):
            return str(self.advance().value)
        return self.identifier() if self.at_name() and not self.starts_statement() else ""

    def starts_statement(self) -> bool:
        """Whether an unreserved word opens a statement here and so is no alias."""
        opens = self.text in ("THROW", "DISABLE", "ENABLE") and self.token.kind == "w" and self.peek().text != ","
        return opens or self.at_label()
