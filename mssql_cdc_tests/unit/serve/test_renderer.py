"""The renderer hands whole batches to an output that remembers, and ends between any two of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mssql_cdc.records import Selection, open_output
from mssql_cdc.records.delta_output import DeltaOutput
from mssql_cdc.records.file_output import open_file
from mssql_cdc.records.outputs import Output, OutputBatch, begin
from mssql_cdc.serve.renderer import Renderer
from mssql_cdc_tests.unit.documented_extensions import installed
from mssql_cdc_tests.unit.records.kit import Lake
from mssql_cdc_tests.unit.records.test_output_extensions import kept
from mssql_cdc_tests.unit.records.test_outputs import KINDS, WITH_TRANSACTIONS, begun, go_on, target, written


class Stopping:
    """An output that stops the renderer behind its first records."""

    remembers = True

    def __init__(self, output: Output) -> None:
        self._output = output
        self.kept, self.keep = output.kept, output.keep
        self.renderer: Renderer | None = None

    def write(self, batch: OutputBatch) -> None:
        """Write, then stop."""
        self._output.write(batch)
        if self.renderer is not None and batch.records.num_rows:
            self.renderer.stop()


@pytest.mark.parametrize("stops", [False, True], ids=["whole", "stopped"])
def test_an_output_of_a_user_gets_whole_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, stops: bool):
    installed(tmp_path / "site", monkeypatch)
    begun_lake, schemas = begun(tmp_path)
    go_on(begun_lake, schemas, 2, 5)
    lake = Lake(tmp_path, {**WITH_TRANSACTIONS, "max.queue.size": 5, "max.batch.size": 2})
    path = tmp_path / "records.db"
    counts = [-1]
    while not path.exists() or len(kept(path)) > counts[-1]:
        counts.append(len(kept(path)) if path.exists() else 0)
        with open_output(f"partitioned:{path}", lake.connector) as output:
            _render(lake, output, stops=stops)
    assert (len(counts) > 3) == stops
    assert [value for *_, value in kept(path)] == [one["value"] for one in begun_lake.records()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stops", [False, True], ids=["whole", "stopped"])
def test_a_batch_of_more_records_than_the_queue_holds_is_kept_once(tmp_path: Path, kind: str, *, stops: bool):
    begun_lake, schemas = begun(tmp_path)
    go_on(begun_lake, schemas, 2, 5)
    lake = Lake(tmp_path, {**WITH_TRANSACTIONS, "max.queue.size": 5, "max.batch.size": 2})
    for _ in range(100):
        before = _count(kind, tmp_path)
        if kind == "file":
            with open_file(target(kind, tmp_path), keep_bytes=1) as file:
                _render(lake, file, stops=stops)
        else:
            _render(lake, DeltaOutput(str(tmp_path / "records"), lake.connector, keep_rows=1), stops=stops)
        if _count(kind, tmp_path) == before:
            break
    assert written(kind, tmp_path) == begun_lake.records()


def _render(lake: Lake, output: Output, *, stops: bool) -> None:
    stopping = Stopping(output)
    progress = begin(output, lake.connector.topic_prefix, Selection().of_records)
    renderer = Renderer(lake.connector, stopping, progress, offsets={}, warehouse=None)
    stopping.renderer = renderer if stops else None
    renderer.finish()
    if renderer.error is not None:
        raise renderer.error


def _count(kind: str, folder: Path) -> int:
    """How far the output reaches."""
    path = folder / ("records" if kind == "delta" else "records.jsonl.progress")
    if not path.exists():
        return 0
    if kind == "delta":
        return len(written(kind, folder))
    progress = json.loads(path.read_text(encoding="utf-8"))["progress"]
    return 0 if progress is None else max(one["records"] for one in progress["databases"].values())
