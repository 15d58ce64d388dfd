"""Commands that inspect: `discover` lists the source's tables, `check` compares source and lake."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mssql_cdc.cli.options import config_option, debug_option, epilog, load, opened, warehouse_option
from mssql_cdc.cli.output import Output

if TYPE_CHECKING:
    from mssql_cdc.check.multiset import Difference
    from mssql_cdc.check.run import TableCheck


@click.command(epilog=epilog("mssql-cdc discover --config connectors/shop.json"))
@config_option
@debug_option
@click.pass_obj
def discover(output: Output, *, config: Path) -> None:
    """List the captured tables for Dagster.

    Queries the source and writes <stem>.tables.json next to the configuration; Dagster's code location loads it.
    """
    from mssql_cdc.run.discover import read_table_list, write_table_list

    path, names = write_table_list(load(output, config), config, warn=output.line)
    tables = [table for found in read_table_list(config).values() for table in found]
    rows = [
        (table.table_id.text, ", ".join(table.key_columns) or "–", str(len(table.columns)), table.instance or "–")
        for table in tables
    ]
    output.table(("table", "key", "columns", "capture instance"), rows, right=("columns",))
    output.line(f"{len(names)} tables written to {path}")


@click.command(
    epilog=epilog(
        "mssql-cdc check --config connectors/shop.json",
        "mssql-cdc check --config connectors/shop.json --warehouse lake",
    )
)
@config_option
@warehouse_option
@debug_option
@click.pass_obj
def check(output: Output, *, config: Path, warehouse: str | None) -> None:
    """Compare source and lake cell by cell.

    Reads both independently of the capture code. The source should be idle: rows that change during the check are
    reported as different.
    """
    from mssql_cdc.check.run import check_databases, raise_differences
    from mssql_cdc.run.execute import refresh_current

    done: list[TableCheck] = []
    with opened(output, config, warehouse) as databases:
        for database in databases:
            for error in refresh_current(database).errors.values():
                raise error
        try:
            with output.progress() as show:
                for found in check_databases(databases, progress=lambda t, n, of: show(f"checking {t}", n, of)):
                    done.append(found)  # noqa: PERF402 - what was done before an error is shown
        finally:
            _show_checks(output, done)
    raise_differences(done)


def _show_checks(output: Output, done: list[TableCheck]) -> None:
    if not done:
        return
    rows = [
        (
            one.table.text,
            "equal" if one.result.equal else "DIFFERS",
            str(one.result.source_rows),
            str(one.result.lake_rows),
            f"{one.result.source_sum:032x}",
            ", ".join(one.left_out),
        )
        for one in done
    ]
    columns = ("table", "result", "source rows", "lake rows", "checksum", "not compared")
    shown = len(columns) if any(one.left_out for one in done) else len(columns) - 1
    output.table(columns[:shown], [row[:shown] for row in rows], right=("source rows", "lake rows"))
    for one in done:
        if one.result.differences:
            output.result(f"\n{one.table}:")
        for difference in one.result.differences:
            output.result(f"  {_text(difference)}")


def _text(difference: Difference) -> str:
    key = ", ".join(str(part) for part in difference.key) or "(no key)"
    where = f" in {', '.join(difference.columns)}" if difference.kind == "differs" else ""
    return f"key {key}: {difference.kind}{where}"
