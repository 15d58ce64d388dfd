"""Expressions and conditions: one operator-precedence parser for both (they are distinguished later)."""

from __future__ import annotations

from decimal import Decimal

from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql.calls import CallParser
from mssql_sandbox.tsql.odbc_functions import odbc_function

_LITERALS: dict[str, ast.LiteralKind] = {
    "i": "int",
    "d": "decimal",
    "f": "float",
    "m": "money",
    "b": "binary",
    "s": "string",
    "n": "nstring",
}
# Binding powers in T-SQL's order: & | ^ bind like + and -.
_OR, _AND, _NOT, _COMPARE, _ADD, _MULTIPLY, _SIGN = range(1, 8)
_ADDITIVE = ("+", "-", "&", "|", "^", "||", "<<", ">>")
_ARITHMETIC = dict.fromkeys(_ADDITIVE, _ADD) | dict.fromkeys(("*", "/", "%"), _MULTIPLY)
_SHIFTS = {"<<": "LEFT_SHIFT", ">>": "RIGHT_SHIFT"}
_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
# Calls whose arguments are not a plain list.
_OWN_SYNTAX = frozenset({"CAST", "TRY_CAST", "COUNT", "TRIM", "IIF"})
_PREDICATES = frozenset({"IS", "LIKE", "IN", "BETWEEN", "NOT"})


