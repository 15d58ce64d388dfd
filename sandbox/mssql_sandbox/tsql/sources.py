"""The FROM clause: tables, functions, derived tables, joins, APPLY, hints."""

from __future__ import annotations

from typing import Any

from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql.expressions import ExpressionParser
from mssql_sandbox.tsql.words import TABLE_HINTS

_JOIN_HINTS = ("LOOP", "HASH", "MERGE", "REMOTE")


class SourceParser(ExpressionParser):
    """Adds `table_sources`."""

    __slots__ = ()

    def values(self) -> ast.Values:
        """VALUES (provided by `QueryParser`)."""
        raise NotImplementedError

    def change(self) -> Any:
        """A statement that changes rows (provided by `ChangeParser`)."""
        raise NotImplementedError

    def table_sources(self) -> ast.TableSource:
        """The rest of FROM: sources with commas are cross joins."""
        left = self._joined()
        while self.accept(","):
            left = ast.Join("CROSS", left, self._joined())
        return left

    def _joined(self) -> ast.TableSource:
        left = self._source()
        while True:
            if self.accept("CROSS", "JOIN"):
                left = ast.Join("CROSS", left, self._source())
            elif self.accept("CROSS", "APPLY"):
                left = ast.Join("CROSS APPLY", left, self._source())
            elif self.accept("OUTER", "APPLY"):
                left = ast.Join("OUTER APPLY", left, self._source())
            elif self.text in ("JOIN", "INNER", "LEFT", "RIGHT", "FULL"):
                left = self._join(left)
            elif self.text == "PIVOT":
                left = self._pivot(left)
            elif self.text == "UNPIVOT":
                raise self.unsupported("UNPIVOT")
            else:
                return left

    def _pivot(self, source: ast.TableSource) -> ast.TableSource:
        """PIVOT (aggregate FOR column IN ([a], [b])) alias."""
        self.expect("PIVOT", "(")
        token = self.token
        aggregate = self.named_or_call()
        if not isinstance(aggregate, ast.Function):
            self.fail(token)
        self.expect("FOR")
        column = self.name()
        self.expect("IN")
        values = self.names()
        self.expect(")")
        return ast.Pivot(source, aggregate, column, values, self._required_alias())

    def _required_alias(self) -> str:
        return self._alias_only() or self.fail()

    def _join(self, left: ast.TableSource) -> ast.TableSource:
        word = self.accept_one("INNER", "LEFT", "RIGHT", "FULL") or "INNER"
        if word != "INNER":
            self.accept("OUTER")
        self.accept_one(*_JOIN_HINTS)
        self.expect("JOIN")
        right = self._joined_right()
        self.expect("ON")
        condition = self.expression()
        kind = {"LEFT": "LEFT", "RIGHT": "RIGHT", "FULL": "FULL"}.get(word, "INNER")
        return ast.Join(kind, left, right, condition)  # type: ignore[arg-type]

    def _joined_right(self) -> ast.TableSource:
        """The right side; `a JOIN b JOIN c ON … ON …` nests to the right."""
        right = self._source()
        while self.text in ("JOIN", "INNER", "LEFT", "RIGHT", "FULL"):
            right = self._join(right)
        return right

    def _source(self) -> ast.TableSource:
        if self.token.kind == "v":
            return self._variable_source()
        if self.text == "(":
            return self._parenthesised_source()
        if self.text == "OPENROWSET":
            raise self.unsupported("OPENROWSET")
        if self.text in ("CONTAINSTABLE", "FREETEXTTABLE"):
            return self._full_text_table()
        line = self.line()
        self.accept("::")
        if self.token.kind == "w" and self.text == "OPENJSON":
            name: ast.Name = (str(self.advance().value),)
        else:
            name = self.name()
        if self.text == "(" and not self._old_style_hints():
            arguments = self.call_arguments()
            schema = self._json_schema() if name[-1].upper() == "OPENJSON" and self.accept("WITH") else ()
            alias, columns = self.table_alias()
            return ast.FunctionTable(name, arguments, alias, columns, schema, line)
        system_time = self._system_time() if self.at("FOR", "SYSTEM_TIME") else None
        alias = self._alias_only()
        if self.text == "TABLESAMPLE":
            raise self.unsupported("TABLESAMPLE")
        hints = self.table_hints()
        if not alias and hints:
            alias = self._alias_only()
        return ast.NamedTable(name, alias, hints, system_time, line)

    def _full_text_table(self) -> ast.TableSource:
        """CONTAINSTABLE | FREETEXTTABLE (…) [AS] alias."""
        self.advance()
        self.skip_parentheses()
        return ast.FullTextTable(self._required_alias())

    def _variable_source(self) -> ast.TableSource:
        name = self.variable()
        if self.text == "." and self.peek(2).text == "(":
            line = self.line()
            self.advance()
            method = self.identifier()
            arguments = self.call_arguments()
            alias, columns = self.table_alias()
            return ast.FunctionTable((name, method), arguments, alias, columns, (), line)
        alias = self._alias_only()
        self.table_hints()
        return ast.VariableTable(name, alias)

    def _parenthesised_source(self) -> ast.TableSource:
        if self.peek().text in ("INSERT", "UPDATE", "DELETE", "MERGE"):
            raise self.unsupported(f"FROM ({self.peek().text}")
        if self.at_parenthesised_query():
            query = self.parenthesised_query()
            alias, columns = self.table_alias()
            if not alias:
                self.fail()
            return ast.DerivedTable(query, alias, columns)
        self.expect("(")
        inner = self.table_sources()
        self.expect(")")
        return inner

    def _alias_only(self) -> str:
        if self.accept("AS"):
            return self.identifier()
        if self.at_label() or (self.text == "WINDOW" and self.peek(2).text == "AS"):
            return ""
        if self.at_name() and not (self.token.kind == "w" and self.text in ("THROW", "DISABLE", "ENABLE")):
            return self.identifier()
        return ""

    def table_alias(self) -> tuple[str, tuple[str, ...]]:
        """[AS] alias [(columns)]."""
        alias = self._alias_only()
        return alias, self.names() if alias and self.text == "(" else ()

    def _old_style_hints(self) -> bool:
        """`FROM t (NOLOCK)`."""
        return self.peek().text in TABLE_HINTS and self.peek(2).text in (")", ",")

    def table_hints(self) -> tuple[str, ...]:
        """WITH (hints), or the old form without WITH; in upper case."""
        if self.at("WITH", "("):
            self.advance()
        elif not (self.text == "(" and self._old_style_hints()):
            return ()
        self.expect("(")
        found = []
        while not self.accept(")"):
            hint = self.word()
            if hint not in TABLE_HINTS:
                raise self.error(321, f'"{hint}" is not a recognized table hints option.')
            found.append(hint)
            if hint in ("INDEX", "FORCESEEK"):
                found += self._hinted_indexes()
            elif self.text == "(":
                self.skip_parentheses()
            self.accept(",")
        return tuple(found)

    def _hinted_indexes(self) -> list[str]:
        """INDEX (a, 1), INDEX = a, FORCESEEK (a (columns)): the indexes as hints `INDEX=a`."""
        names = ([self._hinted_index()] if self.text != "(" else []) if self.accept("=") else []
        if self.accept("("):
            names.append(self._hinted_index())
            while self.accept(","):
                names.append(self._hinted_index())
            self.expect(")")
        return [f"INDEX={name}" for name in names]

    def _hinted_index(self) -> str:
        name = str(self.integer()) if self.token.kind == "i" else self.identifier()
        if self.text == "(":
            self.skip_parentheses()
        return name

    def _system_time(self) -> tuple[str, tuple[ast.Expression, ...]]:
        self.expect("FOR", "SYSTEM_TIME")
        if self.accept("ALL"):
            return ("ALL", ())
        if self.accept("AS"):
            self.expect("OF")
            return ("AS OF", (self.value(),))
        kind = self.expect_one("FROM", "BETWEEN", "CONTAINED")
        if kind == "CONTAINED":
            self.expect("IN", "(")
            bounds = self.expressions()
            self.expect(")")
            return ("CONTAINED IN", bounds)
        low = self.value()
        self.expect("TO" if kind == "FROM" else "AND")
        return (kind, (low, self.value()))

    def _json_schema(self) -> tuple[tuple[str, ast.TypeName, str], ...]:
        self.expect("(")
        found = []
        while True:
            name = self.identifier()
            type_name = self.type_name()
            path = self.string() if self.token.kind in ("s", "n") else f"$.{name}"
            if self.accept("AS"):
                self.expect("JSON")
                path = f"json:{path}"
            found.append((name, type_name, path))
            if not self.accept(","):
                break
        self.expect(")")
        return tuple(found)
