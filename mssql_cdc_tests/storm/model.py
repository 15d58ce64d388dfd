"""The storm as a model: a modelled server and a modelled lake, and the connector's own code between them.

Tasks run in this process. Current tables are left out, because only Spark merges; a change log that amounts to the
source's rows is the proof here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.snapshot import chunk_groups
from mssql_cdc.capture.snapshot.chunk_groups import read_locked_tables
from mssql_cdc.capture.snapshot.progress import Run
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lake.log import TableState, commit
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId
from mssql_cdc.source.protocol import Source
from mssql_cdc.spark.tasks import TaskResult
from mssql_cdc_tests.lake_kit import lsn
from mssql_cdc_tests.spark.model_source import number_of
from mssql_cdc_tests.storm.emitted import emitted_rows_are_in_the_cut, emitted_rows_are_true
from mssql_cdc_tests.storm.lake import WRITES, connector_for
from mssql_cdc_tests.storm.model_lake import ModelLake
from mssql_cdc_tests.storm.model_server import ModelServer
from mssql_cdc_tests.storm.worlds import KEYED, KEYLESS, Change, Interruption


class ModelWorld:
    """A world without a server and without Spark."""

    merges = False
    keyed = KEYED
    writes = WRITES

    def __init__(self, folder: Path) -> None:
        self.server = ModelServer(*KEYED, keyless=KEYLESS)
        self.lake = ModelLake()
        self.interruption = Interruption(cast("Source", self.server), self.server.object_id, inside=True)
        self.shown: dict[tuple[int, int], int] = {}
        """The newest change of a table that the committed chunks of a snapshot have shown, by its number and table."""
        self._committed = 0, 0
        self._folder = folder
        self.configure()

    def configure(self, **properties: str) -> None:
        session: Any = None
        connector = connector_for(self._folder, **properties)
        self.database = Database.of(connector, "shop", spark=lambda: session, source=cast("Source", self.interruption))

    def change(self, *changes: Change) -> None:
        self.server.change(*changes)

    def move(self, name: str, key: int, to: int) -> None:
        self.server.move(name, key, to)

    def begin_scan(self) -> None:
        self.server.begin_scan()

    def scan(self, most: int) -> None:
        self.server.scan(most)

    def beat(self) -> None:
        """The model shows its scans."""

    def fork_is_hidden(self) -> bool:
        return self.server.hides_fork

    def hide_fork(self) -> None:
        self.server.hides_fork = True

    def restart(self) -> None:
        self.server.restart()

    def enable(self, name: str, *, more: bool = False) -> None:
        self.server.enable(name, more=more)

    def disable(self, name: str, *, oldest_only: bool = False) -> None:
        self.server.disable(name, oldest_only=oldest_only)

    def dark(self) -> set[str]:
        return {name for name, table in self.server.tables.items() if not table.instances}

    def drop_and_create(self, name: str) -> None:
        self.server.drop_and_create(name)

    def rename(self, name: str, to: str) -> None:
        self.server.rename(name, to)

    def clean_up(self, kept: int, *, only: str | None = None) -> None:
        self.server.clean_up(kept, only=only)

    def back_up(self) -> None:
        self.server.back_up()

    def restore(self) -> None:
        self.server.bring_back()
        self.shown.clear()

    def rows(self, name: str) -> Counter[tuple[int, str]]:
        return Counter(self.server.tables[name].rows.items())

    def captured_events(self, name: str) -> Counter[str]:
        return Counter(lsn(at).text for at, table in self.server.taken if table == name)

    def captured_columns_by_event(self, name: str) -> Mapping[str, Collection[str]]:
        return {lsn(at).text: columns for (at, table), columns in self.server.structures.items() if table == name}

    def check_emitted(self, name: str, log: Sequence[Mapping[str, Any]]) -> None:
        emitted_rows_are_in_the_cut(self.database, name, log)
        epoch = self.database.offsets().epoch  # Rows of an earlier one are of a history that is gone.
        mine = [row for row in log if row["_pos"].startswith(f"{epoch:04x}-")]
        emitted_rows_are_true(name, mine, self.server.rows_at)

    def is_read(self, object_id: int, number: int, end: Lsn, position: Lsn) -> bool:
        up_to = max(number_of(end), self.shown.get((number, object_id), 0))
        name = next((name for name in self.server.tables if self.server.object_id(name) == object_id), None)
        if name is None:
            return True  # It was made anew since.
        changes = {at for at, of, _ in self.server.log if of == name and at <= up_to and at in self.server.history}
        taken = (at for at, of in self.server.taken if of == name and at <= up_to)
        return max(changes, default=0) <= self.server.captured and max(taken, default=0) <= number_of(position)

    @contextmanager
    def open(self) -> Iterator[None]:
        with (
            self.lake.opened(),
            patch("mssql_cdc.capture.range.run_tasks", here),
            patch("mssql_cdc.capture.write_task.run_here", partial(here, None)),
            patch("mssql_cdc.capture.range.in_threads", _in_turn),
            patch("mssql_cdc.capture.snapshot.chunk_groups.run_tasks", here),
            patch.object(chunk_groups, "_read_group", self._noting(chunk_groups._read_group)),
            patch("mssql_cdc.capture.snapshot.take.read_locked_tables", self._noting(read_locked_tables)),
            patch.object(chunk_groups, "_commit", self._of_a_table(chunk_groups._commit)),
            patch.object(chunk_groups, "commit", self._commit),
        ):
            yield

    def _noting(self, read: Callable[..., Any]) -> Callable[..., Any]:
        """A read of chunks in which the server notes what it shows to this run, and to no other one."""

        def told(*arguments: Any, **more: Any) -> Any:
            others, self.server.shown = self.server.shown, {}
            try:
                return read(*arguments, **more)
            finally:
                self.server.shown = others

        return told

    def _of_a_table(self, commit: Callable[..., None]) -> Callable[..., None]:
        """A commit of chunks, which knows the snapshot's number and the table."""

        def told(run: Run, table: TableId, *arguments: Any) -> None:
            others, self._committed = self._committed, (run.plan.number, run.schemas[table].object_id or 0)
            try:
                commit(run, table, *arguments)
            finally:
                self._committed = others

        return told

    def _commit(self, *arguments: Any, **more: Any) -> TableState:
        """What the chunks have shown counts once they are committed."""
        shown = self.server.shown.get(self._committed, 0)
        after = commit(*arguments, **more)
        self.shown[self._committed] = max(self.shown.get(self._committed, 0), shown)
        return after


def _in_turn(actions: Sequence[Callable[[], Any]]) -> list[Any]:
    """`spark.tasks.in_threads` without threads: a schedule decides who runs."""
    return [action() for action in actions]


def here(
    _session: object,
    tasks: Sequence[Any],
    function: Callable[[Any], Mapping[str, Any]],
    *,
    most: int | None = None,
    owners: Sequence[object] | None = None,
) -> list[TaskResult]:
    """`spark.tasks.run_tasks` in this process, one task after another whatever `most` allows."""
    assert most is None or most > 0
    assert owners is None or len(owners) == len(tasks)
    found: list[TaskResult] = []
    for task in tasks:
        try:
            found.append(TaskResult(function(task), None))
        except MssqlCdcError as error:
            found.append(TaskResult(None, error))
    return found
