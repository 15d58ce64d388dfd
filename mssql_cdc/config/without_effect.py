"""Properties that do nothing in a configuration because another one is missing: one table, and one notice per start.

If that takes more than a look at one other property, its section reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from mssql_cdc.config.catalogue import find
from mssql_cdc.config.json_forms import CLOUD_EVENTS
from mssql_cdc.config.model import Connector
from mssql_cdc.config.property import GivenProperty
from mssql_cdc.config.report import Report
from mssql_cdc.config.signal_settings import FILE_CHANNEL


@dataclass(frozen=True, slots=True)
class Condition:
    """What some properties require.

    Attributes:
        names: the properties.
        why: completes "has no effect …" if they do nothing.
        is_met: whether they have an effect in a configuration.
    """

    names: tuple[str, ...]
    why: str
    is_met: Callable[[Connector], bool]


def _shows_schemas(connector: Connector) -> bool:
    records = connector.records
    return any(form.schemas for form in (records.key_form, records.value_form, records.header_form))


def _lists_schemas(connector: Connector) -> bool:
    tables = connector.filters.tables
    return bool(tables.schema_include or tables.schema_exclude)


def _lists_tables(connector: Connector) -> bool:
    tables = connector.filters.tables
    return bool(tables.table_include or tables.table_exclude) or _lists_schemas(connector)


_BY_CONFIGURATION = "snapshot.mode.configuration.based"
_ONLY_CAPTURED = "schema.history.internal.store.only.captured"

CONDITIONS = (
    Condition(
        ("heartbeat.action.query", "topic.heartbeat.prefix", "topic.heartbeat.name"),
        "without heartbeat.interval.ms",
        lambda connector: connector.streaming.heartbeat_interval_ms > 0,
    ),
    Condition(
        (
            f"{_BY_CONFIGURATION}.snapshot.data",
            f"{_BY_CONFIGURATION}.start.stream",
            f"{_BY_CONFIGURATION}.snapshot.on.data.error",
            f"{_BY_CONFIGURATION}.snapshot.schema",
            f"{_BY_CONFIGURATION}.snapshot.on.schema.error",
        ),
        "without snapshot.mode=configuration_based",
        lambda connector: connector.snapshot.mode == "configuration_based",
    ),
    Condition(
        ("signal.file",),
        "without file in signal.enabled.channels",
        lambda connector: FILE_CHANNEL in connector.signals.channels,
    ),
    Condition(
        ("signal.poll.interval.ms",),
        "without a channel other than source in signal.enabled.channels",
        lambda connector: bool(connector.signals.polled),
    ),
    Condition(
        ("guardrail.collections.limit.action",),
        "without guardrail.collections.max",
        lambda connector: connector.guardrail.max_tables is not None,
    ),
    Condition(
        ("incremental.snapshot.hours.time.zone",),
        "without incremental.snapshot.hours",
        lambda connector: bool(connector.snapshot.incremental.hours),
    ),
    Condition(
        ("topic.transaction", "transaction.metadata.factory"),
        "without provide.transaction.metadata=true",
        lambda connector: connector.records.transaction_metadata,
    ),
    Condition(
        ("column.propagate.source.type", "datatype.propagate.source.type", "schema.name.adjustment.mode"),
        "in records without schemas (value.converter.schemas.enable)",
        _shows_schemas,
    ),
    Condition(
        tuple(
            f"value.converter.{name}"
            for name in (
                "json.schemas.enable",
                "json.replace.null.with.default",
                "json.decimal.format",
                "extension.attributes.enable",
                "metadata.source",
            )
        ),
        f"without value.converter={CLOUD_EVENTS}",
        lambda connector: connector.records.writes_cloud_events,
    ),
    Condition((f"{_ONLY_CAPTURED}.tables.ddl",), "without a list of tables or schemas", _lists_tables),
    Condition((f"{_ONLY_CAPTURED}.databases.ddl",), "without a list of schemas", _lists_schemas),
    Condition(
        ("database.instance",), "beside database.port", lambda connector: connector.connection.port is None
    ),
)  # fmt: skip


def without_effect(connector: Connector, given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The properties that are set to something other than their default and have no effect, with the reason.

    Args:
        connector: the configuration.
        given: its texts by the properties' names.
    """
    for condition in CONDITIONS:
        for name in condition.names:
            if _is_set(name, given.get(name, "")) and not condition.is_met(connector):
                yield name, condition.why


def _is_set(name: str, text: str) -> bool:
    found = find(name)
    assert found is not None, f"{name} is a property"
    if not text.strip():
        return False
    try:
        return found[0].read(GivenProperty(name, (), text), Report()) != found[0].default
    except ValueError:  # a reference, whose value is not needed
        return True
