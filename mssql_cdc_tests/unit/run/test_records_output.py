"""The thread that writes records outlives whatever an attempt meets."""

from __future__ import annotations

from pathlib import Path
from queue import Queue
from time import sleep

import pytest

from mssql_cdc.capture.database import Database
from mssql_cdc.records.file_output import open_file
from mssql_cdc.run.records_output import RecordsOutput, Written
from mssql_cdc_tests.lake_kit import Change
from mssql_cdc_tests.spark.model_source import ModelSource
from mssql_cdc_tests.unit.records.kit import DATABASE, Lake, table

PATIENCE = 60.0


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake", {"delta.records.output": str(tmp_path / "records.jsonl")})
    lake.append(lake.add(table("orders")), Change(1, "c", after={"id": 1, "name": "x"}))
    lake.cut(1)
    return lake


def output_of(lake: Lake, told: Queue[Written], failures: list[Exception]) -> RecordsOutput:
    def tell(written: Written) -> None:
        told.put(written)
        if failures:
            raise failures.pop()

    database = Database.of(lake.connector, DATABASE, spark=lambda: pytest.fail("no Spark"), source=ModelSource())
    return RecordsOutput(database, warehouse=None, tell=tell)


def test_the_thread_of_records_continues_after_offsets_that_cannot_be_read(lake: Lake):
    """The age of what the output lacks was asked for outside the attempt: its error ended the thread."""
    told: Queue[Written] = Queue()
    output = output_of(lake, told, [])
    hidden = [(one, one.with_suffix(".hidden")) for one in Path(lake.layout.root, "_offsets").glob("*.parquet")]
    for shown, aside in hidden:
        shown.rename(aside)
    output.wake()
    assert told.get(timeout=PATIENCE).error is not None
    for shown, aside in hidden:
        aside.rename(shown)
    output.wake()
    written = told.get(timeout=PATIENCE)
    assert written.error is None
    assert written.count > 0
    output.close(PATIENCE)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_thread_of_records_is_replaced_when_it_has_died(lake: Lake):
    told: Queue[Written] = Queue()
    output = output_of(lake, told, [RuntimeError("nobody listens")])
    output.wake()
    assert told.get(timeout=PATIENCE).error is None
    thread = output._thread
    assert thread is not None
    thread.join(PATIENCE)
    output.wake()
    assert told.get(timeout=PATIENCE).error is None
    output.close(PATIENCE)


def test_the_records_of_a_cut_that_came_while_another_run_wrote_follow_without_another_cut(lake: Lake, tmp_path: Path):
    """The source goes quiet: nothing wakes the thread again."""
    told: Queue[Written] = Queue()
    output = output_of(lake, told, [])
    with open_file(str(tmp_path / "records.jsonl")):
        output.wake()
        sleep(0.5)  # It is refused meanwhile.
    assert told.get(timeout=PATIENCE).count > 0
    output.close(PATIENCE)
