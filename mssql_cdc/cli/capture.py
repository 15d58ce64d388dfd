"""The command `run`, which moves data from the source into the lake."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mssql_cdc.cli.options import config_option, debug_option, epilog, opened, warehouse_option
from mssql_cdc.cli.output import Output

if TYPE_CHECKING:
    from mssql_cdc.capture.snapshot.progress import Progress

PATIENCE_SECONDS = 600.0


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
@click.option(
    "--timeout",
    type=float,
    metavar="SECONDS",
    help="Stop --until-caught-up after this long without progress.  [default: 600]",
)
@debug_option
@click.pass_obj
def run(
    output: Output,
    *,
    config: Path,
    warehouse: str | None,
    until_caught_up: bool,
    seconds: float | None,
    timeout: float | None,
) -> None:
    """Capture changes into the lake.

    Takes a snapshot if one is due, and reads ranges of changes. Without --until-caught-up, tables that are not in the
    snapshot do not wait for it. Resumes where the last call ended.
    """
    if until_caught_up and seconds is not None:
        raise click.UsageError("--until-caught-up and --seconds cannot be combined")
    if timeout is not None and not until_caught_up:
        raise click.UsageError("--timeout requires --until-caught-up; --seconds ends a run after a time")
    from mssql_cdc.run.loop import catch_up, run_for

    with (
        opened(output, config, warehouse, lasting=not until_caught_up, ahead=True) as databases,
        output.progress() as show,
    ):

        def tell(progress: Progress) -> None:
            total = progress.total
            show(f"snapshot: {progress.text}", total.chunks_done, total.chunks)

        if until_caught_up:
            catch_up(databases, timeout=PATIENCE_SECONDS if timeout is None else timeout, progress=tell)
            output.line("caught up")
        else:
            run_for(databases, seconds=seconds, progress=tell, beside=True)
