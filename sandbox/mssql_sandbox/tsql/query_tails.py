"""What stands behind a query: the FOR and OPTION clauses."""

from __future__ import annotations

from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql.grouping import GroupingParser

_MODES = {"XML": ("PATH", "RAW", "AUTO"), "JSON": ("PATH", "AUTO")}
_OPTIONS = {
    "XML": ("ROOT", "TYPE", "ELEMENTS", "ELEMENTS XSINIL", "ELEMENTS ABSENT", "BINARY BASE64"),
    "JSON": ("ROOT", "INCLUDE_NULL_VALUES", "WITHOUT_ARRAY_WRAPPER"),
}


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
"""First words of query hints; all but MAXRECURSION are about plans, of which there are none here."""


class TailParser(GroupingParser):
    """Adds `for_clause` and `option_clause`."""

    __slots__ = ()

    def for_clause(self) -> ast.ForClause | None:
        """FOR XML | JSON | BROWSE with its options; None when another FOR stands here (that of a cursor)."""
        if self.text != "FOR" or self.peek().text not in ("XML", "JSON", "BROWSE"):
            return None
        self.expect("FOR")
        kind = self.expect_one("XML", "JSON", "BROWSE")
        if kind == "BROWSE":
            return ast.ForClause("BROWSE")
        if self.text == "EXPLICIT":
            raise self.error(102, "Incorrect syntax near 'EXPLICIT': this server knows PATH, RAW and AUTO.")
        mode = self.expect_one(*_MODES[kind])
        element = None
        if kind == "XML" and mode != "AUTO" and self.accept("("):
            element = self.string()
            self.expect(")")
        options: list[tuple[str, str]] = []
        while self.accept(","):
            options.append(self._for_option(kind))
        return ast.ForClause(kind, mode, element, tuple(options), self.xml_spaces)  # type: ignore[arg-type]

    def _for_option(self, kind: str) -> tuple[str, str]:
        token = self.token
        word = self.word().upper()
        if self.text in ("XSINIL", "ABSENT", "BASE64"):
            word += f" {self.advance().text}"
        if word not in _OPTIONS[kind]:
            if word in ("XMLSCHEMA", "XMLDATA"):
                raise self.error(102, f"Incorrect syntax near '{word}': schemas of results are not known here.", token)
            self.fail(token)
        text = ""
        if word == "ROOT":
            text = "root"
            if self.accept("("):
                text = self.string()
                self.expect(")")
        return word, text

    def option_clause(self) -> tuple[tuple[str, int | None], ...]:
        """OPTION (hint [number], …): checked for form, kept as words."""
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
