"""The schema history of another connector, read from a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mssql_cdc.records.history_file import read_history
from mssql_cdc.records.source_offsets import SourceOffset
from mssql_cdc.schema import TableId
from mssql_cdc_tests.unit.config.samples import connector_with


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_only_a_line_feed_ends_a_record_of_the_history(tmp_path: Path, mark: str, end: str):
    """JSON strings have the other separators of lines as they are: a default with one was no record any more."""
    connector = connector_with({"topic.prefix": "shop", "database.names": "testDB"})
    table = {"columns": [{"name": "c", "defaultValueExpression": f"a{mark}b"}]}
    change = {"type": "CREATE", "id": '"testDB"."dbo"."t"', "table": table}
    record = {"source": {"server": "shop"}, "position": {}, "databaseName": "testDB", "tableChanges": [change]}
    path = tmp_path / "history.dat"
    path.write_text(f"{json.dumps(record, ensure_ascii=False)}{end}", encoding="utf-8", newline="")
    found = read_history(path, connector, {"testDB": SourceOffset.of({"commit_lsn": "00000027:00000090:0004"})})
    assert found.tables == {TableId("testDB", "dbo", "t"): table}
