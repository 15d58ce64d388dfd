"""The commands `take-over`, `offsets` and `schema-history`: from a Debezium connector to this one, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mssql_cdc.cli.options import config_option, debug_option, epilog, load, opened, warehouse_option
from mssql_cdc.cli.output import Output
from mssql_cdc.errors import ConfigurationError, StorageError

if TYPE_CHECKING:
    from mssql_cdc.capture.take_over import TakeOver


@click.command("take-over", epilog=epilog("mssql-cdc take-over --config connectors/shop.json --offsets offsets.json"))
@config_option
@warehouse_option
@click.option(
    "--offsets",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="The connector's source offsets: Kafka Connect's JSON, or an engine's offsets.dat.",
)
@click.option(
    "--schema-history",
    "history",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="The connector's schema history (history topic's values or file): show where its structures differ.",
)
@debug_option
@click.pass_obj
def take_over(output: Output, *, config: Path, warehouse: str | None, offsets: Path, history: Path | None) -> None:
    """Continue where a Debezium connector stopped.

    Every table streams from the offset of the stopped connector on; no snapshot is taken, but an incremental one that
    the connector had not finished is requested again. Nothing is written unless every database can be taken over; one
    that an earlier call has taken over at the same offset is left as it is. Afterwards, `run` captures, and
    `records --offsets` writes the records after the offset. Until a snapshot is taken, current tables have only rows
    that change from then on.
    """
    from mssql_cdc.capture.take_over import prepare
    from mssql_cdc.records.history_file import read_history
    from mssql_cdc.records.offset_files import read_offsets
    from mssql_cdc.run.start import look

    with opened(output, config, warehouse) as databases:
        connector = databases[0].connector
        found = read_offsets(offsets, connector, log=output.line)
        known = read_history(history, connector, found) if history is not None else None
        prepared: list[TakeOver] = []
        for database in databases:
            offset = found.get(database.catalog)
            if offset is None or offset.commit is None or offset.begins_again:
                raise ConfigurationError(
                    f"{offsets} has no position of {database.catalog} after a completed snapshot. Let the other "
                    "connector finish it, or begin with a snapshot: mssql-cdc run"
                )
            look(database)
            prepared.append(prepare(database, offset))
        for one in prepared:
            if one.is_done:
                output.line(f"{one.database.catalog} was taken over there by an earlier call")
            for table in one.carry_out():
                output.line(f"{table} streams from {one.commit.text} on")
            versions = one.database.history().versions.values()
            for line in known.differences([own[-1] for own in versions]) if known is not None else ():
                output.line(line)


@click.command(epilog=epilog("mssql-cdc offsets --config connectors/shop.json --output records.jsonl"))
@config_option
@warehouse_option
@click.option("--output", "target", required=True, metavar="FILE", help="The output of records, as in `records`.")
@debug_option
@click.pass_obj
def offsets(output: Output, *, config: Path, warehouse: str | None, target: str) -> None:
    """Print where the records of an output end.

    Prints source offsets in the form of Kafka Connect's REST API, so that a Debezium connector can resume there. Exits
    with 2 if there is no such output, or it has no records. Exits with 3 or 4 if the lake has tables that were left
    behind, whose changes such a connector would never get.
    """
    from mssql_cdc.records import open_output
    from mssql_cdc.records.left_behind import left_behind
    from mssql_cdc.records.source_offsets import offsets_text
    from mssql_cdc.run.databases import warehouse_path

    connector = load(output, config)
    with open_output(target, connector, create=False) as found:
        kept = found.kept
    states = kept.databases if kept is not None else {}
    prefix = kept.topic_prefix if kept is not None else connector.topic_prefix
    if prefix != connector.topic_prefix:
        raise StorageError(f"{target} holds records of {prefix}, not of {connector.topic_prefix}. Name another output")
    offsets = {name: state.source_offset() for name, state in states.items()}
    ends = {name: offset for name, offset in offsets.items() if offset is not None}
    if not ends:
        raise StorageError(f"{target} has kept no records. Name the output to which mssql-cdc records has written them")
    output.record(offsets_text(connector.topic_prefix, ends))
    ended = {name.casefold() for name in ends}
    for name in connector.databases:
        if name.casefold() not in ended:
            output.line(f"{name}: {target} has no records of it, so there is no offset. A connector resumes at its own")
    where = warehouse_path(warehouse)
    errors = [left_behind(connector, name, state, warehouse=where) for name, state in states.items()]
    found_errors = [error for error in errors if error is not None]
    if found_errors:
        raise max(found_errors, key=lambda error: error.exit_code)


@click.command("schema-history", epilog=epilog("mssql-cdc schema-history --config connectors/shop.json"))
@config_option
@warehouse_option
@debug_option
@click.pass_obj
def schema_history(output: Output, *, config: Path, warehouse: str | None) -> None:
    """Print the schema history as Debezium keeps it.

    Prints one JSON document per change, for FileSchemaHistory, or to send to the history topic in this order.
    """
    from mssql_cdc.records.history import schema_history as history_of
    from mssql_cdc.run.databases import real_names, require_lake, warehouse_path

    where = warehouse_path(warehouse)
    connector = real_names(load(output, config), warehouse=where)
    require_lake(connector, warehouse=where)
    for record in history_of(connector, warehouse=where):
        output.record(json.dumps(record, ensure_ascii=False))
