"""Views, procedures, functions, triggers, types, sequences."""

from __future__ import annotations

from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.executing import ExecuteParser

_MODULE_OPTIONS = frozenset(
    {"ENCRYPTION", "SCHEMABINDING", "RECOMPILE", "VIEW_METADATA", "NATIVE_COMPILATION", "RETURNS", "CALLED", "INLINE"}
)


class ModuleParser(ExecuteParser):
    """Adds CREATE and ALTER of programmable objects."""

    __slots__ = ()

    def statement_list(self, *ends: str) -> tuple[st.Statement, ...]:
        """Statements up to one of these words or the end (provided by `Parser`)."""
        raise NotImplementedError

    # ---- modules --------------------------------------------------------------------------------------

    def create_module(self, form: st.ModuleForm, kind: str, start: int, line: int) -> st.Statement:
        """View, procedure, function or trigger; the kind's word has been read."""
        name = self.name()
        reader = {
            "view": self._view, "procedure": self._procedure, "function": self._function, "trigger": self._trigger,
        }[kind]  # fmt: skip
        return reader(form, name, start, line)

    def _text_from(self, start: int) -> str:
        return self.source.text[start : max(self.peek(-1).end, start)]

    def _module_options(self) -> tuple[str, ...]:
        found = []
        if self.accept("WITH"):
            while True:
                if self.accept_one("EXECUTE", "EXEC"):
                    self.expect("AS")
                    word = self.accept_one("CALLER", "SELF", "OWNER")
                    found.append(f"EXECUTE AS {word}" if word else f"EXECUTE AS '{self.string()}'")
                elif self.text in _MODULE_OPTIONS:
                    word = self.advance().text
                    if word in ("RETURNS", "CALLED"):
                        self.expect("NULL", "ON", "NULL", "INPUT") if word == "RETURNS" else self.expect(
                            "ON", "NULL", "INPUT"
                        )
                    elif word == "INLINE":
                        self.expect("=")
                        self.expect_one("ON", "OFF")
                    found.append(word)
                else:
                    self.fail()
                if not self.accept(","):
                    break
        return tuple(found)

    def _view(self, form: st.ModuleForm, name: ast.Name, start: int, line: int) -> st.Statement:
        columns = self.names() if self.text == "(" else ()
        options = self._module_options()
        self.expect("AS")
        query = self.query()
        if self.accept("WITH", "CHECK", "OPTION"):
            options += ("CHECK OPTION",)
        return st.CreateModule(
            "view",
            form,
            name,
            self._text_from(start),
            columns=columns,
            query=query,
            options=options,
            line=line,  # type: ignore[arg-type]
        )

    def parameters(self, *, ends: tuple[str, ...]) -> tuple[st.VariableDeclaration, ...]:
        """Parameter declarations of a module, up to a word of `ends`."""
        found = []
        while self.token.kind == "v":
            name = self.variable()
            self.accept("AS")
            if self.accept("CURSOR"):
                self.expect("VARYING")
                type_name, cursor = ast.TypeName(("cursor",)), True
            else:
                type_name, cursor = self.type_name(), False
            if self.accept("NOT"):
                self.expect("NULL")
            else:
                self.accept("NULL")
            default = self._default_value() if self.accept("=") else None
            output = bool(self.accept_one("OUTPUT", "OUT"))
            readonly = self.accept("READONLY")
            found.append(st.VariableDeclaration(name, type_name, default, output, cursor, readonly))
            if not self.accept(","):
                break
        if self.text not in ends and self.token.kind != "e":
            self.fail()
        return tuple(found)

    def _default_value(self) -> ast.Expression:
        if self.token.kind == "w" and self.at_name():
            return ast.Literal(str(self.advance().value), "string")
        return self.constant()

    def _procedure(self, form: st.ModuleForm, name: ast.Name, start: int, line: int) -> st.Statement:
        if self.accept(";"):
            self.integer()
        parenthesised = self.accept("(")
        parameters = self.parameters(ends=(")",) if parenthesised else ("WITH", "AS", "FOR"))
        if parenthesised:
            self.expect(")")
        options = self._module_options()
        if self.accept("FOR"):
            self.expect("REPLICATION")
        self.expect("AS")
        body = self.statement_list()
        return st.CreateModule(
            "procedure",
            form,
            name,
            self._text_from(start),
            parameters,
            body=body,
            options=options,
            line=line,  # type: ignore[arg-type]
        )

    def _function(self, form: st.ModuleForm, name: ast.Name, start: int, line: int) -> st.Statement:
        self.expect("(")
        parameters = self.parameters(ends=(")",))
        self.expect(")", "RETURNS")
        returns: ast.TypeName | None = None
        returns_table: tuple[str, st.TableDefinition] | None = None
        query: ast.Query | None = None
        body: tuple[st.Statement, ...] = ()
        if self.accept("TABLE"):
            options = self._module_options()
            self.accept("AS")
            self.expect("RETURN")
            query = self._returned_query()
        else:
            if self.token.kind == "v":
                variable = self.variable()
                self.expect("TABLE")
                returns_table = (variable, self.table_definition())
            else:
                returns = self.type_name()
            options = self._module_options()
            self.accept("AS")
            self.expect("BEGIN")
            body = self.statement_list("END")
            self.expect("END")
        self.accept(";")
        return st.CreateModule(
            "function",
            form,
            name,
            self._text_from(start),
            parameters,
            (),
            query,
            body,
            returns,
            returns_table,
            options,
            line=line,
        )

    def _returned_query(self) -> ast.Query:
        if self.text == "(" and self.peek().text in ("SELECT", "WITH", "("):
            return self.parenthesised_query()
        return self.query()

    def _trigger(self, form: st.ModuleForm, name: ast.Name, start: int, line: int) -> st.Statement:
        self.expect("ON")
        table: ast.Name = ()
        if self.accept("ALL"):
            self.expect("SERVER")
        elif not self.accept("DATABASE"):
            table = self.name()
        options = self._module_options()
        timing = self.expect_one("FOR", "AFTER", "INSTEAD")
        if timing == "INSTEAD":
            self.expect("OF")
        events = [self.word()]
        while self.accept(","):
            events.append(self.word())
        if self.accept("NOT", "FOR", "REPLICATION"):
            options += ("NOT FOR REPLICATION",)
        self.expect("AS")
        body = self.statement_list()
        return st.CreateModule(
            "trigger", form, name, self._text_from(start), body=body, options=options, table=table,  # type: ignore[arg-type]
            timing="instead of" if timing == "INSTEAD" else "after", events=tuple(events), line=line,
        )  # fmt: skip

    # ---- smaller objects ------------------------------------------------------------------------------

    def create_type(self, line: int) -> st.Statement:
        """TYPE name FROM … | AS TABLE (…); CREATE TYPE has been read."""
        name = self.name()
        if self.accept("FROM"):
            base = self.type_name()
            nullable = False if self.accept("NOT", "NULL") else (True if self.accept("NULL") else None)
            return st.CreateType(name, base, nullable, line=line)
        self.expect("AS", "TABLE")
        definition = self.table_definition()
        self.storage_options()
        return st.CreateType(name, table=definition, line=line)

    def sequence(self, line: int, *, alter: bool) -> st.Statement:
        """SEQUENCE name options; CREATE | ALTER SEQUENCE has been read."""
        name = self.name()
        type_name = self.type_name() if self.accept("AS") else None
        options: list[tuple[str, int | None]] = []
        while self.text in ("START", "RESTART", "INCREMENT", "MINVALUE", "MAXVALUE", "NO", "CYCLE", "CACHE"):
            word = self.advance().text
            if word == "NO":
                options.append((f"no {self.expect_one('MINVALUE', 'MAXVALUE', 'CYCLE', 'CACHE').lower()}", None))
            elif word == "CYCLE" or (word in ("CACHE", "RESTART") and self.token.kind != "i" and self.text != "WITH"):
                options.append((word.lower(), None))
            else:
                self.accept_one("WITH", "BY")
                options.append((word.lower(), self.integer()))
        return st.CreateSequence(name, type_name, tuple(options), alter, line=line)
