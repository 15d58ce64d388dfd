"""The index of a large data file finds what its `_key` column holds."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq
import pytest
from deltalake.fs import DeltaStorageHandler
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.lake import key_index
from mssql_cdc.lake.data_file import DataFile
from mssql_cdc.lake.key_index import find, index_path, key_hashes, remove_unused
from mssql_cdc.lake.live_file import LiveFile
from mssql_cdc.lake.storage import file_system
from mssql_cdc.lake.table_log import load_log
from mssql_cdc_tests.lake_kit import Change, append, change_log, home_in
from mssql_cdc_tests.unit.lake.test_current_tables import SCHEMA, apply, newest, rows


@given(texts=st.lists(st.text(max_size=40), unique=True), seed=st.integers(0, 2**64 - 1))
def test_hashes_depend_on_the_text_alone(texts: list[str], seed: int):
    together = key_hashes(pa.array(["before", *texts, "behind"], pa.string()).slice(1, len(texts)), seed)
    for number, text in enumerate(texts):
        alone = key_hashes(pa.array([text]), seed)
        assert (together[0][number], together[1][number]) == (alone[0][0], alone[1][0])
    assert len(set(zip(*(part.tolist() for part in together), strict=True))) == len(texts)


def test_hashes_of_many_similar_keys_differ_and_spread():
    keys = pa.array([f"{len(str(n))}:{n}" for n in range(300_000)])
    first, second = key_hashes(keys, 7)
    assert len(np.unique(first)) == len(keys)
    assert len(np.unique(second)) > 0.999 * len(keys)
    counts = np.bincount((first >> np.uint64(56)).astype(int), minlength=256)
    assert counts.min() > 0.8 * counts.mean()


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataFile:
    home = home_in(tmp_path)
    new = [Change(1, "c", after={"id": n, "name": "a"}, sequence=n + 1) for n in range(2000)]
    state = append(change_log(home, SCHEMA), SCHEMA, *new)
    apply(home, state.batch, "true")
    log = newest(home)
    (file,) = log.files.values()
    return DataFile(file, log.schema_json, file_system(home.current))


def test_find_gives_the_rows_of_the_keys_it_knows(table: DataFile, tmp_path: Path):
    keys = table.column("_key").combine_chunks()
    picked = random.Random(3).sample(range(2000), 50)
    wanted = pa.concat_arrays([keys.take(pa.array(picked)), pa.array(["4:9999", "", "no key"])])
    uri = home_in(tmp_path).current
    for _ in range(2):  # The second time from the file.
        found, which = find(table, wanted, uri, file_system(uri))
        assert found.tolist() == sorted(picked)
        assert [picked[number] for number in which.tolist()] == sorted(picked)
    assert (Path(uri) / index_path(table.file.name)).is_file()


def test_the_index_of_a_file_in_an_object_store_is_built_and_read(table: DataFile, tmp_path: Path):
    uri = Path(home_in(tmp_path).current).as_uri()
    store = pa_fs.PyFileSystem(DeltaStorageHandler(uri))
    # Any URI but a file's is a store's.
    remote = uri.replace("file:", "s3:")
    built = key_index._build(table, remote, store)
    found = key_index._read(table, remote, store)
    assert found is not None
    assert bytes(found) == bytes(built)
    assert find(table, pa.array(["1:7"]), remote, store)[0].tolist() == [7]


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * (24 + 16 * 2000)])
def test_a_damaged_index_is_built_again(table: DataFile, tmp_path: Path, damage: bytes):
    uri = home_in(tmp_path).current
    path = Path(uri) / index_path(table.file.name)
    path.parent.mkdir()
    path.write_bytes(damage)
    assert len(find(table, pa.array(["1:7"]), uri, file_system(uri))[0]) == 1
    assert path.read_bytes()[:8] == b"mssqlidx"


def test_an_index_that_is_built_again_leaves_the_one_that_is_read_as_it_was(
    table: DataFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Two tasks that find none build one each, with seeds of their own; a third may be reading the first."""
    uri = home_in(tmp_path).current
    keys, system = table.column("_key").combine_chunks().slice(3, 5), file_system(uri)
    find(table, keys, uri, system)
    hashes, built = key_index.key_hashes, list[bool]()

    def meanwhile(some: pa.Array, seed: int) -> tuple[key_index.Hashes, np.ndarray]:
        if not built:
            built.append(True)
            key_index._build(table, uri, system)
        return hashes(some, seed)

    monkeypatch.setattr(key_index, "key_hashes", meanwhile)
    assert find(table, keys, uri, system)[0].tolist() == [3, 4, 5, 6, 7]
    assert built
    assert [path.name for path in Path(uri, "_index").iterdir()] == [f"{table.file.name}.idx"]


