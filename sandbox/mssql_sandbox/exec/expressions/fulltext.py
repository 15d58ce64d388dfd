"""What a full-text index says of rows: which columns of a table are searched, and the hits in a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mssql_sandbox.engine.fulltext.conditions import Condition, contains, free_text
from mssql_sandbox.engine.fulltext.words import text_of, words
from mssql_sandbox.engine.storage.documents import text_index
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import SqlError, error

Hits = Callable[[Sequence[object], Condition], int]
READERS: dict[str, Callable[..., Condition]] = {"CONTAINS": contains, "FREETEXT": free_text}


def searched(table: Table, names: Sequence[str]) -> tuple[Hits, bool]:
    """The counter of hits in rows of a table, and whether accents matter; no names mean all indexed columns.

    Raises:
        SqlError: 7601 for a table or a column without a full-text index.
    """
    index = text_index(table)
    if index is None or not index.enabled:
        raise error(7601, name=table.name)
    wanted = {name.casefold() for name in names}
    chosen = [each for each in index.columns if not wanted or each[0].casefold() in wanted]
    missing = wanted - {name.casefold() for name, _, _ in chosen}
    if missing:
        name = next(name for name in names if name.casefold() in missing)
        text = f"Cannot use a CONTAINS or FREETEXT predicate on column '{name}' because it is not full-text indexed."
        raise SqlError(7601, text)
    places = []
    for name, type_column, _ in chosen:
        place, kind = table.ordinal(name), table.ordinal(type_column) if type_column else None
        assert place is not None
        places.append((place, table.columns[place].type, kind))
    accents = index.catalog.accents

    def hits(row: Sequence[object], condition: Condition) -> int:
        found = 0
        for place, type_, kind in places:
            extension = "" if kind is None else str(row[kind] or "")
            found += condition(words(text_of(row[place], type_, extension), accents=accents))
        return found

    return hits, accents
