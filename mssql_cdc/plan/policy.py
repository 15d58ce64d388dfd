"""The behavior of each `snapshot.mode` (SNP-01 to SNP-11)."""

from __future__ import annotations

from dataclasses import dataclass

from mssql_cdc.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class SnapshotPolicy:
    """A `snapshot.mode`: whether it reads rows of new tables, streams, and re-snapshots after a loss."""

    mode: str = "initial"
    data: bool = True
    stream: bool = True
    on_data_error: bool = False


_MODES: dict[str, tuple[bool, bool, bool]] = {
    "always": (True, True, False),
    "initial": (True, True, False),
    "initial_only": (True, False, False),
    "no_data": (False, True, False),
    "schema_only": (False, True, False),
    "recovery": (False, True, False),
    "when_needed": (True, True, True),
    "when_needed_no_data": (False, True, True),
    "never": (False, True, False),
}


def policy_of(mode: str, *, data: bool = False, stream: bool = False, on_data_error: bool = False) -> SnapshotPolicy:
    """Return the policy of a mode (SNP-01 to SNP-11); the flags are those of `configuration_based` (SNP-08).

    Args:
        mode: The value of `snapshot.mode`.
        data: Whether `configuration_based` reads rows.
        stream: Whether `configuration_based` streams.
        on_data_error: Whether `configuration_based` takes a snapshot after a loss.

    Raises:
        ConfigurationError: The mode is unknown.
    """
    if mode == "configuration_based":
        return SnapshotPolicy(mode, data, stream, on_data_error)
    if mode not in _MODES:
        raise ConfigurationError(f"snapshot.mode={mode!r} is unknown; use one of {', '.join(sorted(_MODES))}")
    return SnapshotPolicy(mode, *_MODES[mode])
