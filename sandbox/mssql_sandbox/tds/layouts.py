"""The layout of adjacent columns of fixed width in one C struct: formats and the columns that fill them.

The second table of value codecs beside type_codecs.py, for types whose values have one width: one call packs all
adjacent columns. Both tables give the same bytes, which the tests compare.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.tds.decoders import DATETIME_TICKS_PER_DAY, MINUTES_PER_DAY, TICKS_PER_DAY, time_size
from mssql_sandbox.tds.type_codecs import decimal_size


@dataclass(frozen=True, slots=True)
class Layout:
    """A framed column without NULLs: struct format, and source text of its values, with `{c}` for the column.

    `prepare` are statements that come first; `{n}` in them and in `arguments` makes their names unique. Numbers among
    the arguments are constants of every row.
    """

    format: str
    arguments: tuple[str | int, ...]
    prepare: tuple[str, ...] = ()


def layout_of(type_: SqlType) -> Layout | None:
    """The layout of a type; None if its values differ in width, or if it is too rare to need one."""
    make = LAYOUTS.get(type_.name)
    return None if make is None else make(type_)


def _decimal(type_: SqlType) -> Layout | None:
    size = decimal_size(type_.precision)
    if size > 8:
        return None
    unscaled = f"map(multiply, {{c}}, repeat(power({type_.scale})))" if type_.scale else "{c}"
    prepare = (
        f"m{{n}} = list(map(trunc, {unscaled}))",
        "s{n} = repeat(1) if min(m{n}) >= 0 else [m >= 0 for m in m{n}]",
    )
    return Layout("BBI" if size == 4 else "BBQ", (size + 1, "s{n}", "map(abs, m{n})"), prepare)


def _datetime2(type_: SqlType) -> Layout | None:
    size, unit = time_size(type_.scale), 10 ** (7 - type_.scale)
    if size == 3:
        return None
    days = f"map(divmod, {{c}}, repeat({TICKS_PER_DAY}))"
    if size == 4:  # with its length before it, it has eight bytes
        return Layout("Q", (f"[day << 40 | part // {unit} << 8 | 7 for day, part in {days}]",))
    return Layout("BQ", (8, f"[day << 40 | part // {unit} for day, part in {days}]"))


def _legacy(parts: int, format_: str, size: int) -> Callable[[SqlType], Layout]:
    """Days and parts of a day."""
    divided = f"d{{n}}, t{{n}} = zip(*map(divmod, {{c}}, repeat({parts})))"
    return lambda _: Layout(format_, (size, "d{n}", "t{n}"), (divided,))


def _fixed(format_: str, size: int) -> Callable[[SqlType], Layout]:
    return lambda _: Layout(f"B{format_}", (size, "{c}"))


LAYOUTS: Mapping[str, Callable[[SqlType], Layout | None]] = {
    "bit": _fixed("B", 1),
    "tinyint": _fixed("B", 1),
    "smallint": _fixed("h", 2),
    "int": _fixed("i", 4),
    "bigint": _fixed("q", 8),
    "real": _fixed("f", 4),
    "float": _fixed("d", 8),
    "decimal": _decimal,
    "numeric": _decimal,
    "date": lambda _: Layout("I", ("[v << 8 | 3 for v in {c}]",)),
    "datetime": _legacy(DATETIME_TICKS_PER_DAY, "BiI", 8),
    "smalldatetime": _legacy(MINUTES_PER_DAY, "BHH", 4),
    "datetime2": _datetime2,
}
