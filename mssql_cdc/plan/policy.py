"""The behavior of each `snapshot.mode` (SNP-01 to SNP-11)."""

from __future__ import annotations

from dataclasses import dataclass

from mssql_cdc.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class SnapshotPolicy:
    """What a `snapshot.mode` does.

    Attributes:
        mode: Its name, for messages.
        data: Reads the rows of new tables.
        stream: Captures changes afterwards.
        on_data_error: Lets tables that lost changes begin as new ones do.
        on_schema_error: Rebuilds a lost schema history.
        schema: Keeps the structure of tables that are not captured.
        at_start: Reads the rows of known tables at every start.
    """

    mode: str = "initial"
    data: bool = True
    stream: bool = True
    on_data_error: bool = False
    on_schema_error: bool = False
    schema: bool = True
    at_start: bool = False


_MODES = (
    SnapshotPolicy("always", at_start=True),
    SnapshotPolicy("initial"),
    SnapshotPolicy("initial_only", stream=False),
    SnapshotPolicy("no_data", data=False),
    SnapshotPolicy("recovery", data=False, on_schema_error=True),
    SnapshotPolicy("when_needed", on_data_error=True),
    SnapshotPolicy("when_needed_no_data", data=False, on_data_error=True),
)


def policy_of(
    mode: str,
    *,
    data: bool = False,
    schema: bool = False,
    stream: bool = False,
    on_schema_error: bool = False,
    on_data_error: bool = False,
) -> SnapshotPolicy:
    """Return the policy of a mode (SNP-01 to SNP-11); the flags are those of `configuration_based` (SNP-08).

    Args:
        mode: The value of `snapshot.mode`.
        data: Whether `configuration_based` reads rows.
        schema: Whether `configuration_based` keeps the structure of tables that are not captured.
        stream: Whether `configuration_based` streams.
        on_schema_error: Whether `configuration_based` rebuilds a lost schema history.
        on_data_error: Whether `configuration_based` takes a snapshot after a loss.

    Raises:
        ConfigurationError: The mode is unknown.
    """
    if mode == "configuration_based":
        return SnapshotPolicy(mode, data, stream, on_data_error, on_schema_error, schema)
    known = {policy.mode: policy for policy in _MODES}
    if mode not in known:
        raise ConfigurationError(f"snapshot.mode={mode!r} is unknown; use one of {', '.join(sorted(known))}")
    return known[mode]
