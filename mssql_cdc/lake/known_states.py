"""The states of change logs as they were seen last: a log without newer commits is not opened again.

Opening a Delta table takes milliseconds, and a connector has hundreds that did not change since its last step.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mssql_cdc.lake.log import TableState, load_state
from mssql_cdc.lake.object_store import Folder
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.lake.table_log import commit_path


@dataclass(frozen=True, slots=True)
class _Known:
    state: TableState
    folder: Folder
    stamp: str


@dataclass(slots=True)
class KnownStates:
    """The newest known state of each change log, as the stream's writer sees it."""

    _known: dict[str, _Known] = field(default_factory=dict[str, _Known])

    def load(self, uri: str, *, owner: str, storage: Storage = LOCAL) -> TableState | None:
        """`load_state`, for a table that has changed since.

        Args:
            uri: The table's folder.
            owner: The table's app id.
            storage: How to reach the folder.

        Raises:
            StorageError: The table cannot be opened, or belongs to another connector.
        """
        known = self._known.get(uri)
        if known is not None and known.state.owner == owner and _is_newest(known):
            return known.state
        self._known.pop(uri, None)
        state = load_state(uri, owner=owner, storage=storage)
        if state is not None:
            self.keep(state)
        return state

    def keep(self, state: TableState) -> None:
        """Remember the state after a commit."""
        known = self._known.get(state.uri)
        folder = known.folder if known is not None else Folder(state.uri, state.storage)
        stamp = folder.stamp(commit_path(state.delta_version))
        if stamp is None:
            self._known.pop(state.uri, None)  # The clean-up of the log has removed the commit.
        else:
            self._known[state.uri] = _Known(state, folder, stamp)


def _is_newest(known: _Known) -> bool:
    """Whether the log still ends with the same commit: a folder may have been replaced, too."""
    version = known.state.delta_version
    if known.state.table.version() != version:
        return False  # A commit that failed has advanced the handle.
    return (
        known.folder.stamp(commit_path(version + 1)) is None and known.folder.stamp(commit_path(version)) == known.stamp
    )
