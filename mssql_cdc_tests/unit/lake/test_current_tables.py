"""Current tables without Spark: any history, told in any sections, by any number of writers, is the same table."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mssql_cdc.errors import FencedError, MssqlCdcError, OvertakenError, StorageError
from mssql_cdc.lake import current
from mssql_cdc.lake.apply_task import Applied, apply_task
from mssql_cdc.lake.checkpoints import checkpoint
from mssql_cdc.lake.current import CurrentRequest, CurrentResult, CurrentTables
from mssql_cdc.lake.current_logs import CurrentLogs
from mssql_cdc.lake.current_table import Vectors
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.log import load_state
from mssql_cdc.lake.read import query
from mssql_cdc.lake.table_log import TableLog, load_log
from mssql_cdc_tests.examples import examples
from mssql_cdc_tests.lake_kit import Change, append, applied_batch, change_log, home_in, orders

Model = dict[int, tuple[str, str | None]]
KEYS = 40
SCHEMA = orders()


def no_spark() -> NoReturn:
    raise AssertionError("Spark was started")


def tables(logs: CurrentLogs | None = None) -> CurrentTables:
    return CurrentTables(no_spark, logs=logs)


def apply(home: TableHome, up_to: int, vectors: Vectors = "auto", logs: CurrentLogs | None = None) -> CurrentResult:
    (result,) = tables(logs).apply_all([CurrentRequest(home, [SCHEMA], up_to, vectors)])
    if isinstance(result, MssqlCdcError):
        raise result
    return result


def rows(home: TableHome) -> Model:
    found: Model = {}
    for batch in query(home.current, "SELECT id, name, note, _unavailable FROM t"):
        for row in batch.to_pylist():
            assert row["id"] not in found, "a key twice"
            assert row["_unavailable"] is None
            found[row["id"]] = (row["name"], row["note"])
    return found


def newest(home: TableHome) -> TableLog:
    log = load_log(home.current)
    assert log is not None
    return log


def mutate(random_: random.Random, model: Model, at: int, count: int) -> list[Change]:
    """Changes that turn the model into another one, and the model turned."""
    found: list[Change] = []
    for sequence in range(1, count + 1):
        key, text = random_.randrange(KEYS), f"{at}.{sequence}"
        note = random_.choice([None, "", "ünï", text * 20])
        old = {"id": key, "name": "?", "note": None}
        if key not in model:
            model[key] = (text, note)
            found.append(Change(at, "c", after={"id": key, "name": text, "note": note}, sequence=sequence))
        elif random_.random() < 0.3:
            del model[key]
            found.append(Change(at, "d", old, sequence=sequence))
        elif random_.random() < 0.2:
            note = model[key][1]
            model[key] = (text, note)
            after = {"id": key, "name": text, "note": None}
            found.append(Change(at, "u", old, after, unavailable=["note"], sequence=sequence))
        else:
            model[key] = (text, note)
            found.append(Change(at, "u", old, {"id": key, "name": text, "note": note}, sequence=sequence))
    return found


@settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), modes=st.lists(st.sampled_from(["auto", "true", "false"]), min_size=1, max_size=12))
def test_any_history_in_any_sections_is_the_model(
    tmp_path_factory: pytest.TempPathFactory, seed: int, modes: list[Vectors]
):
    random_, model, logs = random.Random(seed), Model(), CurrentLogs()
    home = home_in(tmp_path_factory.mktemp("lake"))
    state = change_log(home, SCHEMA)
    for at, vectors in enumerate(modes, start=1):
        for part in range(random_.randint(1, 3)):
            state = append(state, SCHEMA, *mutate(random_, model, 10 * at + part, random_.randint(1, 30)))
        apply(home, state.batch, vectors, logs if random_.random() < 0.7 else None)
        assert rows(home) == model
        log = newest(home)
        assert log.rows == len(model)
        if random_.random() < 0.3:
            checkpoint(home.current)
            again = newest(home)
            assert (again.version, again.files.keys(), again.txns) == (log.version, log.files.keys(), log.txns)
            assert (again.metadata, dict(again.protocol)) == (log.metadata, dict(log.protocol))
            assert {file.vector for file in again.files.values()} == {file.vector for file in log.files.values()}


@pytest.mark.long
def test_folds_keep_few_files_and_write_little(tmp_path: Path):
    """Small files are absorbed: their number grows with the table's logarithm, not with the folds."""
    home, logs, random_ = home_in(tmp_path), CurrentLogs(), random.Random(1)
    state = change_log(home, SCHEMA)
    everything = [Change(1, "c", after={"id": n, "name": "a", "note": None}, sequence=n + 1) for n in range(3000)]
    state = append(state, SCHEMA, *everything)
    apply(home, state.batch, "true", logs)
    counts: list[int] = []
    for at in range(2, 62):
        picked = random_.sample(range(3000), 5)
        after = [{"id": n, "name": f"{at}", "note": None} for n in picked]
        state = append(state, SCHEMA, *(Change(at, "u", row, row, sequence=n + 1) for n, row in enumerate(after)))
        apply(home, state.batch, "true", logs)
        counts.append(len(newest(home).files))
    assert max(counts) <= 8
    assert newest(home).rows == len(rows(home)) == 3000


