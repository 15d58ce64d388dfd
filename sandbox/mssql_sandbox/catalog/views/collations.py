"""`sys.fn_helpcollations`: the collations of the server, and what their names mean in words [doc]."""

from __future__ import annotations

from collections.abc import Iterator

from mssql_sandbox.catalog.columns import columns
from mssql_sandbox.catalog.definitions import Scope, SystemTableFunction
from mssql_sandbox.engine.collation import Collation, collation_named
from mssql_sandbox.engine.collation_families import FAMILIES, collation_names

_UTF8_SINCE = (15,)
_UTF8_CODE_PAGE = 65001
_RULES = ("_BIN", "_CI_", "_CS_")
"""Where a family's name ends."""


def describe(collation: Collation) -> str:
    """A collation in the server's words."""
    if collation.sql_order:
        designator = next(name for name, (lcid, _) in FAMILIES.items() if lcid == collation.lcid)
    else:
        end = min(place for place in map(collation.name.find, _RULES) if place > 0)
        designator = collation.name[:end]
    words = [designator.replace("_", "-"), *_comparison(collation)]
    text = ", ".join(words)
    if not collation.sql_order:
        return text
    order, page = collation.sort_id, collation.code_page
    return f"{text} for Unicode Data, SQL Server Sort Order {order} on Code Page {page} for non-Unicode Data"


def _comparison(collation: Collation) -> Iterator[str]:
    if collation.binary:
        yield "binary code point comparison sort" if collation.binary2 else "binary sort"
    else:
        yield f"case-{_sensitive(collation.case_sensitive)}"
        yield f"accent-{_sensitive(collation.accent_sensitive)}"
        yield f"kanatype-{_sensitive(collation.kana_sensitive)}"
        yield f"width-{_sensitive(collation.width_sensitive)}"
        if collation.supplementary:
            yield "supplementary characters"
        if collation.version >= 140:
            yield f"variation selector {_sensitive('_VSS' in collation.name)}"
    if collation.code_page == _UTF8_CODE_PAGE:
        yield "UTF8"


def _sensitive(given: bool) -> str:  # noqa: FBT001 - a word for a property
    return "sensitive" if given else "insensitive"


def _collations(scope: Scope) -> Iterator[list[tuple]]:
    has_utf8 = scope.server.version.is_azure or scope.server.version.numbers >= _UTF8_SINCE
    names = (name for name in collation_names() if has_utf8 or not name.endswith("_UTF8"))
    yield [(name, describe(collation_named(name))) for name in names]


TABLE_FUNCTIONS = (
    SystemTableFunction("fn_helpcollations", columns("name sysname, description nvarchar(1000)"), (), _collations),
)
