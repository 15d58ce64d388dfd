"""GROUP BY with ROLLUP, CUBE and GROUPING SETS, expanded to the list of sets."""

from __future__ import annotations

from itertools import combinations, product

from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql.sources import SourceParser

Group = tuple[ast.Expression, ...]
_LARGEST_CUBE = 12


class GroupingParser(SourceParser):
    """Adds `group_by`."""

    __slots__ = ()

    def group_by(self) -> tuple[Group, tuple[Group, ...] | None]:
        """The rest of GROUP BY: all expressions, and the sets they are grouped by (None for the plain form)."""
        plain = True
        parts: list[list[Group]] = []
        while True:
            sets, simple = self._element()
            plain = plain and simple
            parts.append(sets)
            if not self.accept(","):
                break
        if self.text == "WITH" and self.peek().text in ("ROLLUP", "CUBE"):
            self.advance()
            parts = [self._expanded(self.advance().text, [sets[0] for sets in parts])]
            plain = False
        crossed = [tuple(expression for group in chosen for expression in group) for chosen in product(*parts)]
        if plain:
            return crossed[0], None
        return tuple(dict.fromkeys(expression for group in crossed for expression in group)), tuple(crossed)

    def _element(self) -> tuple[list[Group], bool]:
        """One element as its sets, and whether it consists of expressions only."""
        if self.text in ("ROLLUP", "CUBE") and self.peek().text == "(":
            word = self.advance().text
            self.expect("(")
            groups = self._groups()
            self.expect(")")
            return self._expanded(word, groups), False
        if self.accept("GROUPING", "SETS"):
            self.expect("(")
            sets = self._element()[0]
            while self.accept(","):
                sets += self._element()[0]
            self.expect(")")
            return sets, False
        if self.accept("(", ")"):
            return [()], False
        return [self._group()], True

    def _groups(self) -> list[Group]:
        found = [self._group()]
        while self.accept(","):
            found.append(self._group())
        return found

    def _group(self) -> Group:
        """One expression, or several in parentheses that count as one."""
        if self.text == "(":
            start = self.mark()
            self.advance()
            if not self.at_parenthesised_query() and self.text != "SELECT":
                found = self.expressions()
                if len(found) > 1 and self.accept(")"):
                    return found
            self.back_to(start)
        return (self.expression(),)

    def _expanded(self, word: str, groups: list[Group]) -> list[Group]:
        """ROLLUP: all prefixes of the list, longest first; CUBE: all its subsets."""
        if word == "ROLLUP":
            chosen = [groups[:count] for count in range(len(groups), -1, -1)]
        else:
            if len(groups) > _LARGEST_CUBE:
                raise self.error(10703, "Too many grouping sets. The maximum number is 4096.", self.peek(-1))
            counts = range(len(groups), -1, -1)
            chosen = [list(some) for count in counts for some in combinations(groups, count)]
        return [tuple(expression for group in some for expression in group) for some in chosen]