def test_a_table_that_needs_no_vectors_gets_none_and_a_large_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home, state = home_in(tmp_path), change_log(home_in(tmp_path), SCHEMA)
    first = [Change(1, "c", after={"id": n, "name": "a", "note": None}, sequence=n + 1) for n in range(500)]
    state = append(state, SCHEMA, *first)
    apply(home, state.batch)
    row = {"id": 7, "name": "b", "note": None}
    state = append(state, SCHEMA, Change(2, "u", row, row))
    apply(home, state.batch)
    assert DeltaTable(home.current).to_pyarrow_dataset().count_rows() == 500
    monkeypatch.setattr("mssql_cdc.lake.apply_task.SMALL_ROWS", 400)
    state = append(state, SCHEMA, Change(3, "d", row))
    apply(home, state.batch)
    log = newest(home)
    assert (log.has_vectors, len(log.files), log.rows) == (True, 1, 499)
    assert log.protocol["readerFeatures"] == ["deletionVectors"]
    assert {"appendOnly", "deletionVectors", "invariants"} == set(log.protocol["writerFeatures"])
    assert len(rows(home)) == 499


def test_a_small_file_that_nothing_changed_is_read_only_when_it_is_absorbed(tmp_path: Path):
    home, state = home_in(tmp_path), change_log(home_in(tmp_path), SCHEMA)
    for at in (1, 2):
        new = [Change(at, "c", after={"id": 100 * at + n, "name": "a"}, sequence=n + 1) for n in range(60 // at**5)]
        state = append(state, SCHEMA, *new)
        apply(home, state.batch, "true")
    assert len(newest(home).files) == 2


def created(at: int, keys: range) -> list[Change]:
    return [Change(at, "c", after={"id": n, "name": "a", "note": None}, sequence=n + 1) for n in keys]


# -- Several writers --------------------------------------------------------------------------------


def plan_of(home: TableHome, up_to: int, vectors: Vectors = "true") -> Callable[[], CurrentResult]:
    """A fold whose files are written, and whose commit is still to come."""
    writer = tables()
    plan = writer._plan(CurrentRequest(home, [SCHEMA], up_to, vectors))
    assert isinstance(plan, current.Planned)
    applied = Applied.from_value(apply_task(plan.task))
    return lambda: writer._commit(plan, applied)


def grown(home: TableHome, *, count: int = 100) -> Any:
    state = change_log(home, SCHEMA)
    new = [Change(1, "c", after={"id": n, "name": "a", "note": None}, sequence=n + 1) for n in range(count)]
    state = append(state, SCHEMA, *new)
    apply(home, state.batch, "true")
    row = {"id": 7, "name": "b", "note": None}
    return append(state, SCHEMA, Change(2, "u", row, row))


def test_the_later_of_two_writers_is_fenced(tmp_path: Path):
    home = home_in(tmp_path)
    state = grown(home)
    late = plan_of(home, state.batch)
    apply(home, state.batch)
    with pytest.raises(FencedError, match="nothing"):
        late()
    assert len(rows(home)) == 100


@pytest.mark.parametrize("vectors", ["auto", "true", "false"])
def test_a_writer_that_goes_further_than_its_rival_leaves_out_what_that_has_written(tmp_path: Path, vectors: Vectors):
    """Inserts touch no file that the other one has planned with: only the txn tells."""
    home = home_in(tmp_path)
    state = change_log(home, SCHEMA)
    state = append(state, SCHEMA, *created(1, range(500)))
    apply(home, state.batch, vectors)
    between = append(state, SCHEMA, *created(2, range(1000, 1010)))
    state = append(between, SCHEMA, *created(3, range(2000, 2010)))
    late = plan_of(home, state.batch, vectors)
    apply(home, between.batch, vectors)
    with pytest.raises(OvertakenError, match=f"batch {between.batch}"):
        late()
    assert len(rows(home)) == 510
    assert apply(home, state.batch, vectors).rows == 10
    assert len(rows(home)) == newest(home).rows == 520


def test_a_rival_that_was_faster_by_a_part_is_continued_in_the_same_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, *created(1, range(500)))
    apply(home, state.batch, "true")
    between = append(state, SCHEMA, *created(2, range(1000, 1010)))
    state = append(between, SCHEMA, *created(3, range(2000, 2010)))
    run_here, overtaken = current.run_here, list[bool]()

    def faster(*arguments: Any) -> Any:
        found = run_here(*arguments)
        if not overtaken:
            overtaken.append(True)
            apply(home, between.batch, "true")
        return found

    monkeypatch.setattr(current, "run_here", faster)
    assert apply(home, state.batch, "true").rows == 10
    assert len(rows(home)) == newest(home).rows == 520


def test_two_writers_that_create_the_table_make_one(tmp_path: Path):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, Change(1, "c", after={"id": 1, "name": "a"}))
    late = plan_of(home, state.batch)
    assert apply(home, state.batch).delta_version == 0
    with pytest.raises(OvertakenError, match="created"):
        late()
    assert rows(home) == {1: ("a", None)}


