"""All known properties, and the lookup of one by its configured name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from mssql_cdc.config.driver import knows_jdbc_name
from mssql_cdc.config.extension_points import EXTENSION_FAMILY
from mssql_cdc.config.model import Configuration
from mssql_cdc.config.property import Property, properties_of

ALL: tuple[Property, ...] = tuple(properties_of(Configuration))
EXTENSION_PROPERTIES: Property = next(one for one in ALL if one.name == EXTENSION_FAMILY)
"""Properties whose names begin with that of an extension: only a configuration distinguishes them from unknown ones."""


def canonical_name(name: str) -> str:
    """The current name of a property: names of older Debezium versions and the prefix `internal.` are translated."""
    for old, new in _older().items():
        if old.endswith("*") and name.startswith(old[:-1]):
            name = new[:-1] + name.removeprefix(old[:-1])
    if name.removeprefix("internal.") in _by_name():
        name = name.removeprefix("internal.")
    return _older().get(name, name)


def find(name: str) -> tuple[Property, tuple[str, ...]] | None:
    """The property of a canonical name, and what the placeholders of a family stand for.

    An exact name wins, then the family with the most fixed characters.
    """
    if name in _by_name():
        return _by_name()[name], ()
    for prop, expression in _families():
        found = expression.fullmatch(name)
        if found is not None and (prop.name != "database.*" or knows_jdbc_name(found.group(1))):
            return prop, found.groups()
    return None


def nearest(name: str) -> str | None:
    """The known name most like an unknown one, or None when nothing comes close."""
    names = {one.name.lower(): one.name for one in ALL} | {old: old for old in _older()}
    close = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.6)
    return names[close[0]] if close else None


@cache
def _by_name() -> Mapping[str, Property]:
    return MappingProxyType({one.name: one for one in ALL if not one.is_family})


@cache
def _older() -> Mapping[str, str]:
    return MappingProxyType({old: one.name for one in ALL for old in one.older})


@cache
def _families() -> tuple[tuple[Property, re.Pattern[str]], ...]:
    """The families with the most fixed characters first; in the expressions, every placeholder is a group."""
    own = [one for one in ALL if one.is_family and one is not EXTENSION_PROPERTIES]
    families = [(one, re.split(r"<\w+>|\*$", one.name)) for one in own]
    families.sort(key=lambda family: -sum(map(len, family[1])))
    return tuple((one, re.compile("(.+)".join(map(re.escape, fixed)))) for one, fixed in families)
