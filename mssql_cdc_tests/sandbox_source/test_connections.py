"""Both kinds of connection work, and their errors say what the caller can do."""

from __future__ import annotations

import socket
from dataclasses import replace

import pyarrow as pa
import pytest

from mssql_cdc.errors import ConfigurationError, SourceError, SourceUnavailableError
from mssql_cdc.source.sqlserver.bulk import open_bulk
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc_tests.sandbox_source.kit import Shop, without_login

FIELDS = [pa.field("n", pa.int32())]


@pytest.mark.parametrize("by_rows", [False, True])
def test_a_bulk_connection_reads_in_one_transaction(shop: Shop, by_rows: bool) -> None:  # noqa: FBT001
    with open_bulk(shop.connection, shop.catalog, by_rows=by_rows) as bulk:
        bulk.execute("SELECT TOP (0) * FROM dbo.first_table", doing="testing")
        (batch,) = bulk.read("SELECT @@TRANCOUNT AS n", FIELDS, doing="testing")

    assert batch.to_pylist() == [{"n": 1}]


@pytest.mark.parametrize("by_rows", [False, True])
def test_parameters_reach_a_bulk_statement(shop: Shop, by_rows: bool) -> None:  # noqa: FBT001
    with open_bulk(shop.connection, shop.catalog, by_rows=by_rows) as bulk:
        (batch,) = bulk.read("SELECT CAST(? AS int) + 1 AS n", FIELDS, ["41"], doing="testing")

    assert batch.to_pylist() == [{"n": 42}]


@pytest.mark.parametrize("by_rows", [False, True])
def test_a_server_error_names_the_failed_operation(shop: Shop, by_rows: bool) -> None:  # noqa: FBT001
    with (
        open_bulk(shop.connection, shop.catalog, by_rows=by_rows) as bulk,
        pytest.raises(SourceError, match=r"no_such_table.*208.*while testing"),
    ):
        list(bulk.read("SELECT 1 AS n FROM dbo.no_such_table", FIELDS, doing="testing"))


@pytest.mark.parametrize("by_rows", [False, True])
def test_a_wrong_password_is_a_configuration_error(shop: Shop, by_rows: bool) -> None:  # noqa: FBT001
    with (
        pytest.raises(ConfigurationError, match=r"database\.password"),
        open_bulk(without_login(shop.connection), shop.catalog, by_rows=by_rows),
    ):
        pass


def test_a_missing_database_is_a_configuration_error(shop: Shop) -> None:
    with pytest.raises(ConfigurationError, match=r"database\.names"), control(shop.connection, "no_such_db"):
        pass


@pytest.mark.parametrize("by_rows", [False, True])
def test_connecting_to_a_server_that_does_not_answer_is_retried(shop: Shop, by_rows: bool) -> None:  # noqa: FBT001
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = replace(shop.connection, port=free.getsockname()[1], login_timeout_s=1)
    with pytest.raises(SourceUnavailableError), open_bulk(nobody, shop.catalog, by_rows=by_rows):
        pass