def test_a_replay_of_an_applied_section_changes_nothing(tmp_path: Path):
    home = home_in(tmp_path)
    state = grown(home)
    done = apply(home, state.batch)
    assert apply(home, state.batch) == replace(done, rows=0)
    assert apply(home, state.batch - 1).rows == 0


def _compact(home: TableHome) -> None:
    """As OPTIMIZE does it: the same rows in another file."""
    log = newest(home)
    entries = [file.remove(log.committed) for file in log.files.values() if log.committed]  # type: ignore[union-attr]
    (file,) = log.files.values()
    (Path(home.current) / "moved.parquet").write_bytes((Path(home.current) / file.name).read_bytes())
    add = file.add()
    add["add"]["path"] = "moved.parquet"
    _commit(home, [*entries, add])


def _commit(home: TableHome, actions: list[dict[str, Any]]) -> None:
    import json

    path = Path(home.current, "_delta_log", f"{newest(home).version + 1:020}.json")
    path.write_text("\n".join(json.dumps(action) for action in actions))


def test_a_file_that_was_rewritten_meanwhile_is_looked_up_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = home_in(tmp_path)
    state = grown(home)
    late = plan_of(home, state.batch)
    _compact(home)
    with pytest.raises(OvertakenError, match="rewritten"):
        late()
    run_here, compacted = current.run_here, list[bool]()

    def compact_meanwhile(*arguments: Any) -> Any:
        found = run_here(*arguments)
        if not compacted:
            compacted.append(True)
            (Path(home.current) / "moved.parquet").rename(Path(home.current) / "moved_before.parquet")
            _commit_rename(home)
        return found

    monkeypatch.setattr(current, "run_here", compact_meanwhile)
    assert apply(home, state.batch).rows == 1
    assert rows(home)[7] == ("b", None)
    assert len(rows(home)) == 100


def _commit_rename(home: TableHome) -> None:
    log = newest(home)
    (file,) = log.files.values()
    assert log.committed is not None
    add = file.add()
    add["add"]["path"] = "moved_before.parquet"
    _commit(home, [file.remove(log.committed), add])


def test_a_commit_that_touches_other_files_does_not_disturb(tmp_path: Path):
    home = home_in(tmp_path)
    state = grown(home)
    late = plan_of(home, state.batch)
    _commit(home, [{"commitInfo": {"timestamp": 1, "operation": "VACUUM END"}}])
    assert late().delta_version == 2
    assert rows(home)[7] == ("b", None)


