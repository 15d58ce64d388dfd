"""The end of a command's process."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROCESS = """
import atexit, threading
import sys
from mssql_cdc.cli.program import entry

def work():
    while True:
        pass

def main():
    atexit.register(lambda: print("cleaned", flush=True))
    threading.Thread(target=work, daemon=True).start()
    print("said", end="")
    return {code}

class Unwound:
    def __del__(self):
        print("unwound", flush=True)

kept = Unwound()
sys.modules["mssql_cdc.cli.program"].main = main
entry()
"""


@pytest.mark.parametrize("code", [0, 5, 143])
def test_a_process_ends_with_the_code_of_its_command_and_unwinds_no_thread_of_it(code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROCESS.format(code=code)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "saidcleaned\n", "")


def test_a_stream_that_its_reader_has_closed_is_no_error_of_the_end() -> None:
    code = "import os, sys; from mssql_cdc.cli.process import leave; print('x'); os.close(1); leave(4)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (4, "")
