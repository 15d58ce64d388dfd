"""A lake in memory: the parts of `deltalake`, of Parquet and of a file system that `lake/` works with.

Everything above them is the product's own code: states, fences, tampering, schema changes, reading. What the model
answers is held to `deltalake` by `test_model_lake.py`, which plays the same operations on both.
"""

# ruff: noqa: ARG002, ARG003 - the signatures are those of the libraries

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from deltalake import CommitProperties, Schema
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.table import ProtocolVersions
from deltalake.transaction import AddAction

from mssql_cdc.lake.history import load_history
from mssql_cdc.lake.known_states import KnownTables
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.lake.offset_history import Stored
from mssql_cdc.lake.offset_rows import OFFSETS_SCHEMA
from mssql_cdc.lake.small_tables import SmallTable
from mssql_cdc.lake.table_log import LOG
from mssql_cdc_tests.storm.patched import everywhere

_OPENERS = tuple(f"mssql_cdc.lake.{name}" for name in ("log", "read", "opened"))
"""The modules that open the tables which `deltalake` commits."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a table: what its log amounts to, and the entry of its own commit in the history."""

    id: str
    schema_json: str
    configuration: Mapping[str, str]
    entry: Mapping[str, Any]
    transactions: Mapping[str, int] = field(default_factory=dict[str, int])
    adds: tuple[AddAction, ...] = ()
    wrote: frozenset[str] = frozenset()
    metadata: bool = False
    created_time: int = 1_800_000_000_000

    @property
    def content(self) -> bytes:
        """The commit, without its files."""
        txns = [{"txn": {"appId": name, "version": self.transactions[name]}} for name in sorted(self.wrote)]
        changed = [{"metaData": {"id": self.id}}] if self.metadata else []
        return "\n".join(json.dumps(action) for action in ({"commitInfo": self.entry}, *txns, *changed)).encode()


@dataclass(slots=True)
class ModelLake:
    """Logs and files, by folder. `opened` makes the product work on it."""

    logs: dict[str, list[Version]] = field(default_factory=dict[str, list[Version]])
    files: dict[str, list[pa.RecordBatch]] = field(default_factory=dict[str, list[pa.RecordBatch]])
    objects: dict[str, bytes] = field(default_factory=dict[str, bytes])
    _loaded: dict[tuple[str, str, int], Any] = field(default_factory=dict[tuple[str, str, int], Any])
    _histories: dict[str, tuple[tuple[AddAction, ...], int, pa.Table]] = field(
        default_factory=dict[str, tuple[tuple[AddAction, ...], int, pa.Table]]
    )

    @contextmanager
    def opened(self) -> Iterator[None]:
        """The product works on this lake, in this process."""

        class Table(ModelTable):
            lake = self

        def folder(uri: str, _storage: object = None) -> ModelFolder:
            return ModelFolder(self, uri)

        with ExitStack() as stack:
            for module in _OPENERS:
                stack.enter_context(patch(f"{module}.DeltaTable", Table))
            for module in ("log", "known_states", "kept_digest"):
                stack.enter_context(patch(f"mssql_cdc.lake.{module}.Folder", partial(ModelLog, self)))
            for module in ("log", "read", "files", "staged"):
                stack.enter_context(patch(f"mssql_cdc.lake.{module}.file_system", folder))
            stack.enter_context(patch("mssql_cdc.lake.files.pq.ParquetWriter", ModelWriter))
            for module in ("read", "staged"):
                stack.enter_context(patch(f"mssql_cdc.lake.{module}.pq.ParquetFile", ModelFile))
            stack.enter_context(patch.object(SmallTable, "table", self._remembered(SmallTable.table, _uri_of_table)))
            for load, uri in ((load_offsets, _uri_of_offsets), (load_history, _uri_of_history)):
                stack.enter_context(everywhere(load, self._remembered(load, uri)))
            stack.enter_context(patch.object(Stored, "read", self._grown(Stored.read)))
            yield

    def _grown(self, read: Callable[..., pa.Table]) -> Callable[..., pa.Table]:
        """`_offsets` only grows: of what was read whole before, only the rows behind it are read."""

        def grown(stored: Stored, number: int, columns: Sequence[str], *, after: int = 0) -> pa.Table:
            if after or list(columns) != OFFSETS_SCHEMA.names:
                return read(stored, number, columns, after=after)
            uri, adds = stored.small.uri, self.logs[stored.small.uri][-1].adds if number else ()
            before, known, table = self._histories.get(uri, ((), 0, OFFSETS_SCHEMA.empty_table()))
            if known > number or any(a is not b for a, b in zip(before, adds, strict=False)):
                table = read(stored, number, columns)
            else:
                more = read(stored, number, columns, after=known)
                table = pa.concat_tables([table, more]).combine_chunks() if more.num_rows else table
            self._histories[uri] = adds, number, table
            return table

        return grown

    def _remembered(self, load: Callable[..., Any], uri: Callable[..., str]) -> Callable[..., Any]:
        """A version of a table never changes: who does not remember what it has loaded need not load it twice."""

        def loaded(*arguments: Any, known: KnownTables | None = None) -> Any:
            if known is not None:
                return load(*arguments, known=known)
            where = uri(*arguments)
            key = load.__qualname__, where, len(self.logs.get(where, ()))
            if key not in self._loaded:
                self._loaded[key] = load(*arguments)
            return self._loaded[key]

        return loaded


