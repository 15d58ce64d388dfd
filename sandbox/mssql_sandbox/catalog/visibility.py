"""Which objects the catalogue shows to a session: its own, and those on which it has some permission [doc].

The `object_id`, `parent_object_id` or pair of schema and name tells which object a row is about, in views that have
none of them the `user_type_id`; all other rows are shown to every session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from mssql_sandbox.catalog.definitions import SystemView
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.exec.security import sees_everything, sees_object
from mssql_sandbox.exec.session import Session

_IDS = ("parent_object_id", "object_id")
_NAMES = (("TABLE_SCHEMA", "TABLE_NAME"), ("ROUTINE_SCHEMA", "ROUTINE_NAME"), ("VIEW_SCHEMA", "VIEW_NAME"),
          ("DOMAIN_SCHEMA", "DOMAIN_NAME"))  # fmt: skip


def visible(session: Session, database: Database, object_id: int) -> bool:
    """Whether the session sees the object with this id; ids of no object of the database are visible to all."""
    item = database.object_by_id(object_id)
    return item is None or sees_object(session, database, item)


def visible_rows(view: SystemView, session: Session, database: Database, rows: Iterable[tuple]) -> Iterable[tuple]:
    """The rows of a catalogue view that this session may see."""
    if sees_everything(session, database):
        return rows
    places = {column.name: place for place, column in enumerate(view.columns)}
    ids = [places[name] for name in _IDS if name in places]
    if ids:
        return _by_id(rows, ids, session, database)
    for schema, name in _NAMES:
        if schema in places and name in places:
            return _by_name(rows, places[schema], places[name], session, database)
    if "user_type_id" in places:
        return _by_id(rows, [places["user_type_id"]], session, database)
    return rows


def _by_id(rows: Iterable[tuple], places: list[int], session: Session, database: Database) -> Iterator[tuple]:
    """The parent's id comes first; 0 is none."""
    known = _remembered(lambda object_id: visible(session, database, object_id))
    return (row for row in rows if known(next((row[place] for place in places if row[place]), 0)))


def _by_name(rows: Iterable[tuple], schema: int, name: int, session: Session, database: Database) -> Iterator[tuple]:
    def shown(row: tuple) -> bool:
        item = database.find(row[schema] or "", row[name] or "")
        return item is None or sees_object(session, database, item)

    return (row for row in rows if shown(row))


def _remembered(question: Callable[[int], bool]) -> Callable[[int], bool]:
    answers: dict[int, bool] = {}

    def answer(object_id: int) -> bool:
        if object_id not in answers:
            answers[object_id] = question(object_id)
        return answers[object_id]

    return answer
