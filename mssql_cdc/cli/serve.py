"""`mssql-cdc sandbox`."""

from __future__ import annotations

import argparse
from pathlib import Path

from mssql_cdc.cli.shared import Commands, command
from mssql_cdc.errors import ConfigurationError


def sandbox_parser(commands: Commands) -> None:
    """Arguments of `sandbox`."""
    parser = command(
        commands,
        "sandbox",
        _sandbox,
        "Serve a stand-in SQL Server with CDC, in memory, until it is stopped.",
        "mssql-cdc sandbox --port 14330 --script demo.sql --ready-file /tmp/ready",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port; 0 = any free one (default: %(default)s)")
    parser.add_argument(
        "--script", type=Path, action="append", default=[], metavar="FILE.sql", help="run at start; may be repeated"
    )
    parser.add_argument(
        "--capture-interval",
        type=float,
        default=None,
        metavar="SECONDS",
        help="pause of the capture job (default: its own, 5 s)",
    )
    parser.add_argument("--encrypt", choices=("off", "login", "on"), default="login", help="TLS (default: %(default)s)")
    parser.add_argument("--password", default=None, help="password of the login sa (default: a random one)")
    parser.add_argument(
        "--ready-file",
        type=Path,
        metavar="PATH",
        help="JSON file written once clients may connect: host, port, user, password",
    )


def _sandbox(options: argparse.Namespace) -> int:
    from mssql_cdc.sandbox.command import main as serve

    for script in options.script:
        if not script.is_file():
            raise ConfigurationError(f"{script}: no such file; --script takes files with T-SQL")
    arguments = ["--host", options.host, "--port", str(options.port), "--encrypt", options.encrypt]
    arguments += [part for script in options.script for part in ("--script", str(script))]
    for name in ("capture_interval", "password", "ready_file"):
        value = getattr(options, name)
        if value is not None:
            arguments += [f"--{name.replace('_', '-')}", str(value)]
    return serve(arguments)
