"""The command `records`: from the lake into an output, once or (`--follow`) as the connector captures."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mssql_cdc.cli.options import config_option, debug_option, epilog, load, warehouse_option
from mssql_cdc.cli.output import Output
from mssql_cdc.cli.process import leave
from mssql_cdc.errors import MssqlCdcError

if TYPE_CHECKING:
    from mssql_cdc.config import Connector
    from mssql_cdc.records import Selection
    from mssql_cdc.serve.end_signal import EndSignal
    from mssql_cdc.serve.events import Events

STANDARD_OUTPUT = "-"
CONTROL = "MSSQL_CDC_CONTROL"
INTERRUPTED = 128 + signal.SIGINT


@click.command(
    epilog=epilog(
        "mssql-cdc records --config connectors/shop.json --output records.jsonl",
        "mssql-cdc records --config connectors/shop.json --output delta:lake/records",
        "mssql-cdc records --config connectors/shop.json --output - --table dbo.orders --from 2026-11-22T08:00:00Z",
        "mssql-cdc records --config connectors/shop.json --follow --state-dir state --offsets offsets.json",
    )
)
@config_option
@warehouse_option
@click.option(
    "--output",
    "target",
    metavar="FILE",
    help="File of JSON lines, delta:PATH, or NAME:REST of an entry point in mssql_cdc.outputs; a later call continues "
    "where it ends. - is standard output, the default with --follow.",
)
@click.option("--from", "start", metavar="LSN|TIME", help="Begin with this commit, or with the first one at this time.")
@click.option("--to", "end", metavar="LSN|TIME", help="End after this commit, or before this time.")
@click.option("--table", "tables", multiple=True, metavar="NAME", help="Only this table (dbo.orders); repeatable.")
@click.option("--key", metavar="JSON", help="Only records with this key, as records show it.")
@click.option("--follow", is_flag=True, help="Also capture, and write records as they arrive; events are JSON lines.")
@click.option(
    "--offsets",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Begin after these source offsets of a connector (Kafka Connect's JSON, or an engine's offsets.dat), unless "
    "the output already has records.",
)
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="With --follow: keep the lake here, without current tables.",
)
@click.option("--task-id", metavar="N", help="With --follow: the task that the headers name.")
@debug_option
@click.pass_obj
def records(
    output: Output,
    *,
    config: Path,
    warehouse: str | None,
    target: str | None,
    start: str | None,
    end: str | None,
    tables: tuple[str, ...],
    key: str | None,
    follow: bool,
    offsets: Path | None,
    state_dir: Path | None,
    task_id: str | None,
) -> int:
    """Write the records that Debezium would send.

    Reads the lake alone, up to the last complete cut; only the post-processor ReselectColumns queries the source. With
    --follow, capture runs at the same time, and records lag about a second behind the source.
    """
    from mssql_cdc.records import Selection

    selection = Selection(start, end, tuple(sorted(tables)), key)
    if follow:
        if selection != Selection():
            raise click.UsageError("--follow writes every record; it takes no --from, --to, --table or --key")
        if state_dir is not None and warehouse is not None:
            raise click.UsageError("--state-dir and --warehouse both name the lake's folder; use one of them")
        from mssql_cdc.serve.events import Events, logged

        events = Events(sys.stderr, traces=output.debug)
        with logged(events):
            code = _followed(
                events,
                config,
                target or STANDARD_OUTPUT,
                warehouse=warehouse,
                offsets=offsets,
                state_dir=state_dir,
                task=task_id,
            )
            leave(code)
    for name, value in {"--state-dir": state_dir, "--task-id": task_id}.items():
        if value is not None:
            raise click.UsageError(f"{name} requires --follow")
    if target is None:
        raise click.UsageError("Missing option '--output'.")
    if offsets is not None and start is not None:
        raise click.UsageError("--offsets and --from both say where to begin; use one of them")
    _write(output, config, target, selection, warehouse=warehouse, offsets=offsets)
    return 0


def _write(
    output: Output, config: Path, target: str, selection: Selection, *, warehouse: str | None, offsets: Path | None
) -> None:
    from mssql_cdc.records import open_output, write_records
    from mssql_cdc.records.offset_files import read_offsets
    from mssql_cdc.run.databases import real_names, require_lake, warehouse_path

    keep_freed_memory()
    where = warehouse_path(warehouse)
    connector = real_names(load(output, config), warehouse=where)
    connector.require_rendered()  # Before a file is created for nothing.
    require_lake(connector, warehouse=where)
    begins = read_offsets(offsets, connector, log=output.line) if offsets is not None else None
    with open_output(target, connector) as opened_output:
        count = write_records(connector, output=opened_output, warehouse=where, selection=selection, offsets=begins)
    output.line(f"{count} records")


def keep_freed_memory() -> None:
    """Let Arrow allocate from malloc, which keeps freed memory; Arrow's own pool returns it at once.

    Rendering allocates the same tens of megabytes again and again: the kernel's share of 240,000 records was 0.3 to
    1.9 s with Arrow's pool, and 0.3 s in every round with this one (docs/benchmarks.md).
    """
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())


def _followed(
    events: Events,
    config: Path,
    target: str,
    *,
    warehouse: str | None,
    offsets: Path | None,
    state_dir: Path | None,
    task: str | None,
) -> int:
    """Follow, and return the exit code; every error is an event."""
    from mssql_cdc.serve.conditions import ENDED, ENDED_BY_FORCE
    from mssql_cdc.serve.end_signal import END_SECONDS, EndSignal

    def tell_force() -> None:
        events.log(f"The process did not end within {END_SECONDS} s of SIGTERM: it is ended", code=ENDED_BY_FORCE)

    end = EndSignal(signal.getsignal(signal.SIGINT), forced=tell_force)
    code = _outcome(
        events,
        end,
        lambda: _follow(config, target, events, warehouse=warehouse, offsets=offsets, state_dir=state_dir, task=task),
    )
    if end.noted:
        events.log(f"The process ends {end.seconds:.1f} s after SIGTERM", code=ENDED)
    return code


def _outcome(events: Events, end: EndSignal, follow: Callable[[], None]) -> int:
    from mssql_cdc.serve.serve import exit_code_of

    try:
        follow()
    except KeyboardInterrupt:
        return 0 if end.noted else INTERRUPTED
    except MssqlCdcError as error:
        if end.noted or end.interrupted:  # An ODBC call that a signal interrupts raises the driver's error.
            return 0 if end.noted else INTERRUPTED
        events.error(error)
        return exit_code_of(error)
    except BrokenPipeError:
        events.log("The reader of the records has gone")
        return _gone()
    except Exception as error:  # noqa: BLE001 - the last resort, as for every command
        events.error(error)
        return 1
    return 0


def _follow(
    config: Path,
    target: str,
    events: Events,
    *,
    warehouse: str | None,
    offsets: Path | None,
    state_dir: Path | None,
    task: str | None,
) -> None:
    from mssql_cdc.config import load_connector
    from mssql_cdc.records import open_output
    from mssql_cdc.records.offset_files import read_offsets
    from mssql_cdc.run.databases import open_databases, warehouse_path
    from mssql_cdc.serve.committed import CommittedOffsets
    from mssql_cdc.serve.conditions import PROPERTY_NOTICE
    from mssql_cdc.serve.control import Control
    from mssql_cdc.serve.serve import serve

    connector = load_connector(config, used=partial(_as_connect_json, task=task))
    events.redact = connector.redact
    for notice in connector.notices:
        events.log(notice, code=PROPERTY_NOTICE)
    connector.require_rendered()
    if state_dir is not None:
        state_dir.mkdir(parents=True, exist_ok=True)
        warehouse = str(state_dir / "lake")
    place = warehouse_path(warehouse)
    with (
        open_databases(connector, warehouse=place, log=events.log, quiet=True, lasting=True) as databases,
        ExitStack() as stack,
    ):
        connector = databases[0].connector  # With the names as the server spells them.
        committed = CommittedOffsets(state_dir, connector) if state_dir is not None else None
        if offsets is not None:
            begins = read_offsets(offsets, connector, log=events.log)
        else:
            begins = committed.read() if committed is not None else {}
        control = None
        if os.environ.get(CONTROL) == "stdin":
            control = Control(sys.stdin, connector, events, committed=committed)
            stack.callback(control.close)
        output = stack.enter_context(open_output(target, connector))
        serve(
            connector,
            databases,
            output,
            events=events,
            offsets=begins,
            control=control,
            warehouse=place,
            merge=state_dir is None,
        )


def _as_connect_json(connector: Connector, task: str | None) -> Connector:
    """Return the connector with schemas in its records: their reader has only the records.

    Unless a property of the converter says otherwise, NULL stays null, as in the records of Kafka Connect's sources.
    """
    own = connector.records
    settings = replace(
        own,
        key_schemas=True,
        value_schemas=True,
        key_nulls=own.key_nulls if own.key_form.connect else False,
        header_schemas=True,
        value_nulls=own.value_nulls if own.value_form.connect else False,
        header_nulls=False if own.header_nulls is None else own.header_nulls,
        task_id=task or own.task_id,
    )
    return replace(connector, records=settings)


def _gone() -> int:
    """Make sure that nothing is flushed into the closed pipe when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
