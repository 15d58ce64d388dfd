"""Commands that move data: `run` from the source into the lake, `records` from the lake into a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mssql_cdc.cli.options import config_option, debug_option, epilog, load, opened, warehouse_option
from mssql_cdc.cli.output import Output

if TYPE_CHECKING:
    from mssql_cdc.capture.snapshot.progress import Progress


@click.command(
    epilog=epilog(
        "mssql-cdc run --config connectors/shop.json --until-caught-up",
        "mssql-cdc run --config connectors/shop.json --warehouse lake --seconds 3600",
    )
)
@config_option
@warehouse_option
@click.option(
    "--until-caught-up",
    is_flag=True,
    help="Exit once change logs and current tables contain everything that is in the source now.",
)
@click.option("--seconds", type=float, metavar="N", help="Exit after N seconds.  [default: never]")
@click.option("--timeout", type=float, default=600.0, metavar="SECONDS", help="Time limit of --until-caught-up.")
@debug_option
@click.pass_obj
def run(
    output: Output,
    *,
    config: Path,
    warehouse: str | None,
    until_caught_up: bool,
    seconds: float | None,
    timeout: float,
) -> None:
    """Capture changes into the lake.

    Takes a snapshot if one is due, then reads ranges of changes. Resumes where the last call ended.
    """
    if until_caught_up and seconds is not None:
        raise click.UsageError("--until-caught-up and --seconds cannot be combined")
    from mssql_cdc.run.loop import catch_up, run_for

    with (
        opened(output, config, warehouse, lasting=not until_caught_up, ahead=True) as databases,
        output.progress() as show,
    ):

        def tell(progress: Progress) -> None:
            total = progress.total
            show(f"snapshot: {total.rows:,} rows", total.chunks_done, total.chunks)

        if until_caught_up:
            catch_up(databases, timeout=timeout, progress=tell)
            output.line("caught up")
        else:
            run_for(databases, seconds=seconds, progress=tell)


@click.command(
    epilog=epilog(
        "mssql-cdc records --config connectors/shop.json --output records.jsonl",
        "mssql-cdc records --config connectors/shop.json --output delta:lake/records",
        "mssql-cdc records --config connectors/shop.json --output - --table dbo.orders --from 2026-11-22T08:00:00Z",
    )
)
@config_option
@warehouse_option
@click.option(
    "--output",
    "target",
    required=True,
    metavar="FILE",
    help="File of JSON lines, or delta:PATH; a later call goes on where it ends. - is standard output.",
)
@click.option("--from", "start", metavar="LSN|TIME", help="Begin with this commit, or with the first one at this time.")
@click.option("--to", "end", metavar="LSN|TIME", help="End after this commit, or before this time.")
@click.option("--table", "tables", multiple=True, metavar="NAME", help="Only this table (dbo.orders); repeatable.")
@click.option("--key", metavar="JSON", help="Only records with this key, as records show it.")
@debug_option
@click.pass_obj
def records(
    output: Output,
    *,
    config: Path,
    warehouse: str | None,
    target: str,
    start: str | None,
    end: str | None,
    tables: tuple[str, ...],
    key: str | None,
) -> None:
    """Write the records that Debezium would send.

    From the lake alone, without querying the source, up to the last complete cut.
    """
    from mssql_cdc.records import Selection, open_output, write_records
    from mssql_cdc.run.databases import warehouse_path

    connector = load(output, config)
    connector.require_rendered()  # Before a file is created for nothing.
    selection = Selection(start, end, tuple(sorted(tables)), key)
    with open_output(target, connector) as opened_output:
        where = warehouse_path(warehouse)
        count = write_records(connector, output=opened_output, warehouse=where, selection=selection)
    output.line(f"{count} records")
