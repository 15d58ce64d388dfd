"""User-defined actions: signal types besides the built-in ones, by the names of their entry points (SPI-07).

A signal with such a type is recorded like any other (`signals.py`, status `requested`); then the action is called, and
a second row of `_signals` holds what it returned. Without that row the action is called again: at least once, and not
twice unless a run dies in between.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import (
    DONE,
    IGNORED,
    REQUESTED,
    SignalRow,
    bookmarks_of,
    identity,
    signal_row,
)
from mssql_cdc.config.extension_names import ExtensionGroup, ExtensionProperties
from mssql_cdc.config.signals import SIGNAL_TYPES
from mssql_cdc.extensions import installed_names, load_extension
from mssql_cdc.follow.signal_contract import SignalPayload
from mssql_cdc.lake.small_tables import retry_overtaken, small_table

_ANSWER = "answer to "


def is_action(signal_type: str) -> bool:
    """Whether an installed user-defined action has this name.

    Args:
        signal_type: The type of a signal.
    """
    return signal_type not in SIGNAL_TYPES and signal_type in installed_names(ExtensionGroup.SIGNAL_ACTIONS)


def run_actions(database: Database) -> list[str]:
    """Call the actions of the signals that have no answer yet, and record the answers; return a line about each.

    Args:
        database: The database.
    """
    table = small_table(database.layout, "signals", database.storage)
    rows = database.tables.get(table.uri, table.rows, database.storage)
    answered = {row["position"] for row in rows if row["status"] != REQUESTED}
    lines: list[str] = []
    for row in rows:
        answer = f"{_ANSWER}{identity(row)}"
        if row["status"] != REQUESTED or row["type"] in SIGNAL_TYPES or answer in answered:
            continue
        status, result = _call(database, row)
        _record(database, row, answer, status, result)
        lines.append(f"signal {row['id']} ({row['type']}): {result}")
    return lines


def _call(database: Database, row: Mapping[str, Any]) -> tuple[str, str]:
    try:
        action = load_extension(
            ExtensionGroup.SIGNAL_ACTIONS,
            row["type"],
            setting=f"the signal {row['id']}",
            methods=("arrived",),
            arguments={"properties": ExtensionProperties(database.connector.properties)},
        )
        payload = SignalPayload(
            id=row["id"],
            type=row["type"],
            data=_data(row["data"]),
            channel=row["channel"],
            position=row["position"],
            catalog=database.catalog,
        )
        done = action.arrived(payload)
    except Exception as error:  # noqa: BLE001 - what an action raises is never fatal (SIG-09)
        return IGNORED, f"the action failed: {type(error).__name__}: {error}"
    return (DONE, "the action is done") if done else (IGNORED, "the action has refused it")


def _data(text: str | None) -> Mapping[str, Any]:
    found: object = json.loads(text) if text and text.strip() else {}
    if not isinstance(found, dict):
        raise TypeError(f"data is a JSON {type(found).__name__}, expected an object")
    return cast("dict[str, Any]", found)


@retry_overtaken
def _record(database: Database, row: Mapping[str, Any], answer: str, status: str, result: str) -> None:
    store = small_table(database.layout, "signals", database.storage)
    state = store.state()
    signal = SignalRow(row["id"], row["type"], None)
    found = signal_row(
        signal,
        channel=row["channel"],
        position=answer,
        status=status,
        result=database.connector.redact(result),
        at=datetime.now(UTC),
    )
    store.append(state, [found], {"kind": "signals", "taken": bookmarks_of(state), "run_id": database.run_id})
