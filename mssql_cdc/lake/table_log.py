"""The state of a Delta table's log, read without a JVM: live files with their deletion vectors, txns, metadata.

`deltalake` does not expose deletion vectors, hence a reader of our own: first the newest checkpoint, then the commits
after it, and later only what is new. `lake/table_commit.py` writes commits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.live_file import Identity, LiveFile, identity_of
from mssql_cdc.lake.object_store import Folder
from mssql_cdc.lake.properties import is_on
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.lake.table_restores import restored_after, restored_before

LOG = "_delta_log"
VECTORS = "delta.enableDeletionVectors"
CLUSTERING = "delta.clustering"
"""The metadata domain that lists the clustering columns of a table."""
_FEW, _MANY = 4, 64
_TOGETHER = 16
_COMMIT = re.compile(rf"{LOG}/(\d{{20}})\.json")
_CHECKPOINT = re.compile(rf"{LOG}/(\d{{20}})\.checkpoint(?:\.(\d{{10}})\.(\d{{10}}))?\.parquet")
_NEWER_CHECKPOINT = re.compile(rf"{LOG}/(\d{{20}})\.checkpoint\.[0-9a-f-]{{36}}\.(?:json|parquet)")
_READER_FEATURES = {"deletionVectors", "timestampNtz", "columnMapping", "typeWidening", "vacuumProtocolCheck"}
_WRITER_FEATURES = _READER_FEATURES | {
    # Harmless unless a property, a column or a domain makes use of them.
    "allowColumnDefaults",
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "clustering",
    "domainMetadata",
    "generatedColumns",
    "identityColumns",
    "inCommitTimestamp",
    "invariants",
    "rowTracking",
}
_MAPS = {"configuration", "options", "partitionValues", "tags"}
_PROPERTIES = {
    "delta.appendOnly": "is append-only",
    "delta.enableChangeDataFeed": "has a change data feed",
    "delta.enableRowTracking": "has row tracking",
    "delta.enableInCommitTimestamps": "has in-commit timestamps",
}
_COLUMN_FACTS = {
    "delta.invariants": "an invariant",
    "delta.generationExpression": "a generation expression",
    "delta.identity.start": "identity values",
    "CURRENT_DEFAULT": "a default",
}


@dataclass(frozen=True, slots=True)
class TableLog:
    """One version of a Delta table.

    `committed` is the time of the newest commit; None if it is known only from a checkpoint. `restored` is the version
    of a user's RESTORE after which we have not replaced the rows yet. `unreadable` says why the log cannot be read
    without Spark; `files` is empty then.
    """

    uri: str
    version: int
    protocol: Mapping[str, Any]
    metadata: Mapping[str, Any]
    files: Mapping[Identity, LiveFile] = field(repr=False)
    txns: Mapping[str, int] = field(repr=False)
    domains: Mapping[str, str] = field(repr=False)
    committed: datetime | None = None
    restored: int | None = None
    unreadable: str | None = None
    storage: Storage = LOCAL
    folder: Folder | None = field(default=None, repr=False, compare=False)

    def opened(self) -> Folder:
        """The table's folder, which is opened once for all versions."""
        return self.folder or Folder(self.uri, self.storage)

    @property
    def table_id(self) -> str:
        """The table's id."""
        return self.metadata["id"]

    @property
    def schema_json(self) -> str:
        """Delta's schema text."""
        return self.metadata["schemaString"]

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.metadata.get("configuration") or {}

    @property
    def has_vectors(self) -> bool:
        """Whether deletion vectors may be written."""
        return is_on(self.properties, VECTORS)

    @property
    def rows(self) -> int:
        """Rows in live files according to their statistics, without those that vectors delete."""
        return sum(file.left for file in self.files.values())

    @property
    def counted(self) -> int | None:
        """The same if every file's statistics have its row count; None otherwise, or if the log cannot be read."""
        complete = self.unreadable is None and all("numRecords" in file.facts for file in self.files.values())
        return self.rows if complete else None

    @property
    def partition_by(self) -> tuple[str, ...]:
        """The columns that the table is partitioned by."""
        return tuple(self.metadata.get("partitionColumns") or ())

    @property
    def cluster_by(self) -> tuple[tuple[str, ...], ...]:
        """The paths of the clustering columns, as files name them."""
        found = json.loads(self.domains.get(CLUSTERING) or "{}").get("clusteringColumns") or ()
        return tuple(tuple(path) for path in found)

    def txn(self, app_id: str) -> int:
        """The newest version that this application committed; 0 when there is none."""
        return self.txns.get(app_id, 0)

    def writable(self) -> str | None:
        """Why only Spark may write to the table; None: we may."""
        if self.unreadable:
            return self.unreadable
        features = {
            *(("reader", name) for name in self.protocol.get("readerFeatures") or ()),
            *(("writer", name) for name in self.protocol.get("writerFeatures") or ()),
        }
        known = {"reader": _READER_FEATURES, "writer": _WRITER_FEATURES}
        unknown = sorted({name for kind, name in features if name not in known[kind]})
        if unknown or self.protocol["minReaderVersion"] > 3 or self.protocol["minWriterVersion"] > 7:
            return f"the table has features that only Spark writes: {', '.join(unknown) or 'a newer protocol'}"
        for name, text in _PROPERTIES.items():
            if is_on(self.properties, name):
                return f"the table {text}"
        if ("writer", "rowTracking") in features and not is_on(self.properties, "delta.rowTrackingSuspended"):
            return "the files of the table have row ids"
        if any(name.startswith("delta.constraints.") for name in self.properties):
            return "the table has constraints"
        for column in json.loads(self.schema_json)["fields"]:
            for name, text in _COLUMN_FACTS.items():
                if name in column["metadata"]:
                    return f"column {column['name']} of the table has {text}"
        if any("://" in path or path.startswith(("/", "file:")) for path, _ in self.files):
            return "the table is a shallow clone"
        if any(file.vector is not None and file.vector.kind == "p" for file in self.files.values()):
            return "a deletion vector of the table lies in another folder"
        return None

    def advanced(self, version: int, actions: Iterable[Mapping[str, Any]]) -> TableLog:
        """The log after one commit."""
        replay = _Replay(self)
        replay.commit(version, actions)
        return replay.log(version)


