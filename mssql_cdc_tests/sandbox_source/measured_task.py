"""Runs a pickled task of `capture/write_task` in a process of its own: prints its rows and the memory that it took."""

from __future__ import annotations

import json
import pickle
import resource
import sys
from pathlib import Path

from mssql_cdc.capture.write_task import WriteTask, Written, write


def main(path: str) -> None:
    """Run the task of this file."""
    task: WriteTask = pickle.loads(Path(path).read_bytes())  # noqa: S301 (the test wrote it)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    written = Written.from_value(write(task))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(  # noqa: T201 (the result)
        json.dumps({"rows": written.rows, "grown_mib": (after - before) / 1024, "mib": after / 1024})
    )


if __name__ == "__main__":
    main(sys.argv[1])
