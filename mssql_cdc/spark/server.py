"""A Spark Connect server in this process's JVM: `mssql-cdc spark-server`.

Runs attach to it (`spark/remote.py`), so Spark's start is paid for once. Its JVM and workers end with this process,
whatever ends it.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mssql_cdc.errors import ConfigurationError, SourceUnavailableError
from mssql_cdc.spark.remote import PARALLELISM, TOKEN_VARIABLE, answers, attach
from mssql_cdc.spark.session import SparkSettings, start_session
from mssql_cdc.spark.tasks import run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCALHOST = "localhost"
PORT = 15_002
_PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"
_POLL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class SparkServer:
    """A running server."""

    url: str
    session: SparkSession

    def wait(self) -> None:
        """Wait until the server no longer answers.

        Raises:
            SourceUnavailableError: It no longer answers.
        """
        while answers(self.session):
            time.sleep(_POLL_SECONDS)
        raise SourceUnavailableError("The Spark Connect server has ended; start it again")


@contextmanager
def spark_server(
    settings: SparkSettings, *, host: str = LOCALHOST, port: int = PORT, quiet: bool = False
) -> Generator[SparkServer]:
    """Start a server, let it run its first job, and stop it when the block ends.

    Args:
        settings: How to start Spark; the server that runs attach to (`spark.remote`) is ignored.
        host: The address to listen on.
        port: The port; 0: a free one.
        quiet: Hide the JVM's output, unless it fails to start.

    Raises:
        ConfigurationError: There is no token, the port is in use, or Spark does not start.
    """
    if not os.environ.get(TOKEN_VARIABLE):
        raise ConfigurationError(
            f"{TOKEN_VARIABLE} is not set: without a token, anyone who reaches the port can run code here. Set it for "
            'the server and for the runs, for example to the output of python -c "import secrets; '
            'print(secrets.token_urlsafe(32))"'
        )
    port = _free(host, port)
    local = start_session(replace(settings, remote=None, confs=_confs(settings, host, port)), quiet=quiet)
    try:
        url = f"sc://{LOCALHOST if _is_local(host) else host}:{port}"
        session = attach(url)
        run_tasks(session, [1, 2], _nothing)  # Starts the workers, so that the first run need not wait for them.
        yield SparkServer(url, session)
    finally:
        local.stop()


def _confs(settings: SparkSettings, host: str, port: int) -> Mapping[str, str]:
    own = {
        "spark.plugins": _PLUGIN,
        "spark.connect.grpc.binding.address": "127.0.0.1" if _is_local(host) else host,
        "spark.connect.grpc.binding.port": str(port),
        # The shared session must outlast a quiet weekend: its workers are what makes it worth sharing.
        "spark.connect.session.manager.defaultSessionTimeout": "7d",
    }
    if settings.master.startswith("local"):
        cores = settings.master.partition("[")[2].rstrip("]")
        own[PARALLELISM] = cores if cores.isdigit() else str(os.cpu_count() or 1)
    return {**own, **settings.confs}


def _free(host: str, port: int) -> int:
    try:
        with socket.create_server(("127.0.0.1" if _is_local(host) else host, port)) as found:
            return found.getsockname()[1]
    except OSError as error:
        raise ConfigurationError(f"The server cannot listen at {host}:{port}: {error}") from error


def _is_local(host: str) -> bool:
    return host in {LOCALHOST, "127.0.0.1"}


def _nothing(_task: int) -> Mapping[str, str]:
    return {}
