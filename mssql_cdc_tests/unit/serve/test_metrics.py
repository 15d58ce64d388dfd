"""Metrics under the names of Debezium's attributes; `end_to_end/test_follow_metrics.py` has what they count."""

from __future__ import annotations

import pytest

from mssql_cdc.serve.metrics import Metrics
from mssql_cdc.serve.sent import Sent
from mssql_cdc_tests.unit.config.samples import connector_with


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("1048576", 1_048_576),
        (" 1048576 ", 1_048_576),
        ("${env:QUEUE_BYTES}", 1_048_576),
        ("${env:NO_SUCH_VARIABLE}", 0),
        ("", 0),
        (" ", 0),
        (None, 0),
    ],
)
def test_a_property_without_a_meaning_here_is_only_shown(
    monkeypatch: pytest.MonkeyPatch, given: str | None, shown: int
):
    monkeypatch.setenv("QUEUE_BYTES", "1048576")
    monkeypatch.delenv("NO_SUCH_VARIABLE", raising=False)
    metrics = Metrics(connector_with({} if given is None else {"max.queue.size.in.bytes": given}), Sent)
    for found in (metrics.streaming(connected=True), metrics.snapshot()):
        assert (found["MaxQueueSizeInBytes"], found["CurrentQueueSizeInBytes"]) == (shown, 0)