def test_another_schema_meanwhile_is_a_conflict(tmp_path: Path):
    home = home_in(tmp_path)
    state = grown(home)
    late = plan_of(home, state.batch)
    _commit(home, [{"metaData": {**newest(home).metadata, "description": "mine"}}])
    with pytest.raises(OvertakenError, match="metadata"):
        late()
    assert apply(home, state.batch).rows == 1
    assert newest(home).metadata["description"] == "mine"


def test_an_answer_that_was_lost_is_recognized_as_our_own_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from mssql_cdc.lake.object_store import Folder

    home = home_in(tmp_path)
    state = grown(home)
    put_new = Folder.put_new

    def lost(folder: Folder, path: str, content: bytes) -> bool:
        put_new(folder, path, content)
        return False

    monkeypatch.setattr(Folder, "put_new", lost)
    assert apply(home, state.batch).delta_version == 1
    assert newest(home).version == 1


def test_a_table_of_another_connector_is_refused(tmp_path: Path):
    home = home_in(tmp_path)
    state = grown(home)
    with pytest.raises(StorageError, match="belongs to"):
        apply(replace(home, app_id="mssql_cdc:other"), state.batch)


def test_a_table_that_was_removed_is_created_again(tmp_path: Path):
    import shutil

    home, logs = home_in(tmp_path), CurrentLogs()
    state = grown(home)
    apply(home, state.batch, logs=logs)
    shutil.rmtree(home.current)
    assert apply(home, state.batch, logs=logs).delta_version == 0
    assert len(rows(home)) == 100


def test_one_broken_table_leaves_the_others_alone(tmp_path: Path):
    good, bad = home_in(tmp_path / "good"), home_in(tmp_path / "bad")
    up_to = [grown(home).batch for home in (good, bad)]
    for file in Path(bad.changes).glob("*.parquet"):
        file.unlink()
    first, second = tables().apply_all(
        [CurrentRequest(home, [SCHEMA], number, "auto") for home, number in zip((bad, good), up_to, strict=True)]
    )
    assert isinstance(first, MssqlCdcError)
    assert isinstance(second, CurrentResult)


def test_a_gap_in_the_log_is_an_error(tmp_path: Path):
    home = home_in(tmp_path)
    state = grown(home)
    apply(home, state.batch)
    log = Path(home.current, "_delta_log")
    for file in log.glob("*checkpoint*"):
        file.unlink()
    (log / f"{0:020}.json").rename(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="lacks the commit 0"):
        load_log(home.current)


# -- What only Spark may write ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "because"),
    [
        ({"configuration": {"delta.enableChangeDataFeed": "true"}}, "change data feed"),
        ({"configuration": {"delta.enableRowTracking": "true"}}, "row tracking"),
        ({"configuration": {"delta.enableInCommitTimestamps": "true"}}, "in-commit timestamps"),
        ({"configuration": {"delta.enableInCommitTimestamps": "TRUE"}}, "in-commit timestamps"),
        ({"configuration": {"delta.appendOnly": "True"}}, "append-only"),
        ({"configuration": {"delta.constraints.positive": "id > 0"}}, "constraints"),
        ({"schemaString": '{"fields":[{"name":"id","metadata":{"delta.generationExpression":"1"}}]}'}, "generation"),
        ({"schemaString": '{"fields":[{"name":"id","metadata":{"delta.identity.start":1}}]}'}, "identity values"),
        ({"schemaString": '{"fields":[{"name":"id","metadata":{"CURRENT_DEFAULT":"1"}}]}'}, "a default"),
        ({"schemaString": '{"fields":[{"name":"id","metadata":{"delta.invariants":"1"}}]}'}, "an invariant"),
    ],
)
def test_a_table_with_features_that_only_spark_writes_says_so(tmp_path: Path, action: dict[str, Any], because: str):
    home = home_in(tmp_path)
    grown(home)
    log = newest(home)
    assert log.writable() is None
    if "configuration" in action:
        action = {"configuration": {**log.properties, **action["configuration"]}}
    _commit(home, [{"metaData": {**log.metadata, **action}}])
    assert because in (newest(home).writable() or "")