class ModelLog:
    """`lake.object_store.Folder`: the commits of a log, and what is kept beside a table."""

    def __init__(self, lake: ModelLake, uri: str, storage: object = None) -> None:
        self._lake, self._uri = lake, uri

    def stamp(self, path: str) -> str | None:
        """The commit's identity; None when there is none."""
        found = self._commit(path)
        return f"{found.id} {id(found)}" if found is not None else None

    def read(self, path: str) -> bytes | None:
        """The content of an object; None when there is none."""
        if path.startswith(LOG):
            found = self._commit(path)
            return found.content if found is not None else None
        return self._lake.objects.get(f"{self._uri}/{path}")

    def put_new(self, path: str, content: bytes) -> bool:
        """A commit that adds files; False if there is one with its version."""
        log = self._lake.logs[self._uri]
        if self._commit(path) is not None:
            return False
        assert _number(path) == len(log), "a commit follows the newest one"
        actions = [json.loads(line) for line in content.splitlines()]
        txns = {one["txn"]["appId"]: one["txn"]["version"] for one in actions if "txn" in one}
        found = [one["add"] for one in actions if "add" in one]
        adds = [AddAction(a["path"], a["size"], {}, a["modificationTime"], True, a["stats"]) for a in found]
        (entry,) = (one["commitInfo"] for one in actions if "commitInfo" in one)
        log.append(
            replace(
                log[-1],
                entry=entry,
                transactions={**log[-1].transactions, **txns},
                adds=(*log[-1].adds, *adds),
                wrote=frozenset(txns),
                metadata=False,
            )
        )
        return True

    def put(self, path: str, content: bytes) -> None:
        """An object, over the one of before."""
        self._lake.objects[f"{self._uri}/{path}"] = content

    def _commit(self, path: str) -> Version | None:
        versions, number = self._lake.logs.get(self._uri, []), _number(path)
        return versions[number] if number < len(versions) else None


def _number(path: str) -> int:
    return int(path.removesuffix(".json").rpartition("/")[2])


