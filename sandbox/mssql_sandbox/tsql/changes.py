"""INSERT, UPDATE, DELETE, MERGE, TRUNCATE and their OUTPUT clause."""

from __future__ import annotations

from dataclasses import replace

from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.bulk import BulkParser

_AFTER_VALUES = frozenset({",", "UNION", "EXCEPT", "INTERSECT", "ORDER", "FOR", "OPTION"})
_SET_OPERATORS = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=")


class ChangeParser(BulkParser):
    """Adds the statements that change rows."""

    __slots__ = ()

    def execute_statement(self) -> st.Statement:
        """EXECUTE (provided by `ModuleParser`)."""
        raise NotImplementedError

    def cursor_name(self) -> str:
        """A cursor (provided by `ControlParser`)."""
        raise NotImplementedError

    def target(self) -> ast.Name:
        """A table name or a table variable (a one-part name with its @)."""
        if self.token.kind == "v":
            return (self.variable(),)
        return self.name()

    def insert(self, ctes: tuple[ast.CommonTable, ...] = ()) -> st.Statement:
        """INSERT [TOP (n)] [INTO] target and its source of rows."""
        line = self.line()
        self.expect("INSERT")
        if self.accept("BULK"):
            return self.insert_bulk(self.name(), line)
        top = self.top() if self.text == "TOP" else None
        self.accept("INTO")
        target = self.target()
        hints = self.table_hints() if self.text == "WITH" else ()
        columns = self._column_list() if self.text == "(" and not self.at_parenthesised_query() else ()
        output = self.output_clauses()
        source: ast.Query | ast.LiteralRows | st.Statement | None
        if self.accept("DEFAULT"):
            self.expect("VALUES")
            source = None
        elif self.text in ("EXEC", "EXECUTE"):
            source = self.execute_statement()
        elif self.text == "VALUES" and self.peek().kind == "r" and self.peek(2).text not in _AFTER_VALUES:
            self.advance()
            source = ast.LiteralRows(str(self.advance().value))
        elif self.text in ("VALUES", "SELECT", "WITH", "("):
            source = self.query()
            source = replace(source, ctes=ctes + source.ctes)
        else:
            self.fail()
        return st.Insert(target, columns, source, top, output, hints, ctes, line=line)

    def _column_list(self) -> tuple[str, ...]:
        self.expect("(")
        found = [self.name()[-1]]
        while self.accept(","):
            found.append(self.name()[-1])
        self.expect(")")
        return tuple(found)

    def update(self, ctes: tuple[ast.CommonTable, ...] = ()) -> st.Statement:
        """UPDATE [TOP (n)] target SET assignments."""
        line = self.line()
        self.expect("UPDATE")
        top = self.top() if self.text == "TOP" else None
        target = self.target()
        hints = self.table_hints()
        self.expect("SET")
        assignments = self._assignments()
        output = self.output_clauses()
        source = self.table_sources() if self.accept("FROM") else None
        where = self._where()
        if self.text == "OPTION":
            self.option_clause()
        return st.Update(target, assignments, source, where, top, output, hints, ctes, line=line)

    def _where(self) -> ast.Expression | None:
        if not self.accept("WHERE"):
            return None
        if self.accept("CURRENT", "OF"):
            return ast.CurrentOf(self.cursor_name())
        return self.expression()

    def _assignments(self) -> tuple[st.Assignment, ...]:
        found = [self._assignment()]
        while self.accept(","):
            found.append(self._assignment())
        return tuple(found)

    def _assignment(self) -> st.Assignment:
        variable = ""
        if self.token.kind == "v":
            variable = self.variable()
            operator = self.expect_one(*_SET_OPERATORS)
            if not (operator == "=" and self.at_name() and self.peek().text in _SET_OPERATORS):
                return st.Assignment((), variable, operator, self.expression())
        column = self.name()
        if self.text == "(" and len(column) > 1 and column[-1].upper() == "WRITE":
            return self._write(column[:-1])
        if self.text == "(" and len(column) > 1:
            return st.Assignment(column[:-1], variable, "=", self.mutation(ast.ColumnRef(column[:-1]), column[-1]))
        operator = self.expect_one(*_SET_OPERATORS)
        return st.Assignment(column, variable, operator, self.expression())

    def _write(self, column: ast.Name) -> st.Assignment:
        """column.WRITE (expression, offset, length)."""
        arguments = self.call_arguments()
        if len(arguments) != 3:
            self.fail()
        return st.Assignment(column, "", "=", ast.Function((".WRITE",), (ast.ColumnRef(column), *arguments)))

    def delete(self, ctes: tuple[ast.CommonTable, ...] = ()) -> st.Statement:
        """DELETE [TOP (n)] [FROM] target and its conditions."""
        line = self.line()
        self.expect("DELETE")
        top = self.top() if self.text == "TOP" else None
        self.accept("FROM")
        target = self.target()
        hints = self.table_hints()
        output = self.output_clauses()
        source = self.table_sources() if self.accept("FROM") else None
        where = self._where()
        if self.text == "OPTION":
            self.option_clause()
        return st.Delete(target, source, where, top, output, hints, ctes, line=line)

    def output_clauses(self) -> tuple[st.Output, ...]:
        """OUTPUT into a table and/or to the client."""
        found = []
        while self.accept("OUTPUT"):
            items = [self._output_item()]
            while self.accept(","):
                items.append(self._output_item())
            into: ast.Name = ()
            columns: tuple[str, ...] = ()
            if self.accept("INTO"):
                into = self.target()
                if self.text == "(" and not self.at_parenthesised_query():
                    columns = self.names()
            found.append(st.Output(tuple(items), into, columns))
        return tuple(found)

    def _output_item(self) -> tuple[ast.Expression, str]:
        expression = self.expression()
        return expression, self.column_alias()

    def merge(self, ctes: tuple[ast.CommonTable, ...] = ()) -> st.Statement:
        """MERGE [TOP (n)] [INTO] target USING source ON condition and its WHEN clauses."""
        line = self.line()
        self.expect("MERGE")
        top = self.top() if self.text == "TOP" else None
        self.accept("INTO")
        target = self.target()
        hints = self.table_hints()
        alias = "" if self.text == "USING" else self.table_alias()[0]
        self.expect("USING")
        source = self.table_sources()
        self.expect("ON")
        condition = self.expression()
        clauses = []
        while self.text == "WHEN":
            clauses.append(self._merge_clause())
        if not clauses:
            self.fail()
        output = self.output_clauses()
        if self.text == "OPTION":
            self.option_clause()
        if self.text not in (";", ")"):
            raise self.error(10713, "A MERGE statement must be terminated by a semi-colon (;).")
        return st.Merge(target, alias, source, condition, tuple(clauses), output, hints, top, ctes, line=line)

    def _merge_clause(self) -> st.MergeClause:
        self.expect("WHEN")
        match = "matched"
        if self.accept("NOT"):
            self.expect("MATCHED")
            match = "target"
            if self.accept("BY"):
                match = self.expect_one("TARGET", "SOURCE").lower()
        else:
            self.expect("MATCHED")
        condition = self.expression() if self.accept("AND") else None
        self.expect("THEN")
        action = self.expect_one("UPDATE", "DELETE", "INSERT")
        if action == "UPDATE":
            self.expect("SET")
            return st.MergeClause(match, condition, "update", self._assignments())  # type: ignore[arg-type]
        if action == "DELETE":
            return st.MergeClause(match, condition, "delete")  # type: ignore[arg-type]
        columns = self._column_list() if self.text == "(" else ()
        values: tuple[ast.Expression, ...] | None = None
        if self.accept("DEFAULT"):
            self.expect("VALUES")
        else:
            self.expect("VALUES", "(")
            values = self.expressions()
            self.expect(")")
        return st.MergeClause(match, condition, "insert", (), columns, values)  # type: ignore[arg-type]

    def truncate(self) -> st.Statement:
        """TRUNCATE TABLE name."""
        line = self.line()
        self.expect("TRUNCATE", "TABLE")
        table = self.name()
        if self.at("WITH", "("):
            raise self.unsupported("PARTITIONS")
        return st.Truncate(table, line=line)
