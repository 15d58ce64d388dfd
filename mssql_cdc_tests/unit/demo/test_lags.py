"""What the demo says of its lags: the figures of given samples, of the worst current table in each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from mssql_cdc.capture.lag import Lag
from mssql_cdc.demo.evidence import TABLES
from mssql_cdc.demo.lags import LagFigures, LagReader, LagSamples, write
from mssql_cdc.errors import StorageError
from mssql_cdc.schema import TableId


class Given:
    """A reader that returns these lags in turn, then fails."""

    def __init__(self, *found: Mapping[TableId, Lag]) -> None:
        self.left = list(found)

    def read(self) -> Mapping[TableId, Lag]:
        return self.left.pop(0)


def samples(*found: Mapping[TableId, Lag]) -> LagSamples:
    return LagSamples(cast("LagReader", Given(*found)))


def test_a_sample_is_the_worst_current_table_that_the_demo_shows():
    signals = TableId("shop", "dbo", "debezium_signal")
    taking = samples({TABLES[0]: Lag(9, 2), TABLES[1]: Lag(1, 4), TABLES[7]: Lag(50, None), signals: Lag(70, 70)})
    taking.counting.set()
    taking.take()
    assert taking.found == [4]


def test_samples_count_from_streaming_on_and_only_where_a_lag_is_known():
    taking = samples({TABLES[0]: Lag(90, 90)}, {TABLES[0]: Lag()}, {}, {TABLES[0]: Lag(0, 1.5)})
    taking.take()
    taking.counting.set()
    for _ in range(3):
        taking.take()
    assert taking.found == [1.5]


@pytest.mark.parametrize(
    ("found", "figures"),
    [
        ([4.0], (1, 4, 4, 4, 1)),
        ([3.0, 1.0, 5.0, 2.0], (4, 2.5, 5, 5, 3)),
        ([float(number) for number in range(100, 0, -1)], (100, 50.5, 95, 100, 1)),
    ],
)
def test_median_95_percent_and_worst_of_samples(found: list[float], figures: tuple[float, ...]):
    summed = LagFigures.of(found)
    assert summed is not None
    assert (summed.samples, summed.median, summed.percentile, summed.worst, summed.worst_sample) == figures


def test_the_figures_are_written_with_their_targets(tmp_path: Path):
    assert LagFigures.of([]) is None
    figures = LagFigures.of([1.0, 2.0, 16.0], cpu=0.3)
    assert figures is not None
    assert (
        "3 samples: median 2.0 s, 95 % 16.0 s, worst 16.0 s in sample 3 (a sample took 100 ms of CPU)" in figures.text
    )
    write(figures, tmp_path / "figures.json")
    found: list[dict[str, Any]] = json.loads((tmp_path / "figures.json").read_text())
    said = {one["name"]: (one["value"], one["bound"], one["target"], one["holds"]) for one in found if one["target"]}
    assert said == {
        "lag of current tables, median": (2.0, "at most", 3.0, True),
        "lag of current tables, 95 %": (16.0, "at most", 6.0, False),
        "lag of current tables, worst": (16.0, "at most", 15.0, False),
    }


def test_a_sample_that_cannot_be_read_is_counted():
    class Broken:
        def read(self) -> Mapping[TableId, Lag]:
            raise StorageError("the log is gone")

    taking = LagSamples(cast("LagReader", Broken()))
    taking.take()
    assert taking.missed == 0, "streaming has not begun"
    taking.counting.set()
    taking.take()
    taking.found.append(1.0)
    figures = taking.stop()
    assert figures is not None
    assert "1 samples (1 more could not be read)" in figures.text


def test_an_error_of_the_thread_is_not_lost():
    taking = samples()
    taking.start()
    with pytest.raises(IndexError):
        taking.stop()
