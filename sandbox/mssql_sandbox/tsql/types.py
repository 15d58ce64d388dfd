"""Data types as written in DECLARE, CREATE TABLE, CAST and parameter lists."""

from __future__ import annotations

from mssql_sandbox.tsql.ast import Name, TypeName
from mssql_sandbox.tsql.stream import TokenStream

_NATIONAL = {"CHAR": "nchar", "CHARACTER": "nchar", "VARCHAR": "nvarchar", "TEXT": "ntext"}


class TypeParser(TokenStream):
    """Adds `type_name`."""

    __slots__ = ()

    def type_name(self) -> TypeName:
        """A data type: name, arguments, COLLATE."""
        name = self._type_words()
        arguments: tuple[int, ...] = ()
        schema: Name = ()
        if self.text == "(":
            self.advance()
            if name[-1].lower() == "xml":
                self.accept_one("CONTENT", "DOCUMENT")
                schema = self.name()
            else:
                arguments = self._type_arguments()
            self.expect(")")
        collation = ""
        if self.accept("COLLATE"):
            collation = self.word_as_written()
        return TypeName(name, arguments, collation, schema)

    def word_as_written(self) -> str:
        """A name that may be reserved, in its own case (collations such as DATABASE_DEFAULT)."""
        if self.token.kind not in ("w", "q"):
            self.fail()
        return str(self.advance().value)

    def _type_words(self) -> tuple[str, ...]:
        if self.accept("NATIONAL"):
            base = _NATIONAL[self.expect_one(*_NATIONAL)]
            return ("nvarchar",) if self.accept("VARYING") and base == "nchar" else (base,)
        if self.accept("DOUBLE"):
            self.expect("PRECISION")
            return ("float",)
        first = self.token
        name = self.name()
        if len(name) == 1 and first.kind == "w":
            lowered = name[0].lower()
            if lowered in ("char", "character", "nchar", "binary") and self.accept("VARYING"):
                return ({"nchar": "nvarchar", "binary": "varbinary"}.get(lowered, "varchar"),)
        return name

    def _type_arguments(self) -> tuple[int, ...]:
        if self.accept("MAX"):
            return (-1,)
        found = [self.integer()]
        while self.accept(","):
            found.append(self.integer())
        return tuple(found)
