"""Full-text predicates: CONTAINS and FREETEXT, and the columns that they and their table functions name."""

from __future__ import annotations

from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql.calls import CallParser


class SearchParser(CallParser):
    """Adds full-text predicates."""

    __slots__ = ()

    def full_text(self) -> ast.Expression:
        """CONTAINS | FREETEXT (columns, search [, LANGUAGE l])."""
        line = self.line()
        kind = self.advance().text
        self.expect("(")
        if self.text == "PROPERTY":
            raise self.error(102, "Incorrect syntax near 'PROPERTY': document properties are not known to this server.")
        qualifier, columns = self.searched_columns()
        self.expect(",")
        search = self.expression()
        if self.accept(","):
            self.expect("LANGUAGE")
            self.expression()
        self.expect(")")
        return ast.FullText(kind, qualifier, columns, search, line)  # type: ignore[arg-type]

    def searched_columns(self) -> tuple[ast.Name, tuple[ast.Name, ...]]:
        """`*`, `table.*`, a column, or columns between parentheses: (what * belongs to, columns)."""
        if self.accept("("):
            columns = [self.name()] if not self.accept("*") else []
            while self.accept(","):
                columns.append(self.name())
            self.expect(")")
            return (), tuple(columns)
        if self.accept("*"):
            return (), ()
        parts = [self.identifier()]
        while self.accept("."):
            if self.accept("*"):
                return tuple(parts), ()
            parts.append(self.identifier())
        return (), (tuple(parts),)
