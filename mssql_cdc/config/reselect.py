"""The options of Debezium's ReselectColumnsPostProcessor (SPI-10): which columns are read again, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mssql_cdc.config.patterns import PatternList

_PREFIX = "reselect."
_ALL = PatternList()


@dataclass(frozen=True, slots=True)
class ReselectSettings:
    """Which columns are read again from the source, and what happens when that fails.

    `include` and `exclude` are expressions over `schema.table:column`; with neither, every column is included.
    """

    include: PatternList = _ALL
    exclude: PatternList = _ALL
    unavailable_values: bool = True
    null_values: bool = True
    use_event_key: bool = False
    on_error: Literal["fail", "warn"] = "warn"

    @classmethod
    def parse(cls, properties: Mapping[str, str]) -> ReselectSettings:
        """Parse the properties, without the post-processor's name.

        Raises:
            ValueError: an option is unknown, or its value is not valid.
        """
        for name in properties:
            if name.removeprefix(_PREFIX) not in _OPTIONS or not name.startswith(_PREFIX):
                raise ValueError(f"{name} is no option; expected {', '.join(_PREFIX + one for one in _OPTIONS)}")
        given = {name.removeprefix(_PREFIX): text.strip() for name, text in properties.items() if text.strip()}
        mode = given.get("error.handling.mode", "warn").lower()
        if mode not in {"fail", "warn"}:
            raise ValueError(f"{_PREFIX}error.handling.mode: found {mode!r}, expected fail or warn")
        return cls(
            include=PatternList.parse(given.get("columns.include.list", "")),
            exclude=PatternList.parse(given.get("columns.exclude.list", "")),
            unavailable_values=_flag(given, "unavailable.values", default=True),
            null_values=_flag(given, "null.values", default=True),
            use_event_key=_flag(given, "use.event.key", default=False),
            on_error="fail" if mode == "fail" else "warn",
        )

    def selects(self, schema: str, table: str, column: str) -> bool:
        """Whether a column may be read again; the list of included columns wins.

        Args:
            schema: the table's schema.
            table: the table's name.
            column: the column's name.
        """
        name = f"{schema}.{table}:{column}"
        if self.include:
            return self.include.matches(name)
        return not (self.exclude and self.exclude.matches(name))


_OPTIONS = (
    "columns.include.list", "columns.exclude.list", "unavailable.values", "null.values", "use.event.key",
    "error.handling.mode",
)  # fmt: skip


def _flag(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = given.get(name, str(default)).lower()
    if text not in {"true", "false"}:
        raise ValueError(f"{_PREFIX}{name}: found {text!r}, expected true or false")
    return text == "true"