def test_keys_that_share_half_of_their_hash_are_told_apart(
    table: DataFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    hashes = key_index.key_hashes
    monkeypatch.setattr(
        key_index, "key_hashes", lambda keys, seed: (hashes(keys, seed)[0] // 2**58, hashes(keys, seed)[1])
    )
    keys = table.column("_key").combine_chunks()
    uri = home_in(tmp_path).current
    found, which = find(table, keys, uri, file_system(uri))
    assert found.tolist() == which.tolist() == list(range(2000))


def test_find_gives_every_row_of_a_key_that_a_user_has_doubled(table: DataFile, tmp_path: Path):
    """The next change of the row removes them all (docs/lake.md); one of each file was left."""
    home = home_in(tmp_path)
    path = Path(home.current, table.file.name)
    stored = pq.read_table(path)
    pq.write_table(pa.concat_tables([stored, stored, stored.slice(7, 1)]), path)
    facts = {**table.file.facts, "numRecords": 4001}
    double = DataFile(
        LiveFile.of_add({**table.file.add()["add"], "stats": json.dumps(facts)}),
        newest(home).schema_json,
        file_system(home.current),
    )
    found, which = find(double, pa.array(["1:7", "no key", "1:9"]), home.current, file_system(home.current))
    assert list(zip(found.tolist(), which.tolist(), strict=True)) == [(7, 0), (9, 2), (2007, 0), (2009, 2), (4000, 0)]


def test_folds_with_an_index_give_the_same_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mssql_cdc.lake.look_up.INDEXED_ROWS", 100)
    home = home_in(tmp_path)
    model: dict[int, tuple[str, None]] = dict.fromkeys(range(500), ("a", None))
    new = [Change(1, "c", after={"id": n, "name": "a"}, sequence=n + 1) for n in model]
    state = append(change_log(home, SCHEMA), SCHEMA, *new)
    apply(home, state.batch, "true")
    for at in range(2, 12):
        key = at * 31
        model[key] = (f"v{at}", None)
        after = {"id": key, "name": f"v{at}"}
        gone = {"id": at}
        del model[at]
        state = append(state, SCHEMA, Change(at, "u", after, after), Change(at, "d", gone, sequence=2))
        apply(home, state.batch, "true")
        assert rows(home) == model
    assert list(Path(home.current, "_index").iterdir())


def test_unused_indexes_are_removed_when_they_are_old(table: DataFile, tmp_path: Path):
    home = home_in(tmp_path)
    system = file_system(home.current)
    find(table, pa.array(["1:7"]), home.current, system)
    orphan = Path(home.current, "_index", "part-gone.parquet.idx")
    orphan.write_bytes(b"x")
    assert remove_unused(home.current, retain_hours=1) == 0
    old = time.time() - 7200
    for path in orphan.parent.iterdir():
        os.utime(path, (old, old))
    assert remove_unused(home.current, retain_hours=1) == 1
    assert [path.name for path in orphan.parent.iterdir()] == [f"{table.file.name}.idx"]
    assert remove_unused(home.changes, retain_hours=1) == 0
    assert load_log(home.current) is not None
