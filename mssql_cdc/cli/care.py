"""Commands that look after a lake: `acknowledge` and `maintain`."""

from __future__ import annotations

import argparse

from mssql_cdc.cli.shared import Commands, connector_command, opened, progress
from mssql_cdc.errors import ConfigurationError


def acknowledge_parser(commands: Commands) -> None:
    """Arguments of `acknowledge`."""
    parser = connector_command(
        commands,
        "acknowledge",
        _acknowledge,
        "Acknowledge changes that were lost at the source, so that their tables' checks may be green again. "
        "Without --table those of all tables; all gaps are in the table _gaps of each database.",
        "mssql-cdc acknowledge --config shop.json --warehouse lake --table dbo.orders",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--table", action="append", default=[], metavar="NAME", help="schema.table or db.schema.table; may be repeated"
    )
    what.add_argument(
        "--restored",
        action="store_true",
        help="go on with a source that was restored or failed over: a new epoch, in which every table is read again",
    )


def _acknowledge(options: argparse.Namespace) -> int:
    from mssql_cdc.run.loss import acknowledge_named, go_on_after_restore, is_restored

    with opened(options) as databases:
        if options.restored:
            restored = [database for database in databases if is_restored(database)]
            for database in restored or databases:
                go_on_after_restore(database, by="mssql-cdc acknowledge --restored")
            progress("mssql-cdc run, or the sensor, now reads every table again")
            return 0
        done = [gap for one in databases for gap in acknowledge_named(one, options.table, by="mssql-cdc acknowledge")]
    for gap in done:
        progress(gap.text)
    if options.table and not done:
        raise ConfigurationError(f"No gap of {', '.join(options.table)} is open; see the table _gaps")
    progress(f"{len(done)} gaps acknowledged")
    return 0


def maintain_parser(commands: Commands) -> None:
    """Arguments of `maintain`."""
    parser = connector_command(
        commands,
        "maintain",
        _maintain,
        "Join small files and remove those that no version needs any more; may run while capture runs.",
        "mssql-cdc maintain --config shop.json --warehouse lake",
    )
    parser.add_argument(
        "--retain-hours",
        type=int,
        default=168,
        metavar="N",
        help="keep what versions of the last N hours need (default: %(default)s)",
    )


def _maintain(options: argparse.Namespace) -> int:
    from mssql_cdc.run.maintain import maintain

    with opened(options) as databases:
        for database in databases:
            for done in maintain(database, retain_hours=options.retain_hours):
                progress(done.text)
    return 0
