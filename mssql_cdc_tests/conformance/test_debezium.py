"""The JVM of the oracle leaves nothing behind in the process that started it."""

from __future__ import annotations

import gc
import logging
from pathlib import Path

import pytest

from mssql_cdc_tests.conformance.debezium import DebeziumMachine

pytestmark = pytest.mark.slow


def test_java_object_that_outlives_its_jvm_is_collected_in_silence(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    with DebeziumMachine(tmp_path) as machine:
        outlived = machine.java.java.util.ArrayList()
    with caplog.at_level(logging.WARNING):
        del outlived
        gc.collect()
    assert caplog.messages == []
