"""Commands that maintain a lake (`acknowledge`, `maintain`) and the machine (`prepare`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mssql_cdc.cli.options import config_option, debug_option, epilog, opened, warehouse_option
from mssql_cdc.cli.output import Output
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lake.retention import RETAIN_HOURS

if TYPE_CHECKING:
    from mssql_cdc.capture.database import Database
    from mssql_cdc.run.loss import Acknowledged


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

    The checks of the affected tables can then turn green again. The table _gaps of each database keeps every gap.
    """
    if tables and restored:
        raise click.UsageError("--table and --restored cannot be combined")
    from mssql_cdc.run.databases import require_lake, warehouse_path

    with opened(output, config, warehouse) as databases:
        require_lake(databases[0].connector, warehouse=warehouse_path(warehouse))
        if restored:
            _go_on(output, databases)
        else:
            _acknowledge(output, databases, tables)


def _go_on(output: Output, databases: Sequence[Database]) -> None:
    """Begin a new epoch of each database that was restored; an error in one does not stop the others."""
    from mssql_cdc.run.collected import Collected
    from mssql_cdc.run.loss import go_on_after_restore, is_restored

    collected = Collected()
    found: list[Database] = []
    for database in databases:
        with collected.of(database.catalog):
            if is_restored(database):
                found.append(database)
    if not found and not collected.errors:
        found = [databases[0]]  # It reports that there is no restore to continue after.
    for database in found:
        with collected.of(database.catalog):
            go_on_after_restore(database, by="mssql-cdc acknowledge --restored")
            output.line(f"{database.catalog}: mssql-cdc run, or the sensor, now reads every table again")
    collected.raise_worst()


def _acknowledge(output: Output, databases: Sequence[Database], tables: Sequence[str]) -> None:
    """Acknowledge the gaps of these tables, or of all; an error in one database does not stop the others."""
    from mssql_cdc.run.collected import Collected
    from mssql_cdc.run.loss import acknowledge_named, unknown_names

    collected, unknown = Collected(), dict.fromkeys(tables)
    for database in databases:
        with collected.of(database.catalog):
            missing = unknown_names(database, tables)
            unknown = {name: None for name in unknown if name in missing}
    if unknown:
        collected.raise_worst()  # A database that cannot be queried may have them.
        raise ConfigurationError(
            f"{', '.join(unknown)} matches no table of the lake; nothing was acknowledged. See mssql-cdc status"
        )
    done: list[Acknowledged] = []
    for database in databases:
        if database.catalog not in collected.errors:
            with collected.of(database.catalog):
                done.append(acknowledge_named(database, tables, by="mssql-cdc acknowledge"))
    lines = [line for one in done for line in one.lines]
    for line in lines:
        output.line(line)
    if tables and not lines and not collected.errors:
        raise ConfigurationError(f"No open gap for {', '.join(tables)}; see the table _gaps")
    output.line(f"{sum(len(one.gaps) for one in done)} gaps acknowledged")
    collected.raise_worst()


@click.command(epilog=epilog("mssql-cdc maintain --config connectors/shop.json --retain-hours 168"))
@config_option
@warehouse_option
@click.option(
    "--retain-hours",
    type=int,
    default=RETAIN_HOURS,
    metavar="N",
    help="Keep the files that versions from the last N hours need.",
)
@debug_option
@click.pass_obj
def maintain(output: Output, *, config: Path, warehouse: str | None, retain_hours: int) -> None:
    """Compact small files and remove old ones.

    Runs OPTIMIZE and VACUUM on every table of the connector. Capture may run at the same time.
    """
    from mssql_cdc.run.collected import Collected
    from mssql_cdc.run.databases import require_lake, warehouse_path
    from mssql_cdc.run.maintain import maintain as maintain_database

    collected = Collected()
    with opened(output, config, warehouse) as databases:
        require_lake(databases[0].connector, warehouse=warehouse_path(warehouse))
        for database in databases:
            with collected.of(database.catalog):
                for done in maintain_database(database, retain_hours=retain_hours):
                    output.line(done.text)
    collected.raise_worst()


@click.command(epilog=epilog("mssql-cdc prepare"))
@debug_option
@click.pass_obj
def prepare(output: Output) -> None:
    """Make Spark start in half the time.

    Keeps Delta's jars, and an archive of the classes that a start loads, in the user's cache folder. Run it again after
    an upgrade of Java or of this package.
    """
    from mssql_cdc.spark.prepare import prepare as prepare_spark

    output.line("preparing Spark; the first time takes about a minute")
    output.line(f"ready: {prepare_spark()}")