class ModelTable:
    """`deltalake.DeltaTable`: a handle on one version of a log."""

    lake: ModelLake

    def __init__(self, uri: str, version: int | None = None, storage_options: object = None) -> None:
        if uri not in self.lake.logs:
            raise TableNotFoundError(f"{uri} holds no Delta table")
        self.table_uri = uri
        self._version = len(self._log) - 1 if version is None else version

    @property
    def _log(self) -> list[Version]:
        return self.lake.logs[self.table_uri]

    @property
    def _now(self) -> Version:
        return self._log[self._version]

    @classmethod
    def is_deltatable(cls, uri: str, storage_options: object = None) -> bool:
        """Whether there is a log."""
        return uri in cls.lake.logs

    @classmethod
    def create(
        cls, uri: str, schema: pa.Schema, *, mode: str, configuration: Mapping[str, str], **more: Any
    ) -> ModelTable:
        """Version 0, by put-if-absent."""
        assert mode == "ignore"
        entry = _entry("CREATE TABLE", None)
        first = Version(str(uuid.uuid4()), _delta_json(schema), dict(configuration), entry, metadata=True)
        cls.lake.logs.setdefault(uri, [first])
        return cls(uri)

    def version(self) -> int:
        """The handle's version, which only `update_incremental` advances."""
        return self._version

    def update_incremental(self) -> None:
        """Go to the newest version."""
        self._version = len(self._log) - 1

    def metadata(self) -> Version:
        """`id` and `configuration`."""
        return self._now

    def schema(self) -> ModelSchema:
        """The schema."""
        return ModelSchema(self._now.schema_json)

    def protocol(self) -> ProtocolVersions:
        """No features."""
        return ProtocolVersions(1, 2, None, None)

    def transaction_version(self, app_id: str) -> int | None:
        """The newest txn of an application."""
        return self._now.transactions.get(app_id)

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The entries of the commits, newest first."""
        found = [{**version.entry, "version": number} for number, version in enumerate(self._log[: self._version + 1])]
        return found[::-1][:limit]

    def get_add_actions(self, *, flatten: bool) -> pa.Table:
        """The files with the statistics of `_batch`."""
        assert flatten
        ends = [_batches(add.stats) for add in self._now.adds]
        return pa.table(
            {
                "path": pa.array([add.path for add in self._now.adds], pa.string()),
                "min._batch": pa.array([first for first, _ in ends], pa.int64()),
                "max._batch": pa.array([last for _, last in ends], pa.int64()),
            }
        )

    def create_checkpoint(self) -> None:
        """It changes nothing that a reader sees."""

    def cleanup_metadata(self) -> None:
        """No commit is old enough."""

    def _since(self) -> list[Version]:
        """The commits since the handle's version."""
        found = self._log[self._version + 1 :]
        if any(other.metadata for other in found):
            raise CommitFailedError("Failed to commit transaction: Metadata changed since last commit.")
        return found

    def restore(self, version: int) -> None:
        """The files of an earlier version; txns stay."""
        newest = self._log[-1]
        entry = _entry("RESTORE", None)
        self._log.append(replace(newest, adds=self._log[version].adds, entry=entry, wrote=frozenset(), metadata=True))
        self.update_incremental()

    @property
    def alter(self) -> _Alter:
        """Schema changes."""
        return _Alter(self)

    @property
    def optimize(self) -> _Optimize:
        """Compaction."""
        return _Optimize(self)


@dataclass(frozen=True)
class ModelSchema:
    """`deltalake.Schema`."""

    text: str

    def to_json(self) -> str:
        """The schema's text."""
        return self.text


@dataclass(frozen=True)
class _Alter:
    table: ModelTable

    def add_columns(self, fields: Sequence[Any], commit_properties: CommitProperties) -> None:
        table = self.table
        table._since()
        newest, text = table._log[-1], json.loads(table._now.schema_json)
        _add(text["fields"], [json.loads(one.to_json()) for one in fields])
        table._log.append(
            replace(
                newest,
                schema_json=json.dumps(text),
                entry=_entry("ADD COLUMN", commit_properties),
                wrote=frozenset(),
                metadata=True,
            )
        )
        table.update_incremental()


