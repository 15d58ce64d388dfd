"""Expressions that begin with a word: column names, function calls, CAST and similar functions, OVER clauses."""

from __future__ import annotations

from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql.types import TypeParser
from mssql_sandbox.tsql.words import CALLABLE_RESERVED, NILADIC

_CONVERSIONS = frozenset({"CAST", "TRY_CAST", "CONVERT", "TRY_CONVERT", "PARSE", "TRY_PARSE"})
_XML_METHODS = frozenset({"value", "query", "exist", "nodes", "modify"})
_METHODS = _XML_METHODS | {"getancestor", "getdescendant", "getlevel", "isdescendantof", "tostring"}
"""After a qualified column these are its methods; functions of other databases rarely have such names."""
_NESTABLE = frozenset({"SELECT", "WITH", "VALUES"})


class CallParser(TypeParser):
    """Adds names and calls; the query and expression families provide the rest."""

    __slots__ = ()

    def expression(self) -> ast.Expression:
        """Any expression (provided by `ExpressionParser`)."""
        raise NotImplementedError

    def query(self) -> ast.Query:
        """A query expression (provided by `QueryParser`)."""
        raise NotImplementedError

    def expressions(self) -> tuple[ast.Expression, ...]:
        """One or more expressions with commas."""
        found = [self.expression()]
        while self.accept(","):
            found.append(self.expression())
        return tuple(found)

    def at_parenthesised_query(self) -> bool:
        """Whether `(` … SELECT is next, with any number of opening parentheses between."""
        if self.text != "(":
            return False
        ahead = 1
        while self.peek(ahead).text == "(":
            ahead += 1
        if self.peek(ahead).text not in _NESTABLE:
            return False
        return ahead == 1 or self._closes_as_query(ahead)

    def _closes_as_query(self, ahead: int) -> bool:
        """For `((SELECT …) + 1)` against `((SELECT …) UNION …)`: the token after the inner parenthesis decides."""
        depth, position = 1, ahead
        while depth and self.peek(position).kind != "e":
            depth += {"(": 1, ")": -1}.get(self.peek(position).text, 0)
            position += 1
        return self.peek(position).text in (")", "UNION", "EXCEPT", "INTERSECT", "ORDER")

    def parenthesised_query(self) -> ast.Query:
        """(query)."""
        self.expect("(")
        query = self.query()
        self.expect(")")
        return query

    def call_arguments(self) -> tuple[ast.Expression, ...]:
        """`(a, b)`, possibly empty."""
        self.expect("(")
        found = () if self.text == ")" else self.expressions()
        self.expect(")")
        return found

    def named_or_call(self) -> ast.Expression:
        """A column reference or a call."""
        token, following = self.token, self.peek().text
        line = self.line()
        if token.kind == "w":
            if token.text in _CONVERSIONS and following == "(":
                return self._conversion()
            if token.text in NILADIC and following != "(":
                self.advance()
                return ast.Function((str(token.value),), (), line=line)
            if token.text == "NEXT" and following == "VALUE":
                self.expect("NEXT", "VALUE", "FOR")
                name = self.name()
                return ast.NextValueFor(name, self._over() if self.accept("OVER") else None)
            if token.text in CALLABLE_RESERVED and following == "(":
                self.advance()
                return self._call((str(token.value),), line)
        parts = self._column_parts()
        if self.text == "(":
            return self._call(parts, line)
        if self.text == "::":
            self.advance()
            method = self.word_as_written()
            arguments = self.call_arguments() if self.text == "(" else ()
            return ast.MethodCall(parts, method, arguments)
        if parts[-1] == "*":
            return ast.Star(parts[:-1])
        return ast.ColumnRef(parts, line)

    def mutation(self, target: ast.Expression, method: str) -> ast.Expression:
        """`target.method(…)` of SET, after the method's name: only modify() changes its target."""
        if method.lower() != "modify":
            text = (
                f"Incorrect use of the XML data type method '{method}'. A mutator method is expected in this context."
            )
            raise self.error(8137, text)
        return ast.MethodCall(target, ".modify", self.call_arguments())

    def _column_parts(self) -> ast.Name:
        parts = [self.identifier()]
        while self.text == ".":
            self.advance()
            if self.text == "*":
                self.advance()
                return (*parts, "*")
            parts.append("" if self.text == "." else self.part())
        return tuple(parts)

    def _call(self, name: ast.Name, line: int) -> ast.Expression:
        self.expect("(")
        distinct = star = False
        arguments: tuple[ast.Expression, ...] = ()
        if self.text == "*" and self.peek().text == ")":
            self.advance()
            star = True
        elif len(name) == 1 and name[0].upper() in ("JSON_OBJECT", "JSON_ARRAY"):
            raise self.unsupported(name[0])
        elif name[-1].upper() == "TRIM":
            arguments = self._trim_arguments()
        elif self.text != ")":
            distinct = self.accept("DISTINCT")
            if not distinct and self.text == "ALL":
                self.advance()
            arguments = self.expressions()
        self.expect(")")
        within: tuple[ast.OrderItem, ...] = ()
        if self.accept("WITHIN"):
            self.expect("GROUP", "(")
            within = self.order_items()
            self.expect(")")
        ignore_nulls = self.accept("IGNORE", "NULLS")
        if not ignore_nulls:
            self.accept("RESPECT", "NULLS")
        if len(name) > 2 and name[-1].lower() in _METHODS:
            return ast.MethodCall(ast.ColumnRef(name[:-1], line), name[-1], arguments)
        over = self._over() if self.accept("OVER") else None
        return ast.Function(name, arguments, distinct, star, over, within, ignore_nulls, line)

    def _trim_arguments(self) -> tuple[ast.Expression, ...]:
        """`x`, `chars FROM x`, `LEADING chars FROM x`: passed on as (x, chars, side)."""
        side = self.accept_one("LEADING", "TRAILING", "BOTH")
        first = self.expression()
        if self.accept("FROM"):
            text = self.expression()
            return (text, first, ast.Literal(side or "BOTH", "string"))
        return (first,)

    def _conversion(self) -> ast.Expression:
        word = self.advance().text
        try_ = word.startswith("TRY_")
        form = word.removeprefix("TRY_")
        if word == "TRY_PARSE":
            raise self.unsupported(word)
        self.expect("(")
        if form == "CONVERT":
            type_name = self.type_name()
            self.expect(",")
            operand = self.expression()
            style = self.expression() if self.accept(",") else None
            self.expect(")")
            return ast.Cast("convert", operand, type_name, style, try_)
        operand = self.expression()
        self.expect("AS")
        type_name = self.type_name()
        if form == "PARSE" and self.accept("USING"):
            raise self.unsupported("USING")
        self.expect(")")
        return ast.Cast("cast", operand, type_name, None, try_)

    def order_items(self) -> tuple[ast.OrderItem, ...]:
        """ORDER BY and its list."""
        self.expect("ORDER", "BY")
        found = []
        while True:
            expression = self.expression()
            descending = self.accept_one("ASC", "DESC") == "DESC"
            found.append(ast.OrderItem(expression, descending))
            if not self.accept(","):
                return tuple(found)

    def _over(self) -> ast.Over:
        if self.text != "(":
            return ast.Over((), (), None, self.identifier())
        return self.window_specification()

    def window_specification(self) -> ast.Over:
        """([window] [PARTITION BY …] [ORDER BY …] [frame])."""
        self.expect("(")
        window = ""
        if self.at_name() and self.text not in ("PARTITION", "ROWS", "RANGE"):
            window = self.identifier()
        partition: tuple[ast.Expression, ...] = ()
        if self.accept("PARTITION"):
            self.expect("BY")
            partition = self.expressions()
        order = self.order_items() if self.text == "ORDER" else ()
        frame = self._frame() if self.text in ("ROWS", "RANGE") else None
        self.expect(")")
        return ast.Over(partition, order, frame, window)

    def _frame(self) -> ast.Frame:
        unit = self.advance().text
        if self.accept("BETWEEN"):
            start = self._bound()
            self.expect("AND")
            end = self._bound()
        else:
            start, end = self._bound(), ("current", None)
        return ast.Frame("ROWS" if unit == "ROWS" else "RANGE", start, end)

    def _bound(self) -> tuple[str, ast.Expression | None]:
        if self.accept("CURRENT"):
            self.expect("ROW")
            return ("current", None)
        if self.accept("UNBOUNDED"):
            return (f"unbounded {self.expect_one('PRECEDING', 'FOLLOWING').lower()}", None)
        count = self.expression()
        return (self.expect_one("PRECEDING", "FOLLOWING").lower(), count)
