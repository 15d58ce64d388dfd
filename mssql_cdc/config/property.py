"""Properties: `prop` declares one as a field of a `section`, `Property` describes it and reads its text.

A section is a pydantic dataclass: frozen, hashable and as small in a pickle as its values. The properties themselves
are the fields of the sections (`connection.py`, `filters.py`, …), `catalogue.py` finds them by name,
`read_properties.py` reads a whole configuration.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from functools import cache
from itertools import pairwise
from types import NoneType
from typing import Any, Literal, ParamSpec, TypeVar, cast, dataclass_transform, get_args, get_origin
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pydantic
import pydantic.dataclasses
from pydantic import AliasChoices, BeforeValidator, ConfigDict, ValidationInfo
from pydantic.dataclasses import is_pydantic_dataclass

from mssql_cdc.config.patterns import PatternList
from mssql_cdc.config.report import NO_MEANING, Report
from mssql_cdc.config.secret import Secret, guarded

Kind = Literal["text", "bool", "int", "choice", "choices", "list", "regexes", "secret"]
_P = ParamSpec("_P")
_T = TypeVar("_T")


class Effect(Enum):
    """What a property does here. No property without an effect is accepted silently."""

    EFFECTIVE = "effective"
    TRANSLATED = "translated"  # it sets something else that has the same meaning here
    INERT = "without meaning here"  # the notices report it
    NO_RECORDS = "refuses the rendering of records"  # consumers would receive other records; capture works
    REFUSED = "refused"  # ignoring it would change rows: an error


class Group(StrEnum):
    """The tasks by which the documentation groups properties, in its order."""

    CONNECT = "Connect to SQL Server"
    CAPTURE = "Choose what to capture"
    MASK = "Mask columns"
    SNAPSHOT = "Take snapshots"
    SIGNAL = "Send signals, receive notifications"
    STREAM = "Stream changes and handle errors"
    RECORD = "Shape and name records"
    HISTORY = "Keep the schema history"
    LAKE = "Store tables in the lake"
    RUN = "Run in Dagster and Spark"
    LINEAGE = "Report lineage"
    KAFKA = "Kafka, Kafka Connect and Java"


@dataclass(frozen=True, slots=True)
class GivenProperty:
    """One configured property: its name, what the placeholders of a family stand for, its text.

    `hidden`: the configuration says that the value is a secret.
    """

    name: str
    parts: tuple[str, ...]
    text: str
    hidden: bool = False

    @property
    def value(self) -> str | Secret:
        """The text, as a Secret if it contains a reference, or if its name or the configuration says that it is one."""
        return Secret(self.text) if self.hidden else guarded(self.name, self.text)


@dataclass(frozen=True, slots=True)
class Property:
    """One property, as `prop` declares it.

    Attributes:
        name: Debezium's name, or this project's own; a family's contains placeholders (`column.mask.with.<n>.chars`)
            or ends in `*`.
        default: the value when the property is not set; `...` when it must be set.
        features: ids of `docs/features.md`, separated by blanks.
        effect: what the property does here.
        older: names in older Debezium versions.
        spellings: older spellings of choices.
        refused: Debezium's choices that are an error because they are not implemented.
        inert: choices without meaning here.
        unrendered: choices with which the rendering of records is refused; the default takes their place.
        rendered: values with which records are rendered, for a property with which rendering is otherwise refused.
        excludes: the property that cannot be set together with this one.
        debezium: Debezium's default, where it differs.
        ge: the smallest number.
        le: the largest number.
        late: references in the value travel unresolved; the code that uses the value resolves them.
        group: where the documentation lists the property; by default, in the group of its section.
        owner: the section; set once it is complete.
        path: leads from the root of the configuration to the value; set once the class is complete.
        type: the type of the field, without None; set once the class is complete.
    """

    name: str
    default: Any
    features: str = ""
    effect: Effect = Effect.EFFECTIVE
    older: tuple[str, ...] = ()
    spellings: Mapping[str, str] = field(default_factory=dict[str, str])
    refused: tuple[str, ...] = ()
    inert: tuple[str, ...] = ()
    unrendered: tuple[str, ...] = ()
    rendered: tuple[str, ...] = ()
    excludes: str = ""
    debezium: Any = None
    ge: int | None = None
    le: int | None = None
    late: bool = False
    group: Group | None = None
    owner: Any = None
    path: tuple[str, ...] = ()
    type: Any = str

    def __call__(self, schema: dict[str, Any]) -> None:
        """Add what pydantic does not know to the JSON schema."""
        schema["x-effect"] = self.effect.value

    @property
    def text(self) -> str:
        """The text for the documentation and notices: the docstring of the field."""
        return _docstrings(self.owner).get(self.path[-1], "")

    @property
    def is_family(self) -> bool:
        """Whether the name stands for many properties."""
        return "<" in self.name or self.name.endswith("*")

    @property
    def choices(self) -> tuple[str, ...]:
        """The values to choose from; empty when the property takes other values."""
        literal = get_args(self.type)[0] if get_origin(self.type) in (tuple, frozenset) else self.type
        return get_args(literal) if get_origin(literal) is Literal else ()

    @property
    def kind(self) -> Kind:
        """The kind of value that the text stands for."""
        if self.choices:
            return "choice" if get_origin(self.type) is Literal else "choices"
        kinds: dict[Any, Kind] = {bool: "bool", int: "int", Secret: "secret", PatternList: "regexes"}
        return "list" if self.type == tuple[str, ...] else kinds.get(self.type, "text")

    def read(self, given: GivenProperty, report: Report) -> Any:
        """The configured value, as far as its text determines it; the type of the field does the rest.

        Raises:
            ValueError: what was found and what is expected.
        """
        if self.effect is Effect.INERT:
            self.note(given, report)
        if self.is_family:
            return given
        found = self._read(given.text, report)
        if found != self.default and self.effect is Effect.REFUSED:
            raise ValueError("is not supported, and rows would differ from what it specifies; remove it")
        if found != self.default and self.effect is Effect.NO_RECORDS and given.text.strip() not in self.rendered:
            report.refuse_records(given.name)
        return found

    def note(self, given: GivenProperty, report: Report) -> None:
        """Note that the property has no meaning here."""
        report.notice(given.name, NO_MEANING if self.group in _FOREIGN else f"has no effect here. {self.text}")

    def _read(self, text: str, report: Report) -> Any:
        match self.kind:
            case "bool":
                return _read_bool(text)
            case "int":
                return _read_int(text)
            case "choice":
                return self._choose(text, report)
            case "choices":
                return tuple(self._choose(one, report) for one in split(text))
            case "list":
                return split(text)
            case "secret":
                return Secret(text)
            case "text" | "regexes":
                return text

    def _choose(self, text: str, report: Report) -> str:
        written = text.strip().lower()
        value = self.spellings.get(written, written)
        if value in self.refused:
            raise ValueError(f"found {written!r}, which is not supported; use {either(self.choices)}")
        if value in self.unrendered:
            report.refuse_records(f"{self.name}={value}")
            return self.default if isinstance(self.default, str) else value
        if value not in self.choices:
            raise ValueError(f"found {text!r}, expected {either(self.choices)}")
        if value in self.inert:
            report.notice(self.name, f"{value} has no meaning here")
        if value != written:
            report.notice(self.name, f"{written} is an older name of {value}")
        return value


def _as_field(describe: Callable[_P, Property]) -> Callable[_P, Any]:
    def declare(*args: _P.args, **kwargs: _P.kwargs) -> Any:
        one = describe(*args, **kwargs)
        alias = AliasChoices(one.name, *one.older)
        return pydantic.Field(one.default, validation_alias=alias, ge=one.ge, le=one.le, json_schema_extra=one)

    return declare


prop = _as_field(Property)
"""Declares a property as the default of a field, whose type determines how its text is read."""


@dataclass_transform(kw_only_default=True, frozen_default=True)
def section(group: Group) -> Callable[[type[_T]], type[_T]]:
    """Make a class a section; the documentation lists its properties in the group."""
    config = ConfigDict(
        title=group,
        arbitrary_types_allowed=True,
        validate_by_name=True,
        validate_default=True,
        hide_input_in_errors=True,
        defer_build=True,
    )

    def decorate(cls: type[_T]) -> type[_T]:
        made = pydantic.dataclasses.dataclass(cls, frozen=True, slots=True, kw_only=True, config=config)
        return cast("type[_T]", made)

    return decorate


def properties_of(cls: type, path: tuple[str, ...] = ()) -> Iterator[Property]:
    """All properties of a section and of the sections in it, in order."""
    assert is_pydantic_dataclass(cls), f"{cls.__name__} is a section"
    for name, info in cls.__pydantic_fields__.items():
        inner, one = info.annotation, info.json_schema_extra
        if isinstance(one, Property):
            group = one.group or Group(cls.__pydantic_config__.get("title"))
            yield replace(one, owner=cls, path=(*path, name), group=group, type=_without_none(inner))
        elif isinstance(inner, type) and is_pydantic_dataclass(inner):
            yield from properties_of(inner, (*path, name))


@cache
def _docstrings(owner: type) -> Mapping[str, str]:
    """The docstrings of a class's fields. Read when needed: pydantic reads them on import, which doubles the time."""
    try:
        (tree,) = ast.parse(inspect.getsource(owner)).body
    except OSError:  # an installation without sources
        return {}
    found: dict[str, str] = {}
    for pair in pairwise(cast("ast.ClassDef", tree).body):
        match pair:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = " ".join(text.split())
            case _:
                pass
    return found


