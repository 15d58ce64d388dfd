"""Rows in temporary files by their key: few files at a time, few writes, and no row in two of them."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as ipc
import pytest

from mssql_cdc.check.partitions import OPEN_FILES, load, partitioned

SCHEMA = pa.schema([("_key", pa.string()), ("n", pa.int64())])
FEW_FILES = """
import resource, sys
from pathlib import Path
from mssql_cdc.check import change_log
from mssql_cdc_tests.unit.check.test_change_log import findings, read

change_log.PART_ROWS = 1
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
rows = {number: f"name{number}" for number in range(200)}
assert findings(Path(sys.argv[1]), [read(key, name) for key, name in rows.items()], rows) == []
"""


def batches(rows: int, together: int) -> list[pa.RecordBatch]:
    """Rows of half as many keys."""
    table = pa.table({"_key": [f"k{number // 2}" for number in range(rows)], "n": list(range(rows))}, schema=SCHEMA)
    return table.to_batches(max_chunksize=together)


@pytest.mark.parametrize("parts", [1, 2, OPEN_FILES, OPEN_FILES + 1, 3 * OPEN_FILES, OPEN_FILES**2 + 5])
def test_every_row_is_in_the_part_of_its_key(parts: int):
    with partitioned([(SCHEMA, batches(600, 50)), (SCHEMA, batches(400, 50))], parts) as files:
        assert len(files) == parts
        found = [[load(file).to_pylist() for file in sides] for sides in files]
        folder = files[0][0].parent
        assert {path for sides in files for path in sides} == set(folder.iterdir()), "nothing is kept twice"
    for side, rows in enumerate((600, 400)):
        assert sorted(row["n"] for part in found for row in part[side]) == list(range(rows))
    places = [(number, row["_key"]) for number, part in enumerate(found) for side in part for row in side]
    assert set(Counter(key for _, key in set(places)).values()) == {1}, "no key is in two parts"
    assert not folder.exists()


def test_rows_of_a_part_are_written_together():
    """A thousand parts made a thousand batches of each one, of eight rows and 611 bytes for a row of 168."""
    with partitioned([(SCHEMA, batches(20_000, 100))], 20) as files:
        for (file,) in files:
            with ipc.open_file(file) as reader:
                assert reader.num_record_batches == 1


def test_a_table_of_many_parts_needs_few_files_at_a_time(tmp_path: Path):
    """Review: a file for each part, so that a table of 255 million rows met the limit of the process."""
    done = subprocess.run(
        [sys.executable, "-c", FEW_FILES, str(tmp_path)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
