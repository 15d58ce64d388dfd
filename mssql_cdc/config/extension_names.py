"""Extensions in a configuration: the groups of entry points, which names are installed, and what an extension gets.

`mssql_cdc/extensions.py` loads them; their contracts are next to the code that calls them. No part of an extension is
imported while a configuration is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from mssql_cdc.config.report import Report
from mssql_cdc.config.secret import Secret, reveal
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.extensions import find_entry_point


class ExtensionGroup(StrEnum):
    """The groups of entry points: of records, and of snapshots, signals and notifications."""

    CONVERTERS = "mssql_cdc.converters"
    POST_PROCESSORS = "mssql_cdc.post_processors"
    TOPIC_NAMING_STRATEGIES = "mssql_cdc.topic_naming_strategies"
    TRANSACTION_METADATA_FACTORIES = "mssql_cdc.transaction_metadata_factories"
    OUTPUTS = "mssql_cdc.outputs"
    SIGNAL_CHANNELS = "mssql_cdc.signal_channels"
    SIGNAL_ACTIONS = "mssql_cdc.signal_actions"
    NOTIFICATION_CHANNELS = "mssql_cdc.notification_channels"
    SNAPSHOTTERS = "mssql_cdc.snapshotters"
    SNAPSHOT_QUERIES = "mssql_cdc.snapshot_queries"
    SNAPSHOT_LOCKS = "mssql_cdc.snapshot_locks"

    @property
    def any_case(self) -> bool:
        """Whether names are case-insensitive, as in Debezium (SPI-04)."""
        return self is ExtensionGroup.SNAPSHOTTERS


class ExtensionProperties(Mapping[str, str]):
    """The connector's configuration as extensions get it: a reference or a secret is resolved when it is read."""

    __slots__ = ("_given",)

    def __init__(self, given: Sequence[tuple[str, str | Secret]]) -> None:
        self._given = dict(given)

    def __getitem__(self, name: str) -> str:
        """The text (raises MissingSecretError)."""
        return reveal(self._given[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def __repr__(self) -> str:
        return f"ExtensionProperties({', '.join(sorted(self._given))})"


def require_installed(group: ExtensionGroup, name: str, *, setting: str, report: Report) -> None:
    """Report a name that no installed distribution provides.

    Args:
        group: The group of entry points.
        name: The name in it.
        setting: The property that names it.
        report: Receives the problem.
    """
    try:
        find_entry_point(group, name, setting=setting, any_case=group.any_case)
    except ConfigurationError as error:
        report.complain(setting, str(error).removeprefix(f"{setting}: "))
