"""Parsing of XQuery expressions and of the statements of modify()."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

from mssql_sandbox.engine.xml import syntax as x
from mssql_sandbox.engine.xml.path_parser import PathParser

_COMPARISONS = ("!=", "<=", ">=", "<<", ">>", "=", "<", ">")
_WORDS = ("eq", "ne", "lt", "le", "gt", "ge", "is")


class QueryParser(PathParser):
    """A whole query."""

    def query(self) -> x.Expr:
        """Prolog and body: an expression, or what modify() does."""
        while self.accept_word("declare"):
            self._declaration()
        found = self._change() if self.method == "modify" else self.expression()
        self.blank()
        if self.place < len(self.text):
            self.fail()
        return found

    def _declaration(self) -> None:
        if self.accept_word("default", "element", "namespace"):
            self.spaces[""] = self.string()
        elif self.accept_word("namespace"):
            prefix = self.name()[1]
            self.expect("=")
            self.spaces[prefix] = self.string()
        else:
            self.fail()
        self.expect(";")

    # ---- modify ------------------------------------------------------------------------------------------

    def _change(self) -> x.Expr:
        if self.accept_word("delete"):
            return x.Deletion(self.expression())
        if self.accept_word("replace", "value", "of"):
            target = self.expression()
            self.expect_word("with")
            return x.Replacement(target, self.expression())
        self.expect_word("insert")
        content = self.expression()
        place = "last"
        if self.accept_word("as"):
            place = "first" if self.accept_word("first") else "last"
            if place == "last":
                self.expect_word("last")
            self.expect_word("into")
        elif self.accept_word("after"):
            place = "after"
        elif self.accept_word("before"):
            place = "before"
        else:
            self.expect_word("into")
        return x.Insertion(content, place, self.expression())  # type: ignore[arg-type]

    # ---- expressions -------------------------------------------------------------------------------------

    def expression(self) -> x.Expr:
        """Parts with commas between them."""
        items = [self.single()]
        while self.accept(","):
            items.append(self.single())
        return items[0] if len(items) == 1 else x.Sequence(tuple(items))

    def single(self) -> x.Expr:
        """An expression without commas."""
        if (self.at_word("for") or self.at_word("let")) and self.followed_by("$"):
            return self._flwor()
        if (self.at_word("some") or self.at_word("every")) and self.followed_by("$"):
            every = self.accept_word("every") or not self.accept_word("some")
            clauses = self._bindings("for", "in")
            self.expect_word("satisfies")
            return x.Quantified(every, tuple(clauses), self.single())
        if self.at_word("if") and self.followed_by("("):
            self.expect_word("if")
            self.expect("(")
            test = self.expression()
            self.expect(")")
            self.expect_word("then")
            then = self.single()
            self.expect_word("else")
            return x.Conditional(test, then, self.single())
        return self._binary(0)

    def _flwor(self) -> x.Expr:
        clauses: list[x.Clause] = []
        while True:
            if self.at_word("for") and self.followed_by("$"):
                self.expect_word("for")
                clauses += self._bindings("for", "in")
            elif self.at_word("let") and self.followed_by("$"):
                self.expect_word("let")
                clauses += self._bindings("let", ":=")
            else:
                break
        where = self.single() if self.accept_word("where") else None
        order: list[tuple[x.Expr, bool]] = []
        if self.accept_word("stable", "order", "by") or self.accept_word("order", "by"):
            order.append(self._key())
            while self.accept(","):
                order.append(self._key())
        self.expect_word("return")
        return x.Flwor(tuple(clauses), where, tuple(order), self.single())

    def _key(self) -> tuple[x.Expr, bool]:
        key = self.single()
        if self.accept_word("descending"):
            return key, True
        self.accept_word("ascending")
        return key, False

    def _bindings(self, kind: str, sign: str) -> list[x.Clause]:
        found = []
        while True:
            self.expect("$")
            name = self.name()[1]
            if self.at_word("at"):
                self.unknown("at")
            self.expect(sign)
            found.append(x.Clause(kind, name, self.single()))  # type: ignore[arg-type]
            if not self.accept(","):
                return found

    def _binary(self, level: int) -> x.Expr:
        """or, and, comparison, additive, multiplicative; then what binds closer."""
        if level == len(_LEVELS):
            return self._cast()
        left = self._binary(level + 1)
        while operator := self._operator(level):
            left = x.Operation(operator, left, self._binary(level + 1))
            if level == _COMPARING:
                break
        return left

    def _operator(self, level: int) -> str:
        for word in _LEVELS[level][0]:
            if self.accept_word(word):
                return word
        return self.accept(*_LEVELS[level][1])

    def _cast(self) -> x.Expr:
        negative = False
        while sign := self.accept("-", "+"):
            negative ^= sign == "-"
        found = self._union()
        for words, test in ((("cast", "as"), False), (("instance", "of"), True)):
            if self.accept_word(*words):
                prefix, local = self.name()
                self.space(prefix)
                self.accept("?", "*", "+")
                found = x.Cast(found, local, test)
        return x.Operation("-", x.Constant(Decimal(0)), found) if negative else found

    def _union(self) -> x.Expr:
        parts = [self.path()]
        while self.at("|") or self.at_word("union"):
            if not self.accept_word("union"):
                self.expect("|")
            parts.append(self.path())
        return parts[0] if len(parts) == 1 else x.Union(tuple(parts))


_COMPARING = 2
_LEVELS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("or",), ()), (("and",), ()), (_WORDS, _COMPARISONS), ((), ("+", "-")), (("div", "idiv", "mod"), ("*",)),
)  # fmt: skip


@lru_cache(maxsize=512)
def parse_query(text: str, method: str) -> x.Expr:
    """The syntax tree of a query; what many rows ask is parsed once.

    Raises:
        SqlError: 2209, 2225, 2229, 2389, 2395, 9335, with the method that the query was written for.
    """
    return QueryParser(text, method).query()