def load_log(uri: str, storage: Storage = LOCAL) -> TableLog | None:
    """Read the newest version of a table's log; None when there is no table.

    Args:
        uri: the table's folder.
        storage: how to reach the folder.

    Raises:
        StorageError: a commit between the newest checkpoint and the newest commit is missing, or an entry is broken.
    """
    folder = Folder(uri, storage)
    commits, checkpoints, newer = _listed(folder)
    if not commits and not checkpoints:
        return None
    blank = TableLog(uri, -1, {}, {}, {}, {}, {}, storage=storage, folder=folder)
    second_kind = replace(blank, unreadable="the table has checkpoints of the second kind")
    if newer > max(checkpoints, default=-1):
        return _with_deltalake(second_kind)
    replay, version = _Replay(blank), -1
    if checkpoints:
        version = max(checkpoints)
        for path in checkpoints[version]:
            try:
                replay.checkpoint(_content(folder, path))
            except pa.ArrowInvalid as error:
                raise StorageError(f"{uri}/{path} is no readable checkpoint; restore the file, or remove it") from error
        if replay.has_sidecars:
            return _with_deltalake(second_kind)
        info_of = cache(partial(commit_facts, folder))  # Its actions are part of the checkpoint.
        replay.told_by(info_of(version))
        replay.restored = restored_before(version, info_of)
    for number in sorted(number for number in commits if number > version):
        if number != version + 1:
            raise StorageError(f"{uri} lacks the commit {version + 1} in its Delta log")
        replay.commit(number, _actions(_content(folder, commit_path(number))))
        version = number
    return replay.log(version)


def refresh_log(log: TableLog) -> TableLog:
    """The newest version of the same table; reads only what is new."""
    if log.unreadable:
        fresh = load_log(log.uri, log.storage)
        if fresh is None:
            raise StorageError(f"The Delta table {log.uri} is gone")
        return fresh
    folder, replay, version = log.opened(), _Replay(log), log.version
    while (content := folder.read(commit_path(version + 1))) is not None:
        version += 1
        replay.commit(version, _actions(content))
    return replay.log(version) if version > log.version else log


def commit_facts(folder: Folder, version: int) -> Mapping[str, Any]:
    """The `commitInfo` of a version; empty when the commit is gone or has none."""
    found = [action["commitInfo"] for action in actions_of(folder, version) if "commitInfo" in action]
    return found[0] if found else {}


def commit_infos(folder: Folder, newest: int) -> Iterator[Mapping[str, Any]]:
    """The `commitInfo` of each version with its `version`, newest first, as far back as the log has commits.

    A commit without `commitInfo`, which the protocol permits, has only its version. (`DeltaTable.history()` of
    deltalake 1.6.6 omits it, and gives the commits before it the versions that follow theirs.)

    Args:
        folder: The table's folder.
        newest: The version to begin with.

    Raises:
        StorageError: A commit is broken, or cannot be read.
    """

    def told(version: int) -> Mapping[str, Any] | None:
        content = folder.read(commit_path(version))
        if content is None:
            return None
        infos = [action["commitInfo"] for action in _actions(content) if "commitInfo" in action]
        return {**(infos[0] if infos else {}), "version": version}

    # Usually, the first ones are enough. A store takes long to answer, so the others are read many at a time.
    with ThreadPoolExecutor(_TOGETHER) as pool:
        version, count = newest, _FEW
        while version >= 0:
            versions = range(version, max(version - count, -1), -1)
            read: Iterator[Mapping[str, Any] | None] = (map if count == _FEW else pool.map)(told, versions)
            for found in read:
                if found is None:
                    return  # Log cleanup has removed it, and all before it.
                yield found
            version, count = version - count, _MANY


def actions_of(folder: Folder, version: int) -> Iterator[dict[str, Any]]:
    """The actions of a version; none when the commit is gone.

    Args:
        folder: The table's folder.
        version: The version.

    Raises:
        StorageError: The commit is broken, or cannot be read.
    """
    return _actions(folder.read(commit_path(version)) or b"")