@pytest.mark.parametrize(
    ("action", "because"),
    [
        ({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["new"]}}, "new"),
        ({"protocol": {"minReaderVersion": 4, "minWriterVersion": 8}}, "newer protocol"),
        ({"add": {"path": "s3://elsewhere/x.parquet", "size": 1, "dataChange": True}}, "shallow clone"),
    ],
)
def test_a_table_with_a_foreign_protocol_says_so(tmp_path: Path, action: dict[str, Any], because: str):
    home = home_in(tmp_path)
    grown(home)
    _commit(home, [action])
    assert because in (newest(home).writable() or "")


@pytest.mark.parametrize(
    ("suspended", "because"), [(None, "row ids"), ("false", "row ids"), ("true", None), ("True", None)]
)
def test_a_table_whose_files_have_row_ids_is_sparks_unless_these_are_suspended(
    tmp_path: Path, suspended: str | None, because: str | None
):
    """Delta asks for `baseRowId` in each file as soon as the feature is supported, whether or not it is enabled."""
    home = home_in(tmp_path)
    grown(home)
    log = newest(home)
    protocol = {**log.protocol, "minWriterVersion": 7, "writerFeatures": ["domainMetadata", "rowTracking"]}
    more = {} if suspended is None else {"delta.rowTrackingSuspended": suspended}
    off = {**log.properties, "delta.enableRowTracking": "false", **more}
    _commit(home, [{"protocol": protocol}, {"metaData": {**log.metadata, "configuration": off}}])
    found = newest(home).writable()
    assert found is None if because is None else because in (found or "")


@pytest.mark.parametrize("value", ["true", "True", "TRUE"])
def test_a_table_that_its_user_gave_deletion_vectors_keeps_them(tmp_path: Path, value: str):
    home = home_in(tmp_path)
    state = grown(home)
    log = newest(home)
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    protocol |= {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    configuration = {**log.properties, "delta.enableDeletionVectors": value}
    _commit(home, [{"protocol": protocol}, {"metaData": {**log.metadata, "configuration": configuration}}])
    assert newest(home).has_vectors
    apply(home, state.batch)
    assert newest(home).properties["delta.enableDeletionVectors"] == value


def test_a_feature_that_was_switched_off_again_is_no_reason(tmp_path: Path):
    home = home_in(tmp_path)
    state = grown(home)
    log = newest(home)
    features = ["changeDataFeed", "clustering", "deletionVectors", "domainMetadata"]
    _commit(home, [{"protocol": {**log.protocol, "writerFeatures": features}}])
    assert newest(home).writable() is None
    assert apply(home, state.batch).rows == 1


# -- Killed at any moment ---------------------------------------------------------------------------

_VICTIM = """
import sys
from mssql_cdc_tests.unit.lake.test_current_tables import SCHEMA, apply, change_log, home_in
home = home_in(sys.argv[1])
for batch in range(1, change_log(home, SCHEMA).batch + 1):
    apply(home, batch, "true" if batch % 3 else "auto")
"""


@pytest.mark.long
@pytest.mark.slow
def test_a_writer_that_is_killed_at_any_moment_leaves_a_whole_table(tmp_path: Path):
    random_, model = random.Random(5), Model()
    home = home_in(tmp_path)
    state = change_log(home, SCHEMA)
    for at in range(1, 61):
        state = append(state, SCHEMA, *mutate(random_, model, at, 12))
    kills = 0
    for _ in range(8):
        process = subprocess.Popen([sys.executable, "-c", _VICTIM, str(tmp_path)], stderr=subprocess.PIPE)
        before = _progress(home)
        deadline = time.monotonic() + 60
        while process.poll() is None and _progress(home) < before + 2 and time.monotonic() < deadline:
            time.sleep(random_.random() * 0.01)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        _, said = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL), said.decode()
        if process.returncode == 0:
            break
    apply(home, state.batch)
    assert kills >= 5
    assert rows(home) == model
    versions = sorted(int(path.stem) for path in Path(home.current, "_delta_log").glob("*[0-9].json"))
    assert versions == list(range(len(versions)))


def _progress(home: TableHome) -> int:
    return len(list(Path(home.current, "_delta_log").glob("*[0-9].json")))


def test_progress_is_read_without_the_log_reader(tmp_path: Path):
    home = home_in(tmp_path)
    state = grown(home)
    apply(home, state.batch)
    assert applied_batch(home, SCHEMA) == state.batch
    assert load_state(home.current, owner=f"{home.app_id}:current") is not None
