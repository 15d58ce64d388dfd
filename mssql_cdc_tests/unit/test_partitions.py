"""How many tasks of a job may run at the same time."""

from __future__ import annotations

import pytest

from mssql_cdc.spark.tasks import partitions


@pytest.mark.feature("SNP-29")
@pytest.mark.parametrize(
    ("tasks", "cores", "most", "expected"),
    [(8, 2, None, 8), (8, 1, None, 4), (8, 2, 1, 1), (8, 2, 3, 3), (2, 4, 3, 2), (100, 2, 64, 8)],
)
def test_snapshot_max_threads_bounds_the_partitions(tasks: int, cores: int, most: int | None, expected: int) -> None:
    assert partitions(tasks, cores, most) == expected