def commit_time(stamp: float) -> datetime:
    """The time of a commit from its `timestamp`."""
    return datetime.fromtimestamp(stamp / 1000, UTC)


def commit_path(version: int) -> str:
    """The path of a version's commit in the table's folder."""
    return f"{LOG}/{version:020}.json"


def _listed(folder: Folder) -> tuple[set[int], dict[int, list[str]], int]:
    """The versions with a commit, the complete checkpoints with their paths, the newest checkpoint of another kind."""
    commits: set[int] = set()
    parts: dict[tuple[int, int], list[str]] = {}
    newer = -1
    for name in folder.names(LOG):
        if found := _COMMIT.fullmatch(name):
            commits.add(int(found[1]))
        elif found := _CHECKPOINT.fullmatch(name):
            parts.setdefault((int(found[1]), int(found[3] or 1)), []).append(name)
        elif found := _NEWER_CHECKPOINT.fullmatch(name):
            newer = max(newer, int(found[1]))
    return commits, {version: names for (version, count), names in parts.items() if len(names) == count}, newer


def _content(folder: Folder, path: str) -> bytes:
    content = folder.read(path)
    if content is None:
        raise StorageError(f"{path} of the Delta log vanished while it was read; another writer cleaned up, try again")
    return content


def _actions(content: bytes) -> Iterator[dict[str, Any]]:
    for line in content.splitlines():
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError:
                raise StorageError(
                    "A commit of the Delta log is cut off or no JSON; restore the table, or move it away: it is then "
                    "built again"
                ) from None


def _with_deltalake(log: TableLog) -> TableLog:
    """Fill in what `deltalake` knows about a log that we cannot read: enough to hand the table to Spark."""
    from mssql_cdc.lake.opened import open_table

    table = open_table(log.uri, log.storage)
    metadata, version = table.metadata(), table.version()
    found = {
        "id": str(metadata.id),
        "schemaString": table.schema().to_json(),
        "partitionColumns": list(metadata.partition_columns),
        "configuration": metadata.configuration,
    }
    info_of = cache(partial(commit_facts, Folder(log.uri, log.storage)))
    stamp = info_of(version).get("timestamp")
    return replace(
        log,
        version=version,
        metadata=found,
        committed=None if stamp is None else commit_time(stamp),
        restored=restored_before(version, info_of),
    )


class _Replay:
    """Applies actions to a version."""

    def __init__(self, log: TableLog) -> None:
        self._log = log
        self._files, self._txns, self._domains = dict(log.files), dict(log.txns), dict(log.domains)
        self._protocol, self._metadata, self._committed = log.protocol, log.metadata, log.committed
        self.restored = log.restored
        self.has_sidecars = False

    def log(self, version: int) -> TableLog:
        return replace(
            self._log,
            version=version,
            protocol=self._protocol,
            metadata=self._metadata,
            files=self._files,
            txns=self._txns,
            domains=self._domains,
            committed=self._committed,
            restored=self.restored,
        )

    def checkpoint(self, content: bytes) -> None:
        table = pq.read_table(pa.BufferReader(content))
        for name in ("protocol", "metaData", "txn", "domainMetadata", "add"):
            if name in table.schema.names:
                column = table.column(name)
                for found in column.filter(column.is_valid()).to_pylist():
                    self._apply(name, _plain(found))
        # Those of the second kind (V2) may have the classic name, too; deltalake writes them that way, in one piece.
        if "sidecar" in table.schema.names:
            self.has_sidecars |= table.column("sidecar").null_count < table.num_rows

    def commit(self, version: int, actions: Iterable[Mapping[str, Any]]) -> None:
        found = list(actions)
        # A file may get another vector in one commit: remove the old pair before adding the new one.
        for action in found:
            if "remove" in action:
                self._files.pop(identity_of(action["remove"]), None)
        for action in found:
            for name, value in action.items():
                self._apply(name, value)
            if "commitInfo" in action:
                self.told_by(action["commitInfo"])
                self.restored = restored_after(self.restored, action["commitInfo"], version)

    def told_by(self, info: Mapping[str, Any]) -> None:
        if "timestamp" in info:
            self._committed = commit_time(info["timestamp"])

    def _apply(self, name: str, value: Mapping[str, Any]) -> None:
        match name:
            case "add":
                file = LiveFile.of_add(value)
                self._files[file.identity] = file
            case "txn":
                self._txns[value["appId"]] = value["version"]
            case "protocol":
                self._protocol = value
            case "metaData":
                self._metadata = value
            case "domainMetadata":
                self._domains[value["domain"]] = "" if value.get("removed") else value["configuration"]
            case _:
                pass


def _plain(value: Any) -> Any:
    """A checkpoint's value in JSON form: without NULLs, and with maps instead of lists of pairs."""
    if not isinstance(value, dict):
        return value
    found = {name: inner for name, inner in cast("dict[str, Any]", value).items() if inner is not None}
    # A domain's configuration is text.
    maps = {name for name in _MAPS & found.keys() if not isinstance(found[name], str)}
    return {name: dict(inner) if name in maps else _plain(inner) for name, inner in found.items()}
