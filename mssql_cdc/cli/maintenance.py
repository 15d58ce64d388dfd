"""Commands that maintain a lake, `acknowledge` and `maintain`, and the machine: `prepare`."""

from __future__ import annotations

from pathlib import Path

import click

from mssql_cdc.cli.options import config_option, debug_option, epilog, opened, warehouse_option
from mssql_cdc.cli.output import Output
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lake.retention import RETAIN_HOURS


@click.command(
    epilog=epilog(
        "mssql-cdc acknowledge --config connectors/shop.json --table dbo.orders",
        "mssql-cdc acknowledge --config connectors/shop.json --restored",
    )
)
@config_option
@warehouse_option
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME",
    help="schema.table or database.schema.table; may be repeated.  [default: all tables]",
)
@click.option(
    "--restored",
    is_flag=True,
    help="Continue with a source that was restored or failed over: begin a new epoch and read every table again.",
)
@debug_option
@click.pass_obj
def acknowledge(
    output: Output, *, config: Path, warehouse: str | None, tables: tuple[str, ...], restored: bool
) -> None:
    """Acknowledge changes that were lost at the source.

    The checks of their tables can then turn green again. The table _gaps of each database keeps every gap.
    """
    if tables and restored:
        raise click.UsageError("--table and --restored cannot be combined")
    from mssql_cdc.run.loss import acknowledge_named, go_on_after_restore, is_restored, unknown_names

    with opened(output, config, warehouse) as databases:
        if restored:
            for database in [one for one in databases if is_restored(one)] or databases:
                go_on_after_restore(database, by="mssql-cdc acknowledge --restored")
            output.line("mssql-cdc run, or the sensor, now reads every table again")
            return
        unknown = unknown_names(databases, tables)
        if unknown:
            raise ConfigurationError(
                f"{', '.join(unknown)} matches no table of the lake; nothing was acknowledged. See mssql-cdc status"
            )
        done = [gap for one in databases for gap in acknowledge_named(one, tables, by="mssql-cdc acknowledge")]
    for gap in done:
        output.line(gap.text)
    if tables and not done:
        raise ConfigurationError(f"No open gap for {', '.join(tables)}; see the table _gaps")
    output.line(f"{len(done)} gaps acknowledged")


@click.command(epilog=epilog("mssql-cdc maintain --config connectors/shop.json --retain-hours 168"))
@config_option
@warehouse_option
@click.option(
    "--retain-hours",
    type=int,
    default=RETAIN_HOURS,
    metavar="N",
    help="Keep the files that versions of the last N hours need.",
)
@debug_option
@click.pass_obj
def maintain(output: Output, *, config: Path, warehouse: str | None, retain_hours: int) -> None:
    """Compact small files and remove old ones.

    Runs OPTIMIZE and VACUUM on every table of the connector. Capture may run at the same time.
    """
    from mssql_cdc.run.maintain import maintain as maintain_database

    with opened(output, config, warehouse) as databases:
        for database in databases:
            for done in maintain_database(database, retain_hours=retain_hours):
                output.line(done.text)


@click.command(epilog=epilog("mssql-cdc prepare"))
@debug_option
@click.pass_obj
def prepare(output: Output) -> None:
    """Make Spark start in half the time.

    Keeps Delta's jars and an archive of the classes that a start loads in the user's cache folder. Run it again after
    an upgrade of Java or of this package.
    """
    from mssql_cdc.spark.prepare import prepare as prepare_spark

    output.line("preparing Spark; the first time takes about a minute")
    output.line(f"ready: {prepare_spark()}")
