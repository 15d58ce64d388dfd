"""The definition of a built-in function: arity, result type, and a binder for given argument types.

What does not belong here: the functions themselves; functions that read the catalogue or the session's identity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mssql_sandbox.engine.collation import Collation
from mssql_sandbox.engine.conversion import converter
from mssql_sandbox.engine.conversion_strings import split_units
from mssql_sandbox.engine.types import (
    INTEGERS,
    LEGACY_LOBS,
    MAX,
    NATIONAL,
    STRINGS,
    SqlType,
    nvarchar,
    reported_name,
    varchar,
)  # fmt: skip
from mssql_sandbox.errors import SqlError, error

KEYWORD = SqlType("keyword")
"""Type of an argument that is a bare word, such as DATEADD's datepart; its value is the lower-case word."""
NULL_TYPE = SqlType("int")
"""Type of a bare NULL."""


class Environment(Protocol):
    """What functions may read from their session: time (fixed per statement) and settings."""

    date_first: int

    @property
    def local_ticks(self) -> int:
        """Statement time as datetime2(7) ticks in server local time."""
        ...

    @property
    def offset_minutes(self) -> int:
        """The server's offset from UTC."""
        ...

    @property
    def random(self) -> Any:
        """The session's `random.Random`."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """A call as the compiler sees it: argument types, literal values (None if not literal), database collation.

    `json` are the positions of arguments that are results of JSON functions.
    """

    types: tuple[SqlType, ...]
    constants: tuple[object, ...] = ()
    collation: Collation | None = None
    json: frozenset[int] = frozenset()

    def constant(self, place: int) -> object:
        """The literal value of an argument, None if it is not a literal."""
        return self.constants[place] if place < len(self.constants) else None

    def text_type(self, place: int) -> SqlType:
        """The character type that an argument has or is converted to; error 8116 if the function refuses text."""
        return string_type(self.types[place], self.collation)

    def as_text(self, place: int) -> Callable[[Any], str]:
        """Converter of an argument to text."""
        return converter(self.types[place], self.text_type(place))

    def as_units(self, place: int) -> Callable[[Any], str]:
        """Converter of an argument to the characters that its collation counts: UTF-16 units, unless it is _SC."""
        type_ = self.text_type(place)
        text = converter(self.types[place], type_)
        collation = type_.collation or self.collation
        if type_.name not in NATIONAL or (collation is not None and collation.supplementary):
            return text
        return lambda value: split_units(text(value))

    def to(self, place: int, target: SqlType) -> Callable[[Any], Any]:
        """Converter of an argument to a type."""
        return converter(self.types[place], target)


Binder = Callable[[Call], Callable[..., Any]]
ResultRule = Callable[[Call], SqlType]


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A built-in: `bind(call)` gives a function of the argument values in storage form.

    `null_if_null`: the caller gives NULL without calling when an argument is NULL. `environment`: the bound function
    takes the session's `Environment` first. `maximum` None: any number of arguments. `takes`: the types of arguments,
    by place, that others are converted to before `bind`'s function sees them.
    """

    name: str
    minimum: int
    maximum: int | None
    rule: ResultRule
    bind: Binder
    null_if_null: bool = True
    environment: bool = False
    deterministic: bool = True
    keywords: frozenset[int] = frozenset()
    takes: Mapping[int, SqlType] = field(default_factory=dict)

    def result(self, call: Call) -> SqlType:
        """Result type of a call; errors 174/189 for a wrong number of arguments, 8116 for wrong types."""
        self.check_arity(len(call.types))
        return self.rule(call)

    def check_arity(self, count: int) -> None:
        """Raise 174 (fixed number of arguments) or 189 (range) for a wrong number of arguments."""
        if count >= self.minimum and (self.maximum is None or count <= self.maximum):
            return
        if self.minimum == self.maximum:
            raise error(174, name=self.name.lower(), count=self.minimum)
        raise error(189, name=self.name.lower(), low=self.minimum, high=self.maximum or 254)

    @property
    def of_value_only(self) -> bool:
        """Whether a call is deterministic, and NULL for NULL."""
        return self.null_if_null and self.deterministic and not self.environment

    def caller(self, call: Call) -> Callable[..., Any]:
        """`bind` with NULL handling and arity check; takes the environment first if `environment` is set."""
        self.check_arity(len(call.types))
        function = self._taking(call, self.bind(call))
        if not self.null_if_null:
            return function
        if self.environment:
            return lambda env, *values: None if None in values else function(env, *values)
        return lambda *values: None if None in values else function(*values)

    def _taking(self, call: Call, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with arguments converted to the types it takes; 8116 if that is impossible."""
        changes = [
            (place + self.environment, self._change(call, place, target))
            for place, target in self.takes.items()
            if place < len(call.types) and call.types[place].name not in _ALIKE[target.name]
        ]
        if not changes:
            return function

        def taking(*values: Any) -> Any:
            given = list(values)
            for place, change in changes:
                if given[place] is not None:
                    given[place] = change(given[place])
            return function(*given)

        return taking

    def _change(self, call: Call, place: int, target: SqlType) -> Callable[[Any], Any]:
        try:
            return call.to(place, target)
        except SqlError:
            raise error(
                8116, type=reported_name(call.types[place]), position=place + 1, function=self.name.lower()
            ) from None


TEXT = nvarchar(MAX)
"""The argument types of functions that read an argument as text."""
_ALIKE: Mapping[str, frozenset[str]] = {
    "nvarchar": STRINGS - LEGACY_LOBS, "int": INTEGERS, "bigint": INTEGERS,
    "varbinary": frozenset({"binary", "varbinary"}),
}  # fmt: skip
"""Types whose values need no conversion."""


class Registry:
    """A table of functions by upper-case name, filled by decorators."""

    def __init__(self) -> None:
        self.functions: dict[str, ScalarFunction] = {}

    def add(
        self,
        name: str,
        minimum: int,
        maximum: int | None = -1,
        *,
        result: ResultRule | SqlType,
        null_if_null: bool = True,
        environment: bool = False,
        deterministic: bool = True,
        keywords: Sequence[int] = (),
        takes: Mapping[int, SqlType] | None = None,
    ) -> Callable[[Binder], Binder]:
        """Decorator that registers a binder; `maximum` defaults to `minimum`."""
        rule = (lambda _: result) if isinstance(result, SqlType) else result

        def enter(bind: Binder) -> Binder:
            self.functions[name] = ScalarFunction(
                name, minimum, minimum if maximum == -1 else maximum, rule, bind, null_if_null, environment,
                deterministic, frozenset(keywords), takes or {},
            )  # fmt: skip
            return bind

        return enter


def string_type(type_: SqlType, collation: Collation | None) -> SqlType:
    """The character type of a value that a string function takes."""
    name = type_.name
    if name in LEGACY_LOBS:
        return SqlType("nvarchar" if name == "ntext" else "varchar", MAX, collation=type_.collation or collation)
    if name == "xml":
        return nvarchar(MAX, collation=collation)
    if name in STRINGS:
        return type_
    if name == "sql_variant":
        return nvarchar(4000, collation=collation)
    if name in {"binary", "varbinary"}:
        return varchar(type_.length, collation=collation)
    return varchar(60 if name not in {"int", "bigint", "smallint", "tinyint", "bit"} else 20, collation=collation)


def same_text(place: int = 0) -> ResultRule:
    """Result rule: varying text as long as the argument."""

    def rule(call: Call) -> SqlType:
        type_ = call.text_type(place)
        name = "nvarchar" if type_.name in NATIONAL else "varchar"
        return SqlType(name, type_.length, collation=type_.collation)

    return rule


def wide_text(call: Call, *places: int, length: int | None = None) -> SqlType:
    """Varying text that holds the arguments at `places`: national if one is, of `length` (None: 8000 bytes or max)."""
    types = [call.text_type(place) for place in places]
    national = any(type_.name in NATIONAL for type_ in types)
    if length is None:
        length = MAX if any(type_.length == MAX for type_ in types) else 4000 if national else 8000
    collation = next((type_.collation for type_ in types if type_.collation), call.collation)
    return SqlType("nvarchar" if national else "varchar", length, collation=collation)


def refuse(call: Call, place: int, function: str) -> None:
    """Raise 8116 for an argument whose type the function does not take."""
    raise error(8116, type=reported_name(call.types[place]), position=place + 1, function=function)
