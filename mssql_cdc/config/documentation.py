"""`docs/configuration.md`, written from the property table.

`python -m mssql_cdc.config.documentation > docs/configuration.md` renews it; a test compares the two.
"""

from __future__ import annotations

import sys

from mssql_cdc.config.catalogue import GROUPS
from mssql_cdc.config.driver import TWINS
from mssql_cdc.config.property import Property, Status

_HEAD = r"""# Configuration

A connector is one JSON file in Debezium's form, `{"name": …, "config": {…}}` or the properties alone, in the folder
that `MSSQL_CDC_CONNECTORS` names (default `connectors/`). An existing Debezium connector works unchanged.
This file is written from the property table (`python -m mssql_cdc.config.documentation > docs/configuration.md`).

* Every property of Debezium 3.3.1's SQL Server connector is known. An unknown one, a bad value or two properties that
  exclude each other give one error that lists all problems.
* *accepted*: has a meaning only in Kafka or Java; it is taken, and one line says that it has no effect.
  *not yet*: known, not implemented yet; one line says that it has no effect.
  *refused*: known, not implemented yet, and ignoring it would change rows; anything but the default is an error.
* `${env:NAME}` and `${file:path:key}` may stand in any value. In passwords, users, `driver.*`, `odbc.*`, `spark.*`,
  `delta.storage.*` and `delta.key.secret` they travel unresolved and are read where they are used; elsewhere they are
  read when the file is loaded.
* Lists of expressions (*regexes*) are separated by commas (`\,` is a comma inside one), match the whole name and ignore
  case. Tables are `schema.table`; an expression with two dots or more may name `db.schema.table` as well.
* Of the masks, the first rule that matches wins: truncate, asterisks, hash version 1, hash version 2.
"""

_STATUS = {
    Status.IMPLEMENTED: "",
    Status.ACCEPTED: "accepted",
    Status.PLANNED: "not yet",
    Status.REFUSED: "refused",
}


def configuration_document() -> str:
    """The whole text of `docs/configuration.md`."""
    parts = [_HEAD]
    for title, properties in GROUPS.items():
        parts.append(f"## {title}\n")
        parts.append("| property | type | default | status | meaning |\n|---|---|---|---|---|")
        parts.append("\n".join(_row(one) for one in properties) + "\n")
    parts.append("## JDBC settings and their ODBC twins\n")
    parts.append(
        "Set as `driver.<name>` or `database.<name>`. An `odbc.<keyword>` of your own wins over a translated one.\n"
    )
    parts.append("| JDBC | Microsoft's ODBC driver | FreeTDS | note |\n|---|---|---|---|")
    parts.append(
        "\n".join(
            f"| `{twin.jdbc}` | {_code(twin.odbc)} | {_code(twin.freetds)} | {_cell(twin.note)} |" for twin in TWINS
        )
        + "\n"
    )
    return "\n".join(parts)


def _row(prop: Property) -> str:
    default = "required" if prop.required else _code(prop.default or None)
    features = f" ({', '.join(prop.features)})" if prop.features else ""
    older = f" Older name: {', '.join(f'`{one}`' for one in prop.aliases)}." if prop.aliases else ""
    refused = f" Not implemented yet: {', '.join(f'`{one}`' for one in prop.refused)}." if prop.refused else ""
    planned = f" Without effect yet: {', '.join(f'`{one}`' for one in prop.planned)}." if prop.planned else ""
    text = _cell(prop.text) + older + refused + planned + features
    return f"| `{prop.name}` | {_type(prop)} | {default} | {_STATUS[prop.status]} | {text} |"


def _type(prop: Property) -> str:
    if prop.choices:
        usable = ", ".join(f"`{one}`" for one in prop.choices if one not in prop.refused)
        return ("any of " if prop.kind == "choices" else "") + usable
    limits = ""
    if prop.minimum is not None:
        limits = f" {prop.minimum}…{prop.maximum}" if prop.maximum is not None else f" ≥ {prop.minimum}"
    return prop.kind + limits


def _code(text: str | None) -> str:
    return "" if text is None else f"`{text}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(configuration_document())
