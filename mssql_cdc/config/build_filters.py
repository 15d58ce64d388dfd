"""From checked settings to filters, masks and record keys: the parts of a connector that are made of expressions."""

from __future__ import annotations

import re

from mssql_cdc.config.filters import ColumnFilter, TableFilter
from mssql_cdc.config.masks import ALGORITHMS, MaskKind, MaskRule, MaskRules, ordered
from mssql_cdc.config.model import Filters, SignalSettings
from mssql_cdc.config.patterns import PatternList
from mssql_cdc.config.record_keys import RecordKeys
from mssql_cdc.config.resolve import Settings
from mssql_cdc.config.secret import Secret


def build_filters(settings: Settings, signals: SignalSettings) -> Filters:
    """Which tables and columns are captured, and which are masked."""
    return Filters(
        tables=TableFilter(
            schema_include=patterns(settings, "schema.include.list", 1),
            schema_exclude=patterns(settings, "schema.exclude.list", 1),
            table_include=patterns(settings, "table.include.list", 2, long_form=True),
            table_exclude=patterns(settings, "table.exclude.list", 2, long_form=True),
            ignore_builtin=settings.value("table.ignore.builtin"),
            signal_tables=signals.tables,
        ),
        columns=ColumnFilter(
            include=patterns(settings, "column.include.list", 3, long_form=True),
            exclude=patterns(settings, "column.exclude.list", 3, long_form=True),
        ),
        masks=_masks(settings),
    )


def build_record_keys(settings: Settings) -> RecordKeys:
    """`message.key.columns`."""
    try:
        return RecordKeys.parse(settings.value("message.key.columns") or "")
    except ValueError as error:
        settings.complain("message.key.columns", str(error))
        return RecordKeys()


def patterns(settings: Settings, name: str, parts: int, *, long_form: bool = False) -> PatternList:
    """A list of expressions over names of `parts` parts; empty when the property is not set."""
    value = settings.value(name)
    return PatternList("" if value is None else value.text, parts, long_form)


def _masks(settings: Settings) -> MaskRules:
    rules: list[MaskRule] = []
    lengths: tuple[tuple[str, MaskKind, int], ...] = (
        ("column.truncate.to.<n>.chars", "truncate", 1),
        ("column.mask.with.<n>.chars", "fill", 0),
    )
    for family, kind, least in lengths:
        for member in settings.family(family):
            if re.fullmatch("[0-9]{1,9}", member.parts[0]) and int(member.parts[0]) >= least:
                rules.append(MaskRule(kind=kind, columns=member.value, length=int(member.parts[0])))
            else:
                settings.complain(member.name, f"expected a whole number from {least} on in place of <n>")
    for family, version in (
        ("column.mask.hash.<algorithm>.with.salt.<salt>", 1),
        ("column.mask.hash.v2.<algorithm>.with.salt.<salt>", 2),
    ):
        for member in settings.family(family):
            algorithm, salt = member.parts
            known_name = ALGORITHMS.get(algorithm.upper())
            if known_name is None:
                known = ", ".join(ALGORITHMS)
                settings.complain(member.name, f"the algorithm {algorithm!r} is not known; known are {known}")
                continue
            rules.append(
                MaskRule(kind="hash", columns=member.value, algorithm=known_name, salt=Secret(salt), version=version)
            )
    return ordered(rules)
