"""The command line of the stand-in server: `mssql-sandbox`, `python -m mssql_sandbox`."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mssql_sandbox import __version__
from mssql_sandbox.engine.product import DEFAULT, VERSIONS

if TYPE_CHECKING:
    from mssql_sandbox.server import SandboxServer

_FAILED, _WRONG_USAGE = 1, 2


def argument_parser() -> argparse.ArgumentParser:
    """The command line of `mssql-sandbox`."""
    parser = argparse.ArgumentParser(
        prog="mssql-sandbox",
        description="Run a stand-in SQL Server with change data capture, in memory. Log in as sa.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 (the default) chooses a free port")
    parser.add_argument("--password", help="password of sa (default: a random password)")
    parser.add_argument(
        "--script", action="append", type=Path, default=[], metavar="FILE.sql",
        help="T-SQL script to run before clients may connect; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--capture-interval", type=float, metavar="SECONDS",
        help="pause of the capture job between scans (default: SQL Server's, 5 seconds)",
    )  # fmt: skip
    parser.add_argument(
        "--encrypt", choices=("off", "login", "on"), default="login",
        help="TLS: not at all, for the login, or for everything (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--server-version", choices=tuple(VERSIONS), default=DEFAULT,
        help="SQL Server version to emulate (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--ready-file", type=Path, metavar="PATH",
        help="JSON file to write when clients may connect: host, port, user, password, pid",
    )  # fmt: skip
    parser.add_argument(
        "--allow-remote", action="store_true",
        help="allow an address that other machines can reach; needs --password",
    )  # fmt: skip
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM, and return the exit status."""
    return serve(argument_parser().parse_args(argv))


def serve(options: argparse.Namespace) -> int:
    """Serve with the parsed options; the status is 2 if they or a script are wrong."""
    # Imported here, so that --help and the options do not load a server.
    from mssql_sandbox.scripts import ScriptError  # noqa: PLC0415
    from mssql_sandbox.server import SandboxServer, reachable_by_others  # noqa: PLC0415

    if reachable_by_others(options.host) and not (options.allow_remote and options.password):
        sys.stderr.write(
            f"{options.host} can be reached by other machines: "
            "use a loopback address, or --allow-remote with --password\n"
        )
        return _WRONG_USAGE
    # Rows are millions of tuples without reference cycles; the default of one collection per 700 objects finds nothing.
    gc.set_threshold(50_000, 20, 20)
    server = SandboxServer(
        host=options.host,
        port=options.port,
        password=options.password,
        encrypt=options.encrypt,
        capture_interval=options.capture_interval,
        scripts=options.script,
        allow_remote=options.allow_remote,
        version=options.server_version,
    )
    try:
        asyncio.run(_serve(server, options.ready_file))
    except ScriptError as error:
        sys.stderr.write(f"{error}\n")
        return _WRONG_USAGE
    except OSError as error:
        sys.stderr.write(f"{options.host}:{options.port}: {error}\n")
        return _FAILED
    return 0


async def _serve(server: SandboxServer, ready_file: Path | None) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    await server.start()
    try:
        if ready_file is None:
            sys.stdout.write(
                f"listening on {server.host}:{server.port}, user {server.user}, password {server.password}\n"
            )
        else:
            write_ready_file(server, ready_file)
            sys.stdout.write(f"listening on {server.host}:{server.port}, see {ready_file}\n")
        sys.stdout.flush()
        await stopped.wait()
    finally:
        await server.stop()


def write_ready_file(server: SandboxServer, path: Path) -> None:
    """Write how to connect. The file appears at once and complete, and only its owner may read it."""
    facts = {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
        "pid": os.getpid(),
    }
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.touch(mode=0o600)
    unfinished.write_text(json.dumps(facts), encoding="utf-8")
    unfinished.replace(path)