def members(parse: Callable[[GivenProperty, Report], object]) -> BeforeValidator:
    """Read a family: `parse` converts each configured property; its ValueErrors become problems."""

    def read(value: Any, info: ValidationInfo) -> Any:
        report, found = Report.of(info), list[Any]()
        for one in value:
            try:
                found.append(parse(one, report) if isinstance(one, GivenProperty) else one)
            except ValueError as error:
                report.complain(one.name, str(error))
        return tuple(found)

    return BeforeValidator(read)


def regexes(parts: int, *, long_form: bool = False) -> BeforeValidator:
    """Read a list of expressions over names of `parts` parts (see `PatternList`)."""

    def read(value: Any) -> Any:
        return PatternList.parse(value, parts, long_form=long_form) if isinstance(value, str) else value

    return BeforeValidator(read)


LONGEST_TOPIC = 249
"""The most characters that Kafka allows in a topic's name."""
_FOREIGN = (Group.KAFKA, Group.HISTORY, Group.SIGNAL, Group.LINEAGE)
"""Groups whose properties without meaning belong to Kafka and Java."""


def split(text: str) -> tuple[str, ...]:
    """The parts of a list, without surrounding blanks; empty ones are dropped."""
    return tuple(part for part in (raw.strip() for raw in text.split(",")) if part)