class ExpressionParser(CallParser):
    """Adds `expression`."""

    __slots__ = ()

    def expression(self) -> ast.Expression:
        """Any expression or search condition."""
        return self._binary(_OR)

    def value(self) -> ast.Expression:
        """An expression that stops before comparisons and AND, such as the bounds of BETWEEN."""
        return self._binary(_ADD)

    def _binary(self, least: int) -> ast.Expression:
        left = self._prefix()
        while True:
            word = self.text
            if not word:
                return left
            if word in _ARITHMETIC:
                power = _ARITHMETIC[word]
                if power < least:
                    return left
                self.advance()
                right = self._binary(power + 1)
                shift = _SHIFTS.get(word)
                left = ast.Function((shift,), (left, right)) if shift else ast.Binary(word, left, right)
            elif word in _COMPARISONS:
                if least > _COMPARE:
                    return left
                self.advance()
                left = self._comparison(word, left)
            elif word in _PREDICATES:
                if least > _COMPARE or (word == "NOT" and self.peek().text not in _PREDICATES):
                    return left
                left = self._predicate(left)
            elif word in ("AND", "OR"):
                if least > (_AND if word == "AND" else _OR):
                    return left
                left = self._logical(word, left)
            else:
                return left

    def _logical(self, word: str, left: ast.Expression) -> ast.Expression:
        power = _AND if word == "AND" else _OR
        operands = [left]
        while self.accept(word):
            operands.append(self._binary(power + 1))
        return ast.Logical("AND" if word == "AND" else "OR", tuple(operands))

    def _comparison(self, operator: str, left: ast.Expression) -> ast.Expression:
        every = self.accept_one("ALL", "ANY", "SOME")
        if every:
            return ast.Quantified(operator, left, self.parenthesised_query(), every == "ALL")
        return ast.Comparison(operator, left, self._binary(_ADD))

    def _predicate(self, left: ast.Expression) -> ast.Expression:
        if self.accept("IS"):
            negated = self.accept("NOT")
            if self.accept("DISTINCT", "FROM"):
                return ast.IsDistinct(left, self._binary(_ADD), negated)
            self.expect("NULL")
            return ast.IsNull(left, negated)
        negated = self.accept("NOT")
        if self.accept("LIKE"):
            pattern = self._binary(_ADD)
            escape = None
            if self.at("{", "ESCAPE"):
                self.expect("{", "ESCAPE")
                escape = self.value()
                self.expect("}")
            elif self.accept("ESCAPE"):
                escape = self.value()
            return ast.Like(left, pattern, escape, negated)
        if self.accept("BETWEEN"):
            low = self._binary(_ADD)
            self.expect("AND")
            return ast.Between(left, low, self._binary(_ADD), negated)
        self.expect("IN")
        if self.at_parenthesised_query():
            return ast.In(left, (), self.parenthesised_query(), negated)
        self.expect("(")
        items = self.expressions()
        self.expect(")")
        return ast.In(left, items, None, negated)

    def _prefix(self) -> ast.Expression:
        if self.text == "NOT":
            self.advance()
            return ast.Not(self._binary(_NOT))
        if self.text in ("-", "+", "~"):
            operator = self.advance().text
            operand = self._binary(_SIGN)
            return self._signed(operator, operand)
        return self._postfix(self._primary())

    def _signed(self, operator: str, operand: ast.Expression) -> ast.Expression:
        if (
            operator == "-"
            and isinstance(operand, ast.Literal)
            and operand.kind in ("int", "decimal", "float", "money")
        ):
            value = operand.value
            if operand.kind == "decimal" and value == 2147483648:
                return ast.Literal(-2147483648, "int")
            if isinstance(value, Decimal):  # `-value` would round to the 28 digits of Python's default context.
                return ast.Literal(value.copy_negate() if value else value, operand.kind)
            return ast.Literal(-value, operand.kind)  # type: ignore[operator]
        if operator == "+":
            return operand
        return ast.Unary(operator, operand)

    def _postfix(self, left: ast.Expression) -> ast.Expression:
        while True:
            if self.text == "COLLATE":
                self.advance()
                left = ast.Collate(left, self.word_as_written())
            elif self.text == "AT" and self.at("AT", "TIME", "ZONE"):
                self.expect("AT", "TIME", "ZONE")
                left = ast.AtTimeZone(left, self._postfix(self._primary()))
            elif (
                self.text == "."
                and self.peek(2).text == "("
                and isinstance(left, (ast.Variable, ast.Cast, ast.ScalarSubquery, ast.MethodCall, ast.Function))
            ):
                self.advance()
                method = self.word_as_written()
                left = ast.MethodCall(left, method, self.call_arguments())
            else:
                return left

    def _primary(self) -> ast.Expression:
        token = self.token
        kind = token.kind
        if kind in _LITERALS:
            self.advance()
            return ast.Literal(token.value, _LITERALS[kind])
        if kind == "v":
            self.advance()
            name = str(token.value)
            return ast.GlobalVariable(name.upper()) if name.startswith("@@") else ast.Variable(name)
        if token.text == "(":
            return self._parenthesised()
        if kind in ("w", "q"):
            return self._word()
        if token.text == "{":
            return self._odbc_escape()
        if token.text == "*":
            self.advance()
            return ast.Star()
        self.fail()
        return None

    def _parenthesised(self) -> ast.Expression:
        if self.at_parenthesised_query():
            return ast.ScalarSubquery(self.parenthesised_query())
        self.expect("(")
        inner = self.expression()
        self.expect(")")
        return inner

    def _word(self) -> ast.Expression:
        word = self.text
        if word == "NULL":
            self.advance()
            return ast.Literal(None, "null")
        if word == "DEFAULT":
            self.advance()
            return ast.Literal(None, "default")
        if word == "CASE":
            return self._case()
        if word == "EXISTS":
            self.advance()
            return ast.Exists(self.parenthesised_query())
        if word in ("CONTAINS", "FREETEXT"):
            self.advance()
            self.skip_parentheses()
            return ast.FullText()
        return self.named_or_call()

    def _case(self) -> ast.Expression:
        self.expect("CASE")
        operand = None if self.text == "WHEN" else self.expression()
        whens = []
        while self.accept("WHEN"):
            condition = self.expression()
            self.expect("THEN")
            whens.append((condition, self.expression()))
        if not whens:
            self.fail()
        otherwise = self.expression() if self.accept("ELSE") else None
        self.expect("END")
        return ast.Case(operand, tuple(whens), otherwise)

    def _odbc_escape(self) -> ast.Expression:
        """`{fn f(x)}`, `{d '…'}`, `{t '…'}`, `{ts '…'}`, `{guid '…'}`."""
        self.expect("{")
        kind = self.word()
        if kind == "FN":
            found = self._odbc_function()
        else:
            types = {"D": ("datetime",), "T": ("datetime",), "TS": ("datetime",), "GUID": ("uniqueidentifier",)}
            if kind not in types:
                self.fail(self.peek(-1))
            literal = ast.Literal(self.string(), "string")
            found = ast.Cast("cast", literal, ast.TypeName(types[kind]))
        self.expect("}")
        return found

    def _odbc_function(self) -> ast.Expression:
        """`name(arguments)` under ODBC's names, including reserved words; else any expression."""
        if self.token.kind != "w" or self.peek().text != "(" or self.text in _OWN_SYNTAX:
            return self.expression()
        token = self.token
        name = self.word()
        self.expect("(")
        arguments = []
        while self.text != ")":
            arguments.append(self.expression())
            if not self.accept(","):
                break
        self.expect(")")
        return odbc_function(name, arguments) or self.fail(token)
