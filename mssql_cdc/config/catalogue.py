"""The property table as a whole, and finding a property by name.

`ALL` is the one list of what is known: validation (`resolve.py`) and `docs/configuration.md` (`documentation.py`) are
made from it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from mssql_cdc.config.catalogue_connection import CONNECTION, FILTERS
from mssql_cdc.config.catalogue_kafka import KAFKA, SCHEMA_HISTORY
from mssql_cdc.config.catalogue_own import OWN
from mssql_cdc.config.catalogue_records import LINEAGE, RECORDS
from mssql_cdc.config.catalogue_snapshot import SIGNALS, SNAPSHOT
from mssql_cdc.config.catalogue_streaming import STREAMING
from mssql_cdc.config.driver import knows_jdbc_name
from mssql_cdc.config.property import Property

GROUPS: Mapping[str, tuple[Property, ...]] = MappingProxyType(
    {
        "Connection": CONNECTION,
        "Filters, masks and keys": FILTERS,
        "Snapshots": SNAPSHOT,
        "Signals and notifications": SIGNALS,
        "Streaming, heartbeats and errors": STREAMING,
        "Records and topics": RECORDS,
        "Schema history": SCHEMA_HISTORY,
        "Lake, Dagster and Spark": OWN,
        "Lineage": LINEAGE,
        "Kafka, Kafka Connect and Java": KAFKA,
    }
)
ALL: tuple[Property, ...] = tuple(one for group in GROUPS.values() for one in group)
EXCLUSIVE: tuple[tuple[str, str], ...] = tuple(
    (f"{what}.include.list", f"{what}.exclude.list") for what in ("schema", "table", "column", "capture.instance")
)

_OLD_PREFIXES = (("database.history.", "schema.history.internal."),)
_SALT = re.compile(r"(column\.mask\.hash\..*?\.with\.(?:salt\.)?).+")


@dataclass(frozen=True, slots=True)
class Found:
    """A property found by a configured name; `parts` are what a family's placeholders stand for."""

    prop: Property
    parts: tuple[str, ...] = ()


def canonical_name(name: str) -> str:
    """The name of today: aliases of older Debezium versions and the prefix `internal.` are translated."""
    for old, new in _OLD_PREFIXES:
        if name.startswith(old):
            name = new + name.removeprefix(old)
    if name.startswith("internal.") and name.removeprefix("internal.") in _by_name():
        name = name.removeprefix("internal.")
    return _aliases().get(name, name)


def find(name: str) -> Found | None:
    """The property of a canonical name; exact names win, then the family with the most fixed characters."""
    exact = _by_name().get(name)
    if exact is not None:
        return Found(exact)
    for prop, expression in _families():
        found = expression.fullmatch(name)
        if found is None:
            continue
        if prop.name == "database.*" and not knows_jdbc_name(found.group(1)):
            continue
        return Found(prop, found.groups())
    return None


def nearest(name: str) -> str | None:
    """The known name most like an unknown one, or None when nothing comes close."""
    names = {one.name.lower(): one.name for one in ALL} | {old: old for old in _aliases()}
    close = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.6)
    return names[close[0]] if close else None


def shown_name(name: str) -> str:
    """A property's name as it may be shown: the salt of a mask is left out."""
    return _SALT.sub(r"\1***", name)


@cache
def _by_name() -> Mapping[str, Property]:
    return MappingProxyType({one.name: one for one in ALL if not one.is_family})


@cache
def _families() -> tuple[tuple[Property, re.Pattern[str]], ...]:
    families = sorted((one for one in ALL if one.is_family), key=lambda one: -one.fixed_length)
    return tuple((one, one.family_expression()) for one in families)


@cache
def _aliases() -> Mapping[str, str]:
    return MappingProxyType({old: one.name for one in ALL for old in one.aliases})
