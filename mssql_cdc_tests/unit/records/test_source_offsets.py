"""Which offset of a file counts: each database has one, whatever else the file has."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lsn import Lsn
from mssql_cdc.records.offset_files import read_offsets
from mssql_cdc.records.source_offsets import SourceOffset, parse_offsets
from mssql_cdc_tests.unit.config.samples import connector_with

FORMS = ["json", "dat"]
Entry = tuple[str | None, str | None]
"""A database (None: the partition has none) and its commit (None: the partition has no offset)."""


def lsn(number: str) -> str:
    return f"00000027:00000ac0:{number:>04}"


def offsets(path: Path, form: str, *entries: Entry) -> Path:
    """A file of offsets, as Kafka Connect prints it, or as an engine stores it."""
    pairs: list[tuple[dict[str, Any], dict[str, Any] | None]] = [
        (
            {"server": "server1"} | ({} if database is None else {"database": database}),
            None if commit is None else {"commit_lsn": lsn(commit), "event_serial_no": 1},
        )
        for database, commit in entries
    ]
    if form == "json":
        shown = [{"partition": partition, "offset": offset} for partition, offset in pairs]
        path.write_text(json.dumps({"offsets": shown}))
    else:
        arrays = [json.dumps(one).encode() for partition, offset in pairs for one in (["name", partition], offset)]
        described = b"ur\x00\x02[B\xac\xf3\x17\xf8\x06\x08\x54\xe0\x02\x00\x00xp"
        content = b"".join(
            (b"uq\x00~\x00\x04" if place else described) + len(one).to_bytes(4, "big") + one
            for place, one in enumerate(arrays)
        )
        path.write_bytes(b"\xac\xed\x00\x05" + content)
    return path


def found(path: Path, names: str, form: str, *entries: Entry) -> tuple[dict[str, Lsn | None], list[str]]:
    """The commit of each database, and what is said."""
    said: list[str] = []
    connector = connector_with({"topic.prefix": "server1", "database.names": names})
    read = read_offsets(offsets(path / "offsets", form, *entries), connector, log=said.append)
    return {name: one.commit for name, one in read.items()}, said


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("entries", [*permutations([(None, "1"), ("shop", "2")])], ids=["old first", "new first"])
def test_an_offset_with_a_database_counts_before_one_without(tmp_path: Path, form: str, entries: tuple[Entry, ...]):
    """A connector for one database had none before Debezium 2.0, and Kafka Connect keeps both."""
    assert found(tmp_path, "shop", form, *entries) == ({"shop": Lsn.parse(lsn("2"))}, [])


@pytest.mark.parametrize("form", FORMS)
def test_an_offset_without_a_database_is_that_of_the_only_one(tmp_path: Path, form: str):
    assert found(tmp_path, "shop", form, (None, "1")) == ({"shop": Lsn.parse(lsn("1"))}, [])
    with pytest.raises(ConfigurationError, match=r"name no database; database\.names has a, b"):
        found(tmp_path, "a,b", form, (None, "1"))
    with pytest.raises(ConfigurationError, match=r"name the database other; database\.names has shop"):
        found(tmp_path, "shop", form, (None, "1"), ("other", "2"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("entries", [*permutations([("shop", "1"), ("SHOP", "2")])], ids=["first", "second"])
def test_two_offsets_of_one_database_that_differ_are_refused(tmp_path: Path, form: str, entries: tuple[Entry, ...]):
    with pytest.raises(ConfigurationError, match=r"(?i)two offsets of the database shop"):
        found(tmp_path, "shop", form, *entries)


@pytest.mark.parametrize("form", FORMS)
def test_two_offsets_of_one_database_that_are_equal_are_one(tmp_path: Path, form: str):
    assert found(tmp_path, "Shop", form, ("shop", "1"), ("SHOP", "1"), ("shop", None))[0] == {
        "Shop": Lsn.parse(lsn("1"))
    }


@pytest.mark.parametrize("form", FORMS)
def test_a_connector_of_one_of_several_databases_takes_its_own_offset_and_names_the_others(tmp_path: Path, form: str):
    """Two tasks of one connector move to two processes: each gets the file with both."""
    both: tuple[Entry, ...] = (("a", "1"), ("b", "2"), (None, "3"))
    for name, other, commit in (("a", "b", "1"), ("b", "a", "2")):
        own, (said,) = found(tmp_path, name, form, *both)
        assert own == {name: Lsn.parse(lsn(commit))}
        assert said == f"The offsets of other databases are left out: database.names does not have {other}"
    assert found(tmp_path, "a,b", form, *both)[1] == []


@pytest.mark.parametrize("entries", [[("b", "1")], [("a", None), ("b", "1")], [("b", "1"), ("c", "2")]])
def test_offsets_of_other_databases_are_refused_where_an_own_one_is_missing(tmp_path: Path, entries: list[Entry]):
    """A name may be wrong."""
    with pytest.raises(ConfigurationError, match=r"The offsets name the database b(, c)?; database\.names has a"):
        found(tmp_path, "a", "json", *entries)


def test_a_consumer_commits_offsets_of_its_databases_only(tmp_path: Path):
    text = offsets(tmp_path / "offsets", "json", ("a", "1"), ("b", "2")).read_text()
    with pytest.raises(ConfigurationError, match=r"name the database b; database\.names has a"):
        parse_offsets(text, connector_with({"topic.prefix": "server1", "database.names": "a"}))


@pytest.mark.feature("STR-04")
@pytest.mark.parametrize(
    ("kind", "again"), [("INITIAL", True), (True, True), ("BLOCKING", False), ("INCREMENTAL", False)]
)
def test_only_an_initial_snapshot_begins_again(kind: object, again: bool):  # noqa: FBT001
    """A connector that was restarted writes the rows of an incremental snapshot with `snapshot_completed` false."""
    offset = {"snapshot": kind, "snapshot_completed": False, "commit_lsn": lsn("1")}
    assert SourceOffset.of(offset).begins_again == again
    assert not SourceOffset.of({**offset, "snapshot_completed": True}).begins_again


def test_a_kind_of_snapshot_that_there_is_not_is_refused():
    with pytest.raises(ConfigurationError, match="snapshot is SPARE; expected INITIAL, BLOCKING, INCREMENTAL"):
        SourceOffset.of({"snapshot": "SPARE", "snapshot_completed": False, "commit_lsn": lsn("1")})
