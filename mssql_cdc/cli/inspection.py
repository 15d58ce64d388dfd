"""Commands that inspect: `discover` lists the source's tables, `check` compares source and lake."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mssql_cdc.cli.options import config_option, debug_option, epilog, load, opened, warehouse_option
from mssql_cdc.cli.output import Output
from mssql_cdc.errors import MssqlCdcError

if TYPE_CHECKING:
    from mssql_cdc.check.multiset import Difference
    from mssql_cdc.check.result import NotLookedAt, TableCheck
    from mssql_cdc.run.collected import Collected

SHOWN = 50
"""How many differences and table names are shown; `--json` has them all."""


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
        "mssql-cdc check --config connectors/shop.json --json",
        "mssql-cdc check --config connectors/shop.json --repair",
    )
)
@config_option
@warehouse_option
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON, with every difference.")
@click.option("--repair", is_flag=True, help="Re-read the rows that differ, then check their tables again.")
@debug_option
@click.pass_obj
def check(output: Output, *, config: Path, warehouse: str | None, as_json: bool, repair: bool) -> None:
    """Prove that source and lake match.

    Compares every cell of every captured table, and every change log, independently of the capture code. The source may
    change meanwhile: rows that seem to differ are read again once capture has passed a mark in its log.
    """
    from mssql_cdc.check.check_tables import check_databases
    from mssql_cdc.check.refresh import Refreshed, refresh
    from mssql_cdc.check.result import TableCheck
    from mssql_cdc.run.collected import Collected
    from mssql_cdc.run.start import look

    done: list[TableCheck] = []
    others: list[NotLookedAt] = []
    refreshed: dict[str, Refreshed] = {}
    collected = Collected()
    with opened(output, config, warehouse) as databases:
        for database in databases:
            with collected.of(database.catalog):
                look(database)
                refreshed[database.catalog] = refresh(database)
        try:
            with output.progress() as show:
                for database in databases:
                    if database.catalog not in refreshed:
                        continue
                    with collected.of(database.catalog):
                        for found in check_databases([database], refreshed, progress=show, repair=repair):
                            if isinstance(found, TableCheck):
                                done.append(found)
                            else:
                                others.append(found)
        finally:
            _show(output, done, others, as_json=as_json)
    _raise_findings(collected, done, others)


def _raise_findings(collected: Collected, done: list[TableCheck], others: list[NotLookedAt]) -> None:
    """Raise what was found in the tables, or the worst of that and of the errors of databases that were not checked."""
    from mssql_cdc.check.result import raise_findings

    if not collected.errors:
        raise_findings(done, others)
        return
    try:
        raise_findings(done, others)
    except MssqlCdcError as error:
        collected.errors["the tables that were checked"] = error
    collected.raise_worst()


def _show(output: Output, done: list[TableCheck], others: list[NotLookedAt], *, as_json: bool) -> None:
    if as_json:
        output.json(_facts(done, others), indent=2)
        return
    if done:
        _show_table(output, done)
    for one in done:
        _show_findings(output, one)
    for other in others:
        for what, tables in (("not captured", other.not_captured), ("excluded by the filters", other.excluded)):
            if tables:
                output.result(f"{what}: {_listed([table.text for table in tables])}")
        for note in other.notes:
            output.result(note)


def _show_table(output: Output, done: list[TableCheck]) -> None:
    rows = [
        (
            one.table.text,
            "DIFFERS" if one.differs else one.status,
            "–" if one.source_rows is None else str(one.source_rows),
            "–" if one.lake_rows is None else str(one.lake_rows),
            one.checksum,
            ", ".join(one.left_out),
        )
        for one in done
    ]
    columns = ("table", "result", "source rows", "lake rows", "checksum", "not compared")
    shown = len(columns) if any(one.left_out for one in done) else len(columns) - 1
    output.table(columns[:shown], [row[:shown] for row in rows], right=("source rows", "lake rows"))


def _show_findings(output: Output, one: TableCheck) -> None:
    lines = [*one.notes, *([str(one.error)] if one.error else []), *one.log]
    lines += [_text(difference) for difference in one.differences[:SHOWN]]
    if len(one.differences) > SHOWN:
        lines.append(f"and {len(one.differences) - SHOWN} more")
    if lines:
        output.result(f"\n{one.table}:")
    for line in lines:
        output.result(f"  {line}")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _text(difference: Difference) -> str:
    key = ", ".join(str(part) for part in difference.key) or "(no key)"
    where = f" in {', '.join(difference.columns)}" if difference.kind == "differs" else ""
    return f"key {key}: {difference.kind}{where}"


def _facts(done: list[TableCheck], others: list[NotLookedAt]) -> dict[str, object]:
    return {
        "tables": [
            {
                "table": one.table.text,
                "result": "differs" if one.differs else one.status,
                "status": one.status,
                "source_rows": one.source_rows,
                "lake_rows": one.lake_rows,
                "checksum": one.checksum,
                "fetched_rows": one.fetched,
                "repaired_rows": one.repaired,
                "not_compared": list(one.left_out),
                "notes": list(one.notes),
                "change_log": list(one.log),
                "differences": [_text(difference) for difference in one.differences],
                "error": str(one.error) if one.error else None,
            }
            for one in done
        ],
        "not_captured": [table.text for other in others for table in other.not_captured],
        "left_out_by_filters": [table.text for other in others for table in other.excluded],
        "notes": [note for other in others for note in other.notes],
    }