def either(values: Sequence[str]) -> str:
    """The values as an English list: `a, b or c`."""
    return " or ".join([", ".join(values[:-1]), values[-1]] if len(values) > 1 else values)


def plain(text: str) -> str:
    """The text, checked to be a name that is valid in host names, paths and topics.

    Raises:
        ValueError: it contains other characters.
    """
    if not re.fullmatch(r"[A-Za-z0-9._-]+", text):
        raise ValueError(f"found {text!r}, expected letters, digits, '.', '_' and '-' only")
    return text


def topic_name(text: str) -> str:
    """The text, checked to be the name of a topic.

    Raises:
        ValueError: no Kafka broker accepts it.
    """
    if not 1 <= len(plain(text)) <= LONGEST_TOPIC or text in {".", ".."}:
        raise ValueError(f"found {text!r}, expected 1 to {LONGEST_TOPIC} characters, and neither '.' nor '..'")
    return text


def iana_zone(name: str) -> str:
    """The name, checked to be in the IANA time zone database.

    Raises:
        ValueError: there is no such zone; `Europe` alone is a folder of them.
    """
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"found {name!r}, expected an IANA time zone such as Europe/Paris") from None
    return name


def _read_bool(text: str) -> bool:
    value = text.strip().lower()
    if value not in {"true", "false"}:
        raise ValueError(f"found {text!r}, expected true or false")
    return value == "true"


def _read_int(text: str) -> int:
    if not re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", text):
        raise ValueError(f"found {text!r}, expected a whole number")
    return int(text)


def _without_none(annotation: Any) -> Any:
    inner = [one for one in get_args(annotation) if one is not NoneType]
    return inner[0] if NoneType in get_args(annotation) and len(inner) == 1 else annotation
