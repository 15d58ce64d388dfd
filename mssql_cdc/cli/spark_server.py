"""The command `spark-server`: one warm Spark for all runs on a machine."""

from __future__ import annotations

from pathlib import Path

import click

from mssql_cdc.cli.options import debug_option, epilog
from mssql_cdc.cli.output import Output

_PORT = 15_002


@click.command(
    name="spark-server",
    epilog=epilog("mssql-cdc spark-server", "mssql-cdc spark-server --config connectors/shop.json --port 15003"),
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Take Spark's options (spark.* except spark.remote) from this connector.  [default: Spark's own]",
)
@click.option("--host", default="localhost", metavar="ADDRESS", help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=_PORT, metavar="N", help="The port; 0: a free one.")
@debug_option
@click.pass_obj
def spark_server(output: Output, *, config: Path | None, host: str, port: int) -> None:
    """Start a warm Spark for all runs.

    Runs a Spark Connect server, to which runs attach instead of starting their own Spark.

    Set spark.remote of the connectors to the URL that it shows. SPARK_CONNECT_AUTHENTICATE_TOKEN must hold the same
    secret for the server and for the runs. Ctrl+C stops the server.
    """
    from mssql_cdc.config import load_connector
    from mssql_cdc.spark.server import spark_server as served
    from mssql_cdc.spark.session import SparkSettings

    confs: dict[str, str] = {}
    if config is not None:
        connector = load_connector(config)  # Its notices concern the runs.
        output.redact, confs = connector.redact, connector.spark.read()
    settings = SparkSettings.from_environment(confs=confs, short_lived=False)
    output.line("starting Spark")
    with served(settings, host=host, port=port, quiet=not output.debug) as server:
        output.line(f'ready: set "spark.remote": "{server.url}"')
        server.wait()
