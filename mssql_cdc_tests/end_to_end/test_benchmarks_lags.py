"""The lag of a stream as benchmarks compute it: from a transaction's commit to the delivery that contained it."""

from __future__ import annotations

import pytest

from mssql_cdc_tests.benchmarks.stream_lag import Delivery, Span, lags

DELIVERIES = [Delivery(11.0, 10.2), Delivery(11.5, 10.2), Delivery(14.0, 13.9)]


def test_each_transaction_counts_from_its_commit_to_the_first_delivery_after_it():
    assert lags([10.0, 10.2, 13.0], DELIVERIES, [Span(0, 20)]) == pytest.approx([0.8, 1.0, 1.0])


def test_a_transaction_that_a_delivery_shows_with_fewer_digits_is_in_it():
    assert lags([10.2013], DELIVERIES, [Span(0, 20)]) == pytest.approx([0.7987])


def test_only_transactions_of_the_spans_count():
    assert lags([10.0, 10.2, 13.0], DELIVERIES, [Span(9, 10.1), Span(13, 14)]) == pytest.approx([1.0, 1.0])