@dataclass(frozen=True)
class _Optimize:
    table: ModelTable

    def compact(self, *, target_size: int | None = None, writer_properties: object = None) -> dict[str, int]:
        table = self.table
        newest = table._log[-1]
        if len(newest.adds) < 2:
            return {"numFilesRemoved": 0, "numFilesAdded": 0}
        stats = [json.loads(add.stats) for add in newest.adds]
        joined = {
            "numRecords": sum(one["numRecords"] for one in stats),
            "minValues": {"_batch": min(one["minValues"]["_batch"] for one in stats)},
            "maxValues": {"_batch": max(one["maxValues"]["_batch"] for one in stats)},
        }
        path, lake = f"part-{uuid.uuid4()}.parquet", table.lake
        root = table.table_uri
        lake.files[f"{root}/{path}"] = [b for add in newest.adds for b in lake.files[f"{root}/{add.path}"]]
        add = AddAction(path, 0, {}, int(time.time() * 1000), False, json.dumps(joined))
        table._log.append(
            replace(newest, adds=(add,), entry=_entry("OPTIMIZE", None), wrote=frozenset(), metadata=False)
        )
        return {"numFilesRemoved": len(newest.adds), "numFilesAdded": 1}


@dataclass(frozen=True)
class ModelFolder:
    """The file system of a table's folder."""

    lake: ModelLake
    uri: str

    @contextmanager
    def open_output_stream(self, path: str) -> Iterator[ModelSink]:
        """A new file."""
        yield ModelSink(self.lake.files.setdefault(f"{self.uri}/{path}", []))

    @contextmanager
    def open_input_file(self, path: str) -> Iterator[list[pa.RecordBatch]]:
        """A file's row groups."""
        yield self.lake.files[f"{self.uri}/{path}"]


@dataclass(frozen=True)
class ModelSink:
    """An open file: its row groups."""

    groups: list[pa.RecordBatch]

    def tell(self) -> int:
        """The size so far."""
        return sum(group.nbytes for group in self.groups)


class ModelWriter:
    """`pyarrow.parquet.ParquetWriter`."""

    def __init__(self, sink: ModelSink, schema: pa.Schema, **more: Any) -> None:
        self._sink = sink

    def __enter__(self) -> ModelWriter:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is left to write."""

    def write_batch(self, batch: pa.RecordBatch, row_group_size: int) -> None:
        """One row group."""
        self._sink.groups.append(batch)


class ModelFile:
    """`pyarrow.parquet.ParquetFile`."""

    def __init__(self, groups: list[pa.RecordBatch], **_: object) -> None:
        self._groups = groups
        self.num_row_groups = len(groups)
        self.schema_arrow = groups[0].schema if groups else pa.schema([])

    def read_row_group(self, group: int, *, columns: Sequence[str], use_threads: bool) -> ModelGroup:
        """The columns of a row group."""
        return ModelGroup(self._groups[group].select(list(columns)))


@dataclass(frozen=True)
class ModelGroup:
    """The table of a row group."""

    batch: pa.RecordBatch

    def to_batches(self) -> list[pa.RecordBatch]:
        """Its only batch."""
        return [self.batch]


def _uri_of_table(small: SmallTable) -> str:
    return small.uri


def _uri_of_offsets(layout: Layout, *_: object) -> str:
    return layout.own("offsets")


def _uri_of_history(layout: Layout, *_: object) -> str:
    return layout.own("schema_history")


@lru_cache(maxsize=4096)
def _batches(stats: str) -> tuple[int | None, int | None]:
    """The smallest and the largest `_batch` of a file."""
    found = json.loads(stats)
    return found.get("minValues", {}).get("_batch"), found.get("maxValues", {}).get("_batch")


def _entry(operation: str, properties: CommitProperties | None) -> dict[str, Any]:
    given = (properties.custom_metadata if properties else None) or {}
    return {"timestamp": int(time.time() * 1000), "operation": operation, **given}


def _add(fields: list[dict[str, Any]], more: Sequence[dict[str, Any]]) -> None:
    """Add fields to those of a struct, inside its structs too."""
    there = {one["name"]: one for one in fields}
    for one in more:
        if one["name"] not in there:
            fields.append(one)
        elif isinstance(one["type"], dict):
            _add(there[one["name"]]["type"]["fields"], one["type"]["fields"])
        else:
            assert there[one["name"]]["type"] == one["type"]  # Another run has added it.


@lru_cache(maxsize=1024)
def _delta_json(schema: pa.Schema) -> str:
    return Schema.from_arrow(schema).to_json()
