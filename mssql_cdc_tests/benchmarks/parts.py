"""The parts of `make bench`, in the order in which they run: short ones first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from mssql_cdc_tests.benchmarks.bench import Bench
from mssql_cdc_tests.benchmarks.current import folds, large
from mssql_cdc_tests.benchmarks.demo import demo
from mssql_cdc_tests.benchmarks.follow import follow
from mssql_cdc_tests.benchmarks.incremental import incremental
from mssql_cdc_tests.benchmarks.measure import Figure
from mssql_cdc_tests.benchmarks.memory import memory
from mssql_cdc_tests.benchmarks.records import rendering
from mssql_cdc_tests.benchmarks.snapshots import snapshots
from mssql_cdc_tests.benchmarks.start import start
from mssql_cdc_tests.benchmarks.stream import changes
from mssql_cdc_tests.benchmarks.ticks import ticks
from mssql_cdc_tests.benchmarks.windows import windows

PARTS: Mapping[str, Callable[[Bench], Iterator[Figure]]] = {
    "start": start,
    "ticks": ticks,
    "records": rendering,
    "follow": follow,
    "current": folds,
    "changes": changes,
    "snapshots": snapshots,
    "incremental": incremental,
    "demo": demo,
    "memory": memory,
    "large": large,
    "windows": windows,
}
