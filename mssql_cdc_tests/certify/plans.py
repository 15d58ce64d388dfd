"""Reads SQL Server's plans (`SHOWPLAN_XML`): what a statement scans, sorts or spools of the tables that grow.

Catalog tables are not watched: they are small, and how they are read is the server's business.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET

_NAMESPACE = "{http://schemas.microsoft.com/sqlserver/2004/07/showplan}"
_SORTS = {"Sort", "Top N Sort", "Distinct Sort"}


@dataclass(frozen=True, slots=True)
class Finding:
    """An operator that costs more the larger the table is: `Clustered Index Scan` of `dbo.orders`, for instance."""

    operator: str
    table: str


def findings(plan: str, *, keys: frozenset[str] = frozenset()) -> list[Finding]:
    """The scans, sorts and spools of tables that grow: change tables, `cdc.lsn_time_mapping`, and the user's.

    An ordered scan under a TOP is none, since it ends after the rows that TOP asks for.

    Args:
        plan: the XML document of one plan.
        keys: user tables (`schema.table`) that are watched; others, such as those without a key, may be scanned.
    """
    found: list[Finding] = []
    for statement in ET.fromstring(plan).iter(f"{_NAMESPACE}StmtSimple"):  # noqa: S314 - from the server under test
        watched = sorted({table for table in _tables(statement) if _grows(table, keys)})
        for operator, above in _operators(statement, ()):
            physical = operator.get("PhysicalOp", "")
            if physical in _SORTS or physical.endswith("Spool"):
                found += [Finding(physical, watched[0])] if watched else []
            elif physical.endswith("Scan"):
                table = next(iter(_tables(operator, depth=1)), "")
                if _grows(table, keys) and not ("Top" in above and _is_ordered(operator)):
                    found.append(Finding(physical, table))
    return found


def _grows(table: str, keys: frozenset[str]) -> bool:
    schema, _, name = table.partition(".")
    return table in keys or (schema == "cdc" and (name.endswith("_CT") or name == "lsn_time_mapping"))


def _operators(element: ET.Element, above: tuple[str, ...]) -> Iterator[tuple[ET.Element, tuple[str, ...]]]:
    """Every operator, with the physical names of those above it."""
    for child in element:
        if child.tag == f"{_NAMESPACE}RelOp":
            yield child, above
            yield from _operators(child, (*above, child.get("PhysicalOp", "")))
        else:
            yield from _operators(child, above)


def _tables(element: ET.Element, *, depth: int | None = None) -> Iterator[str]:
    """`schema.table` of the objects in an element; with `depth=1` those of the operator itself, not of its inputs."""
    for child in element:
        if child.tag == f"{_NAMESPACE}Object" and child.get("Table"):
            yield f"{_plain(child.get('Schema', ''))}.{_plain(child.get('Table', ''))}"
        elif not (depth == 1 and child.tag == f"{_NAMESPACE}RelOp"):
            yield from _tables(child, depth=depth)


def _is_ordered(operator: ET.Element) -> bool:
    return any(child.get("Ordered") in ("true", "1") for child in operator if child.tag.endswith("Scan"))


def _plain(name: str) -> str:
    return name.removeprefix("[").removesuffix("]").replace("]]", "]")
