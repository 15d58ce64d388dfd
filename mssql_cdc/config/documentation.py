"""Generates `docs/configuration.md` from the fields of the sections.

Run `python -m mssql_cdc.config.documentation > docs/configuration.md` to update it; a test compares the two.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, cast

from mssql_cdc.config.catalogue import ALL
from mssql_cdc.config.driver import TWINS, WITHOUT_TWIN, Twin
from mssql_cdc.config.patterns import PatternList
from mssql_cdc.config.property import Effect, Group, Property
from mssql_cdc.config.record_settings import RecordKeys

_HEAD = r"""# Configuration

A connector is one JSON file in Debezium's form, `{"name": …, "config": {…}}` or the properties alone. Put it into the
folder that `MSSQL_CDC_CONNECTORS` names (default: `connectors/`). An existing Debezium connector works unchanged.
This page is generated: `python -m mssql_cdc.config.documentation > docs/configuration.md`.

All properties of Debezium 3.3.1's SQL Server connector are known. One error lists every unknown property, every bad
value and all properties that exclude each other. The column *effect* says what happens with the others:

| effect | what happens when you set it |
|---|---|
|  | The property works as described. |
| translated | The property sets something else that has the same meaning here. |
| none | The property has no meaning outside Kafka, Java or Debezium itself. A notice at each start says so. |
| no records | Consumers would receive other records. Capture works; `mssql-cdc records` refuses to render any. |
| refused | It is not built, and rows would differ without it. Only its default is accepted. |

A property without one that it needs, such as `heartbeat.action.query` without `heartbeat.interval.ms`, has no effect;
one notice names them all. Notices appear in the command line, in the log of each Dagster run, in that of a sensor
when it is turned on, and in the metadata of every asset of the lake (`mssql_cdc/notices`).

* Any value may contain `${env:NAME}` and `${file:path:key}`; any other `${provider:…}` is refused. References are
  resolved when the file is loaded. In passwords, users, `driver.*`, `odbc.*`, `spark.*`, `delta.storage.*` and
  `delta.key.secret` they are resolved only where the value is used.
* A list of regular expressions (*regexes*) is separated by commas; `\,` is a comma in an expression. An expression
  matches the whole name and ignores case. Tables are `schema.table`; an expression with two dots or more may name
  `db.schema.table` as well. `discover`, `check-config` and each start name the expressions of tables and columns that
  match nothing, such as a misspelled column of a mask; with several databases, only expressions in the long form
  (`db.schema.table`) whose database is exactly one of them.
* The first mask that matches a column wins, in this order: truncate, asterisks, hash version 1, hash version 2.
"""

_JDBC = """## JDBC settings

Set them as `driver.<name>` or `database.<name>`, or the keyword as `odbc.<keyword>`. It is an error if two of these
families give one setting different values. `loginTimeout` limits the time of a login. Connections are encrypted unless
`database.encrypt=false` says otherwise, as Debezium's are. Microsoft's driver also verifies the server's certificate;
FreeTDS only encrypts.

What FreeTDS has no keyword for is named by a notice. It is refused with FreeTDS if it guards the connection or the
values: then only what changes nothing is accepted, such as `trustServerCertificate=true`.
"""

_EFFECTS = {
    Effect.EFFECTIVE: "",
    Effect.TRANSLATED: "translated",
    Effect.INERT: "none",
    Effect.NO_RECORDS: "no records",
    Effect.REFUSED: "refused",
}


def configuration_document() -> str:
    """The whole text of `docs/configuration.md`."""
    parts = [_HEAD]
    for group in Group:
        rows = [_row(one) for one in ALL if one.group is group]
        parts += [f"## {group}\n", *_table("property | type | default | effect | meaning", rows)]
    own = [f"`{one.jdbc}` | `{one.odbc}` | {_of_freetds(one)}" for one in TWINS]
    others = [f"{why} | {_codes(names.split())}" for why, names in WITHOUT_TWIN.items()]
    parts += [_JDBC, *_table("JDBC | Microsoft's ODBC driver | FreeTDS", own)]
    parts += ["The others have no effect; a notice gives the reason:\n", *_table("reason | JDBC", others)]
    return "\n".join(parts)


def _of_freetds(one: Twin) -> str:
    return _code(one.freetds) or ("refused" if one.guards else "none")


def _table(head: str, rows: Iterable[str]) -> list[str]:
    rule = "---|" * (head.count("|") + 1)
    return [f"| {head} |\n|{rule}", *(f"| {row} |" for row in rows), ""]


def _row(one: Property) -> str:
    meaning = one.text.replace("|", "\\|")
    for text, values in (
        ("Older name:", one.older),
        ("Refused:", one.refused),
        ("Without meaning here:", one.inert),
        ("No records are rendered with", one.unrendered),
        ("Cannot be set together with", (one.excludes,) if one.excludes else ()),
        ("Debezium's default:", (_text(one.debezium),) if one.debezium is not None else ()),
    ):
        meaning += f" {text} {_codes(values)}." if values else ""
    meaning += f" ({', '.join(one.features.split())})" if one.features else ""
    default = "required" if one.default is ... else _code(default_text(one))
    return f"`{one.name}` | {_type(one)} | {default} | {_EFFECTS[one.effect]} | {meaning}"


def _type(one: Property) -> str:
    if one.choices:
        return ("any of " if one.kind == "choices" else "") + _codes(one.choices)
    if one.ge is None:
        return one.kind
    return f"{one.kind} {one.ge}…{one.le}" if one.le is not None else f"{one.kind} ≥ {one.ge}"


def default_text(one: Property) -> str:
    """A default as written in a configuration."""
    return _text(one.default)


def _text(value: Any) -> str:
    match value:
        case None | PatternList() | RecordKeys():
            return ""
        case bool():
            return str(value).lower()
        case tuple() | frozenset():
            return ",".join(sorted(str(one) for one in cast("tuple[object, ...]", value)))
        case _:
            return str(value)


def _codes(names: Iterable[str]) -> str:
    return ", ".join(_code(name) for name in names)


def _code(text: str | None) -> str:
    return f"`{text}`" if text else ""


if __name__ == "__main__":
    sys.stdout.write(configuration_document())
