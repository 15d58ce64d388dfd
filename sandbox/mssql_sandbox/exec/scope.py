"""Column names at one query level, and how references are resolved: 207, 209, 4104."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.types import ResultColumn, SqlType
from mssql_sandbox.errors import SqlError, error

Fold = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Field:
    """A column in scope. `qualifier` is (alias,) or (database, schema, table); `origin` the source that clients see."""

    name: str
    type: SqlType
    nullable: bool = True
    qualifier: tuple[str, ...] = ()
    origin: ResultColumn | None = None
    hidden: bool = False
    special: str = ""
    denied: bool = False
    """Whether the session may not SELECT the column (230)."""
    masking: str = ""
    """The function that masks the column for the session."""

    def require(self) -> None:
        """Error 230 for a denied column."""
        if self.denied and self.origin is not None:
            database, schema, table = self.origin.table
            raise error(230, permission="SELECT", column=self.name, name=table, database=database, schema=schema)


class Scope:
    """The columns of a level's row, in row order, and the enclosing scope."""

    __slots__ = ("_by_name", "_fold", "fields", "level", "parent", "replacements")

    def __init__(self, fields: Sequence[Field], fold: Fold, *, parent: Scope | None = None, level: int = 0) -> None:
        self.fields = list(fields)
        self.parent = parent
        self.level = level
        self._fold = fold
        self._by_name: dict[object, list[int]] | None = None
        self.replacements: dict[Any, Any] = {}
        """Expressions (canonical form) that are already computed: grouping keys, aggregates, window functions."""

    @property
    def base(self) -> Scope:
        """The scope in which columns have their positions before grouping."""
        return self

    @property
    def fold(self) -> Fold:
        """How names are compared."""
        return self._fold

    def _places(self, name: str) -> list[int]:
        if self._by_name is None:
            self._by_name = {}
            for place, field in enumerate(self.fields):
                self._by_name.setdefault(self._fold(field.name), []).append(place)
        return self._by_name.get(self._fold(name), [])

    def _matches(self, qualifier: tuple[str, ...], field: Field) -> bool:
        own = field.qualifier
        if len(qualifier) > len(own):
            return False
        tail = own[len(own) - len(qualifier) :]
        fold = self._fold
        return all(not part or fold(part) == fold(mine) for part, mine in zip(qualifier, tail, strict=True))

    def find(self, parts: tuple[str, ...]) -> int | None:
        """Position of a column of this level, or None; 209 if several match."""
        local = parts[-1]
        places = self._places(local)
        if len(parts) > 1:
            places = [place for place in places if self._matches(parts[:-1], self.fields[place])]
        if len(places) > 1:
            raise error(209, name=local)
        return places[0] if places else None

    def special(self, word: str) -> int | None:
        """Position of the identity or rowguid column for `$identity`, `$rowguid`, `IDENTITYCOL`."""
        return next((place for place, field in enumerate(self.fields) if field.special == word), None)

    def resolve(self, parts: tuple[str, ...], line: int = 0) -> tuple[Scope, int]:
        """The scope and position of a column, looking outwards; 207 or 4104 if there is none."""
        scope: Scope | None = self
        passed: list[Scope] = []
        while scope is not None:
            place = scope.find(parts)
            if place is not None:
                scope.fields[place].require()
                for inner in passed:
                    inner.passed_by()
                return scope, place
            passed.append(scope)
            scope = scope.parent
        raise self._missing(parts, line)

    def passed_by(self) -> None:
        """A column was found in an outer scope."""

    def _missing(self, parts: tuple[str, ...], line: int) -> SqlError:
        if len(parts) == 1 or self._knows_table(parts[:-1]):
            failure = error(207, name=parts[-1])
        else:
            name = ".".join(parts)
            failure = SqlError(4104, f'The multi-part identifier "{name}" could not be bound.')
        failure.line = line
        return failure

    def _knows_table(self, qualifier: tuple[str, ...]) -> bool:
        scope: Scope | None = self
        while scope is not None:
            if any(self._matches(qualifier, field) for field in scope.fields):
                return True
            scope = scope.parent
        return False

    def star(self, qualifier: tuple[str, ...]) -> list[int]:
        """Positions for `*` or `t.*`; 107 if no table matches."""
        if not qualifier:
            return self._shown(range(len(self.fields)))
        matching = [place for place, field in enumerate(self.fields) if self._matches(qualifier, field)]
        if not matching:
            name = ".".join(qualifier)
            raise SqlError(
                107, f"The column prefix '{name}' does not match with a table name or alias name used in the query.",
                severity=15,
            )  # fmt: skip
        return self._shown(matching)

    def _shown(self, places: Iterable[int]) -> list[int]:
        """The positions of columns that are not hidden; 230 if one is denied."""
        shown = [place for place in places if not self.fields[place].hidden]
        for place in shown:
            self.fields[place].require()
        return shown


def table_fields(table: Table, qualifier: tuple[str, ...]) -> list[Field]:
    """The fields of a stored table."""
    fields = []
    for col in table.columns:
        special = "identity" if col.identity is not None else "rowguid" if col.rowguid else ""
        origin = ResultColumn(
            col.name, col.type, nullable=col.nullable, identity=col.identity is not None,
            computed=col.computed is not None, updatable=col.writable and col.identity is None,
            table=(table.name,) if table.private else (table.database.name, table.schema.name, table.name),
        )  # fmt: skip
        fields.append(Field(col.name, col.type, col.nullable, qualifier, origin, col.hidden, special))
    return fields
