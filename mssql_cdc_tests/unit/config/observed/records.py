"""The records of a small lake, and what becomes of a change that cannot be converted."""

from __future__ import annotations

import io
import re
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

from mssql_cdc.config import Connector, connector_from_mapping, reveal
from mssql_cdc.errors import ConfigurationError, ConversionError
from mssql_cdc.lsn import cut_text
from mssql_cdc.records import JsonLinesStream, write_records
from mssql_cdc.records.extending import Extensions
from mssql_cdc.records.failures import Failures
from mssql_cdc_tests.lake_kit import Change, lsn
from mssql_cdc_tests.unit.config.observed.things import THINGS
from mssql_cdc_tests.unit.records.kit import Lake


def rendered(connector: Connector) -> Any:
    """The records of a lake with an insert, an update that changes nothing and a delete."""
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(Path(folder))
        schema = lake.add(THINGS)
        row = {"id": 1, "first-name": "Ada", "price": 1, "at": datetime(2026, 1, 1), "raw": b"1"}  # noqa: DTZ001
        moved = row | {"price": 2, "note": "n"}
        lake.append(
            schema,
            Change(5, "c", after=row),
            Change(6, "u", before=row, after=row),
            Change(7, "u", before=row, after=moved, changed=["price", "note"]),
            Change(7, "d", before=moved, sequence=2),
        )
        lake.cut(7)
        lake.cut(8, minutes=5)
        output = io.BytesIO()
        write_records(in_folder(connector, folder), output=JsonLinesStream(output))
    return re.sub(r'"(ts_ms|ts_us|ts_ns)": ?\d+', "", output.getvalue().decode())


def in_folder(connector: Connector, folder: str) -> Connector:
    """The same connector with another warehouse."""
    given = {name: reveal(value) for name, value in connector.properties}
    return connector_from_mapping(connector.name, {**given, "delta.warehouse": folder})


def refusal(connector: Connector) -> Any:
    """Why no records are rendered."""
    try:
        connector.require_rendered()
    except ConfigurationError as error:
        return str(error)
    return None


def reselect(connector: Connector) -> Any:
    """The post-processor that reads columns again."""
    return Extensions.of(connector).reselect


def unconverted(connector: Connector) -> Any:
    """Whether a change that cannot be converted stops the records."""
    try:
        Failures(connector.records.failure_handling).handle(THINGS.table_id, cut_text(0, lsn(1)), ValueError("no date"))
    except ConversionError:
        return "stopped"
    return "left out"
