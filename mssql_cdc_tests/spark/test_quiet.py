"""Output of processes while Spark starts is hidden unless the start fails."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mssql_cdc.spark.quiet import hidden_output

NOISE = [sys.executable, "-c", "import sys; print('loading'); print('resolving', file=sys.stderr)"]


def test_output_of_a_starting_process_is_hidden_and_our_own_is_not(capfd: pytest.CaptureFixture[str]):
    with hidden_output() as sink:
        subprocess.run(NOISE, check=True, stdout=sink, stderr=sink)
        sys.stderr.write("our own line\n")
    shown = capfd.readouterr()
    assert shown.out == ""
    assert shown.err == "our own line\n"


def test_a_failed_start_shows_the_entire_output(capfd: pytest.CaptureFixture[str]):
    failing = [*NOISE[:2], f"{NOISE[2]}; sys.exit(3)"]
    with pytest.raises(subprocess.CalledProcessError), hidden_output() as sink:
        subprocess.run(failing, check=True, stdout=sink, stderr=sink)
    shown = capfd.readouterr().err
    assert "loading" in shown
    assert "resolving" in shown
