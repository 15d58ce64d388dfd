"""The clauses after a query: FOR and OPTION."""

from __future__ import annotations

from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql.grouping import GroupingParser

_HINTS = frozenset(
    [
        "LOOP",
        "HASH",
        "MERGE",
        "CONCAT",
        "UNION",
        "ORDER",
        "FAST",
        "FORCE",
        "MAXDOP",
        "MAXRECURSION",
        "OPTIMIZE",
        "PARAMETERIZATION",
        "QUERYTRACEON",
        "RECOMPILE",
        "ROBUST",
        "KEEP",
        "KEEPFIXED",
        "EXPAND",
        "USE",
        "TABLE",
        "MAX_GRANT_PERCENT",
        "MIN_GRANT_PERCENT",
        "NO_PERFORMANCE_SPOOL",
        "DISABLE",
        "FOR",
        "IGNORE_NONCLUSTERED_COLUMNSTORE_INDEX",
    ]
)
"""First words of query hints; all but MAXRECURSION concern query plans and have no effect."""


class TailParser(GroupingParser):
    """Adds `for_clause` and `option_clause`."""

    __slots__ = ()

    def for_clause(self) -> ast.ForClause | None:
        """FOR JSON | BROWSE with its options; None for another FOR (that of a cursor)."""
        if self.text != "FOR" or self.peek().text not in ("XML", "JSON", "BROWSE"):
            return None
        self.expect("FOR")
        if self.text == "XML":
            raise self.unsupported("FOR XML")
        if self.expect_one("JSON", "BROWSE") == "BROWSE":
            return ast.ForClause("BROWSE")
        mode = self.expect_one("PATH", "AUTO")
        options: list[tuple[str, str]] = []
        while self.accept(","):
            word, text = self.expect_one("ROOT", "INCLUDE_NULL_VALUES", "WITHOUT_ARRAY_WRAPPER"), ""
            if word == "ROOT":
                text = "root"
                if self.accept("("):
                    text = self.string()
                    self.expect(")")
            options.append((word, text))
        return ast.ForClause("JSON", mode, tuple(options))  # type: ignore[arg-type]

    def option_clause(self) -> tuple[tuple[str, int | None], ...]:
        """OPTION (hint [number], …): the form is checked, the words are kept."""
        self.expect("OPTION", "(")
        if self.text not in _HINTS:
            self.fail()
        found: list[tuple[str, int | None]] = []
        words: list[str] = []
        number: int | None = None
        while self.text != ")":
            token = self.advance()
            if token.kind == "e":
                self.fail()
            if token.text == ",":
                found.append((" ".join(words), number))
                words, number = [], None
                if self.text not in _HINTS:
                    self.fail()
            elif token.kind == "i":
                number = int(str(token.value))
            elif token.text == "(":
                self.back_to(self.mark() - 1)
                words.append(f"({self.skip_parentheses()})")
            else:
                words.append(token.text or str(token.value))
        self.expect(")")
        found.append((" ".join(words), number))
        return tuple(found)
