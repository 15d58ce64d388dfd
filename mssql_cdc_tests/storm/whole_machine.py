"""What only the whole can play: types, keys, large values, other replicas, signals, users' commands, records.

The rules of `machine.py` belong to it, too. At every quiet point the current tables also equal the source in each
column that capture delivers, and the records are complete and ordered.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lake.maintenance import optimize
from mssql_cdc.lake.read import exists
from mssql_cdc.lake.steps import SnapshotEnded
from mssql_cdc.lsn import Lsn, snapshot_position_text
from mssql_cdc.records.open_output import open_output
from mssql_cdc.records.write import write_records
from mssql_cdc_tests.storm.lake import change_log, change_logs, home_of
from mssql_cdc_tests.storm.machine import BOUNDS, DENIED, OWN_STATEMENTS, PAUSES, Storm
from mssql_cdc_tests.storm.operations import SNAPSHOT_WRITES
from mssql_cdc_tests.storm.schedule import CHANGES, FAMILIES, KEYS, NAMES, PART, PLACES, of, profiles
from mssql_cdc_tests.storm.whole import WholeWorld
from mssql_cdc_tests.storm.worlds import PARTS, TABLES, Change

WHOLE_FAMILIES = (*FAMILIES, "structure", "replica")
LARGE = ("doc", "note")
"""nvarchar(max) and ntext."""
KEPT = ("id", "part", "name", "size", *LARGE)
"""The columns that every table has all the time."""
WIDER = {"smallint": ("int", 2**31 - 1), "int": ("bigint", 2**63 - 1)}
TEXTS = st.sampled_from((None, "", "é" * 5_000, "x" * 9_000))
DDL = st.sampled_from(("longer", "wider", "nullable", "default", "drop", "another type"))
"""`drop` takes the newest column that was added; `another type` brings its name back with another type."""


class WholeStorm(Storm):
    """One schedule in the whole world."""

    world: WholeWorld
    profile = frozenset(WHOLE_FAMILIES)

    def __init__(self, make: Callable[[Path], WholeWorld]) -> None:
        super().__init__(make)
        self.written = self.defaults = 0

    @initialize(
        profile=profiles(WHOLE_FAMILIES),
        changes=st.lists(CHANGES, max_size=4),
        running=st.booleans(),
        bound=BOUNDS,
        pause=PAUSES,
        reads=st.booleans(),
        beside=st.booleans(),
        denied=DENIED,
        secondary=st.sampled_from((False, False, True)),
        own=OWN_STATEMENTS,
    )
    def begin(
        self,
        profile: frozenset[str],
        changes: list[list[Change]],
        running: bool,  # noqa: FBT001 (drawn)
        bound: int | None,
        pause: int | None,
        reads: bool = False,  # noqa: FBT001, FBT002 (drawn)
        beside: bool = False,  # noqa: FBT001, FBT002 (drawn)
        denied: str | None = None,
        secondary: bool = False,  # noqa: FBT001, FBT002 (drawn)
        own: Mapping[str, str] | None = None,
    ) -> None:
        if secondary:
            self.world.read_a_secondary()
            self.database = self.world.database
        super().begin(profile, changes, running, bound, pause, reads, beside, denied, own)

    # -- the source -------------------------------------------------------------------------------------------

    @of("structure")
    @rule(name=NAMES, key=KEYS, column=st.sampled_from(LARGE), text=TEXTS, with_name=st.booleans())
    def large_value(self, name: str, key: int, column: str, text: str | None, with_name: bool) -> None:  # noqa: FBT001
        value = "NULL" if text is None else f"N'{text}'"
        more = ", name = N'large'" if with_name else ""
        self.world.run(f"UPDATE dbo.{name} SET {column} = {value}{more} WHERE id = {key}")

    @of("structure")
    @rule(name=NAMES, key=KEYS)
    def value_beside_large_ones(self, name: str, key: int) -> None:
        self.world.run(f"UPDATE dbo.{name} SET size = 1 - ISNULL(size, 0) WHERE id = {key} AND ISNULL(size, 0) < 2")

    @of("structure")
    @rule(name=NAMES, kind=DDL, fresh=st.booleans(), key=KEYS)
    def structure_changes(self, name: str, kind: str, fresh: bool, key: int) -> None:  # noqa: FBT001 (drawn)
        for statement in self._ddl(name, kind, key):
            self.world.run(statement)
        if fresh:
            self.disabled(name, oldest_only=True)
            self.world.enable(name)

    @of("structure")
    @rule(name=NAMES, kind=DDL, fresh=st.booleans(), key=KEYS, at=PLACES)
    def step_while_the_structure_changes(self, name: str, kind: str, fresh: bool, key: int, at: int) -> None:  # noqa: FBT001
        self.look_while(lambda: self.structure_changes(name, kind, fresh, key), at)

    def _ddl(self, name: str, kind: str, key: int) -> list[str]:
        columns = self.world.columns(name)
        added = [column for column in columns if column not in KEPT and column.startswith("c")]
        if kind == "longer":
            ((length,),) = self.world.asked(f"SELECT COL_LENGTH(N'dbo.{name}', N'name') / 2")
            longer = int(length) + 50
            return [
                f"ALTER TABLE dbo.{name} ALTER COLUMN name nvarchar({longer}) NULL",
                f"UPDATE dbo.{name} SET name = REPLICATE(N'ü', {longer}) WHERE id = {key}",
            ]
        if kind == "wider":
            if columns["size"] not in WIDER:
                return []
            wider, largest = WIDER[columns["size"]]
            return [
                f"ALTER TABLE dbo.{name} ALTER COLUMN size {wider} NULL",
                f"UPDATE dbo.{name} SET size = {largest} WHERE id = {key}",
            ]
        if kind == "nullable":
            return [f"ALTER TABLE dbo.{name} ADD c{len(added)} int NULL"]
        if kind == "default":
            column = f"c{len(added)}"
            self.defaults += 1
            default = f"CONSTRAINT df_{self.world.label(name)}_{column} DEFAULT {self.defaults}"
            return [f"ALTER TABLE dbo.{name} ADD {column} int NOT NULL {default}"]
        if not added:
            return []
        column = added[-1]
        drops = [
            f"ALTER TABLE dbo.{name} DROP CONSTRAINT IF EXISTS df_{self.world.label(name)}_{column}",
            f"ALTER TABLE dbo.{name} DROP COLUMN {column}",
        ]
        other = "varchar(20)" if columns[column] == "int" else "int"
        return drops if kind == "drop" else [*drops, f"ALTER TABLE dbo.{name} ADD {column} {other} NULL"]

    @of("structure")
    @rule(name=NAMES, key=KEYS)
    def other_part(self, name: str, key: int) -> None:
        """Changes the key where `part` belongs to it."""
        self.world.run(f"UPDATE dbo.{name} SET part = part + 1 WHERE id = {key}")

    @of("structure")
    @rule(
        name=NAMES,
        columns=st.sampled_from(("id", "id, part", "part, id")),
        wider=st.booleans(),
        fresh=st.booleans(),
        key=KEYS,
    )
    def another_key(self, name: str, columns: str, wider: bool, fresh: bool, key: int) -> None:  # noqa: FBT001 (drawn)
        """Other columns, or the same ones of which `part` gets a scale; `fresh`: capture is set up again.

        A column's type changes while no index contains it, and CDC keeps the index that it identifies rows by.
        """
        free, label = self.world.is_freely_keyed(name), self.world.label(name)
        if name not in self.world.keyed or not (fresh or free or name in self.world.dark()):
            return
        if fresh:
            self.disabled(name)
        self.world.run(f"ALTER TABLE dbo.{name} DROP CONSTRAINT pk_{label}")
        if wider and (not free or name in self.world.dark()):
            self.world.widen_part(name)
        self.world.run(f"ALTER TABLE dbo.{name} ADD CONSTRAINT pk_{label} PRIMARY KEY ({columns})")
        if fresh:
            self.world.enable(name)
        self.world.change((name, key, f"by {columns}"))

    @of("structure")
    @rule(name=NAMES, key=KEYS, looks=st.integers(0, 3), same=st.booleans())
    def column_goes_and_comes_back(self, name: str, key: int, looks: int, same: bool) -> None:  # noqa: FBT001 (drawn)
        """A release adds a column, is rolled back, and comes again; each time capture gets an instance of its own.

        `same`: with the same default, so that the third structure is the first one.
        """
        for kind in ("default", "drop", "default"):
            if same and kind == "default":
                self.defaults = 0
            self.structure_changes(name, kind, fresh=True, key=key)
            self.world.change((name, key, f"{kind} {self.defaults}"))
            self.world.scan(500)
            self.look(looks)

    @of("structure", "runs")
    @rule(name=NAMES, key=KEYS, changes=CHANGES)
    def late_rival_widens_a_column(self, name: str, key: int, changes: list[Change]) -> None:
        """Two runs read rows of a column that became wider; the second one decided before the first one read."""
        self.world.change((name, key, "narrow"))
        self.world.scan(500)
        self.look(2)
        for statement in self._ddl(name, "wider", key):
            self.world.run(statement)
        self.world.scan(500)
        self.late_rival(changes)

    @of("instances")
    @rule(changes=CHANGES, looks=st.integers(0, 2))
    def cdc_is_off_in_the_database(self, changes: list[Change], looks: int) -> None:
        """An administrator disables it as a whole and enables it again; what was captured is gone, read or not."""
        self.may_lack.update(TABLES)
        self.world.disable_database()
        self.world.change(*changes)
        self.look(looks)
        self.world.enable_database()

    @of("replica")
    @rule()
    def fail_over(self) -> None:
        self.world.fail_over()

    @of("replica")
    @rule(on=st.booleans())
    def secondary_lags(self, on: bool) -> None:  # noqa: FBT001 (drawn)
        self.world.freeze_the_secondary(on)

    @of("snapshots")
    @rule(name=NAMES, part=PART)
    def signal_for_a_snapshot(self, name: str, part: str | None = None) -> None:
        table = f"{self.world.name}.dbo.{name}"
        data: dict[str, Any] = {"type": "blocking", "data-collections": [table]}
        if part is not None:
            self.filtered(name, part)
            data["additional-conditions"] = [
                {"data-collection": table, "filter": f"SELECT * FROM dbo.{name} WHERE {part}"}
            ]
        self.world.signal("execute-snapshot", json.dumps(data))

    # -- users ------------------------------------------------------------------------------------------------

    @of("users")
    @rule(name=NAMES, current=st.booleans())
    def user_optimizes(self, name: str, current: bool) -> None:  # noqa: FBT001 (drawn)
        if (uri := self._table(name, current=current)) is not None:
            optimize(self.world.spark, uri)

    @of("users")
    @rule(name=NAMES, current=st.booleans())
    def user_vacuums(self, name: str, current: bool) -> None:  # noqa: FBT001 (drawn)
        if (uri := self._table(name, current=current)) is not None:
            session = self.world.spark.newSession()
            session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
            session.sql(f"VACUUM delta.`{uri}` RETAIN 0 HOURS")

    @rule()
    def records_are_written(self) -> None:
        self._write_records()

    @of("snapshots", "runs")
    @rule(
        name=NAMES,
        rows=st.integers(2, 4),
        deaths=st.lists(SNAPSHOT_WRITES, min_size=1, max_size=2),
        changes=CHANGES,
    )
    def records_are_written_during_a_snapshot(
        self, name: str, rows: int, deaths: list[tuple[str, int, bool]], changes: list[Change]
    ) -> None:
        """Runs die while they read it; it is paused, and the stream of the other tables goes on."""
        self.world.change(*((name, key, f"r{key}") for key in range(rows)))
        self.world.scan(500)
        self.ask(name)
        for part, call, after in deaths:
            self.look_and_die(next(one for one in self.world.writes if part in one), call, after=after)
        self.control("pause-snapshot")
        self.change_arrives(changes)
        self.look()
        self._write_records()

    # -- what has to hold -------------------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        self.world.freeze_the_secondary(False)
        super().come_to_rest()
        self._write_records()
        self._check_records()

    def _has_followed_advice(self) -> bool:
        """A table whose captured column was dropped before its first snapshot has read it gets another instance."""
        asked = {t.name for t, error in self.follower.errors.items() if "enable a new capture instance" in str(error)}
        for name in asked:
            self.disabled(name, oldest_only=True)
            self.world.enable(name)
        return bool(asked)

    def _same(self, name: str) -> None:
        super()._same(name)
        if name not in self.world.keyed:
            return
        captured = self.world.captured_columns(name) if name not in self.world.dark() else set(KEPT)
        columns = [column for column in self.world.columns(name) if column in captured]
        source = {row[0]: row for row in self.world.asked(f"SELECT {', '.join(columns)} FROM dbo.{name}")}
        uri = self._table(name, current=True)
        lake = self.world.spark.read.format("delta").load(uri).collect() if uri is not None else []
        found = {row["id"]: row.asDict() for row in lake}
        assert len(found) == len(lake), f"the current table of {name} holds a row twice"
        parts = self.parts_of(name)
        left_out = {key for key in source.keys() - found.keys() if not all(PARTS[one](key) for one in parts)}
        assert found.keys() == source.keys() - left_out, f"the current table of {name} differs"
        for key, values in source.items():
            if key in left_out:
                continue
            row, wanted = found[key], dict(zip(columns, values, strict=True))
            known = [column for column in columns if column not in (row["_unavailable"] or ())]
            differing = {c: (row.get(c, "no column"), wanted[c]) for c in known if row.get(c, "no column") != wanted[c]}
            assert not differing, f"the current table of {name} differs in row {key}: {str(differing)[:300]}"

    def _write_records(self) -> None:
        with contextlib.suppress(MssqlCdcError), open_output(str(self._records), self.world.connector) as output:
            try:
                self.written += write_records(self.world.connector, output=output)
            finally:
                output.keep()

    @property
    def _records(self) -> Path:
        return self.folder / "records.jsonl"

    def _check_records(self) -> None:
        """Each change of a change log is one record, in the log's order, and each row of a snapshot is one.

        A record has the name that its table had then. Behind a rename it is only told whether all are there, and once.
        """
        told: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        shown: Counter[str] = Counter()
        for line in self._records.read_text(encoding="utf-8").splitlines() if self._records.exists() else ():
            value = json.loads(line)["value"]
            if isinstance(value, dict) and value.get("op") in {*"cud"}:
                source = value["source"]
                told[source["table"]].append((value["op"], source["commit_lsn"], source["change_lsn"]))
            elif isinstance(value, dict) and value.get("op") == "r":
                shown[value["source"]["table"]] += 1
        rows = change_logs(self.database) if self.has_renamed else {n: change_log(self.database, n) for n in TABLES}
        logs = {
            name: [
                (row["op"], row["source"]["commit_lsn"], row["source"]["change_lsn"])
                for row in own
                if row["_snapshot"] is None
            ]
            for name, own in rows.items()
        }
        read = {name: sum(row["op"] == "r" and self._counts(name, row) for row in own) for name, own in rows.items()}
        if self.has_renamed:
            if self.tampered:
                return
            assert shown.total() == sum(read.values()), f"the records of snapshots differ: {shown}, {read}"
            every = Counter(itertools.chain.from_iterable(told.values()))
            all_logged = Counter(itertools.chain.from_iterable(logs.values()))
            assert every == all_logged, f"the records differ: {every - all_logged, all_logged - every}"
            return
        for name in sorted(set(TABLES) - self.tampered):
            assert shown[name] == read[name], (
                f"records have {shown[name]} rows of snapshots of {name}, not {read[name]}"
            )
            assert told[name] == logs[name], f"the records of {name} differ from its change log: {logs[name]}"

    def _counts(self, log: str, row: Mapping[str, Any]) -> bool:
        """Whether a row that was read is none of a chunk which its snapshot has read again.

        Args:
            log: The name of its table, or the folder.
            row: A row of the change log.
        """
        for one in self.database.offsets().noted:
            ended = one.facts
            if isinstance(ended, SnapshotEnded) and row["_snapshot"] == f"{ended.number}":
                low, table = Lsn.parse(ended.low), ended.table
                if log in {table.rpartition(".")[2], one.tables[table].folder}:
                    first = snapshot_position_text(one.epoch, low, number=ended.number, chunk=ended.chunk)
                    return row["_pos"] >= first
        return True

    def _table(self, name: str, *, current: bool) -> str | None:
        home = home_of(self.database, name)
        uri = home.current if current else home.changes
        return uri if exists(uri, self.database.storage) else None
