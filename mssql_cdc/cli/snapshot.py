"""The command `snapshot`: requests a snapshot, which the next run, or the one that follows the database, takes."""

from __future__ import annotations

import uuid
from pathlib import Path

import click

from mssql_cdc.cli.options import config_option, debug_option, epilog, opened, warehouse_option
from mssql_cdc.cli.output import Output
from mssql_cdc.errors import ConfigurationError


@click.command(
    epilog=epilog(
        "mssql-cdc snapshot --config connectors/shop.json --table dbo.orders",
        "mssql-cdc snapshot --config connectors/shop.json --tables dbo.orders,dbo.products",
        "mssql-cdc snapshot --config connectors/shop.json --table dbo.orders --where id=7",
        "mssql-cdc snapshot --config connectors/shop.json --table dbo.orders --incremental",
        "mssql-cdc snapshot --config connectors/shop.json --pause",
    )
)
@config_option
@warehouse_option
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME",
    help="schema.table or database.schema.table, or a regular expression on them; may be repeated.",
)
@click.option("--tables", "listed", metavar="NAMES", help="Several names for --table, separated by commas.")
@click.option("--incremental", is_flag=True, help="Read chunks while the tables keep streaming.")
@click.option("--where", metavar="CONDITION", help="Read only the rows that meet it.")
@click.option("--stop", "control", flag_value="stop", help="Give up snapshots of all tables or of --table/--tables.")
@click.option("--pause", "control", flag_value="pause", help="Pause snapshots at the next chunk.")
@click.option("--resume", "control", flag_value="resume", help="Continue paused snapshots.")
@debug_option
@click.pass_obj
def snapshot(
    output: Output,
    *,
    config: Path,
    warehouse: str | None,
    tables: tuple[str, ...],
    listed: str | None,
    incremental: bool,
    where: str | None,
    control: str | None,
) -> None:
    """Request a snapshot, or pause, resume or stop one.

    `mssql-cdc run`, or a run in Dagster, takes it. Pausing and stopping apply to blocking and incremental snapshots
    that have been requested or have begun. The tables must already be in the lake.
    """
    tables += tuple(name.strip() for name in (listed or "").split(",") if name.strip())
    if control and where:
        raise click.UsageError(f"--{control} cannot be combined with --where")
    if control and (incremental or (tables and control != "stop")):
        raise click.UsageError(f"--{control} cannot be combined with --incremental" + (" or --table" if tables else ""))
    if not control and not tables:
        raise click.UsageError("name at least one --table, or several as --tables a,b")
    from mssql_cdc.capture.requests import ask_for_snapshot, ask_to_control, known_tables

    with opened(output, config, warehouse) as databases:
        named = {one.catalog: {name: known_tables(one, [name]) for name in tables} for one in databases}
        unknown = [name for name in tables if not any(found[name] for found in named.values())]
        if unknown:  # A misspelled one would be noticed only when its rows are missed.
            raise ConfigurationError(
                f"{', '.join(unknown)} matches no table of the lake that the filters let through; nothing was "
                "requested. See mssql-cdc status"
            )
        for database in databases:
            names = list(dict.fromkeys(one for found in named[database.catalog].values() for one in found))
            if control and (names or not tables):
                said = ask_to_control(database, str(uuid.uuid4()), f"{control}-snapshot", names, channel="command")
            elif names:
                kind = "incremental" if incremental else "blocking"
                said = ask_for_snapshot(
                    database, str(uuid.uuid4()), names, channel="command", kind=kind, condition=where
                )
            else:
                continue
            output.line(f"requested: {said}")
