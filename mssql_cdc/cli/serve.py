"""`mssql-cdc sandbox`."""

from __future__ import annotations

from mssql_cdc.cli.shared import Commands, command
from mssql_cdc.sandbox.command import add_options, serve


def sandbox_parser(commands: Commands) -> None:
    """Arguments of `sandbox`."""
    parser = command(
        commands,
        "sandbox",
        serve,
        "Serve a stand-in SQL Server with CDC, in memory, until it is stopped.",
        "mssql-cdc sandbox --port 14330 --script demo.sql --ready-file /tmp/ready",
    )
    add_options(parser)
