"""Commands from standard input: what they ask for, and of which database."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from mssql_cdc.capture.requests import SignalRow
from mssql_cdc.errors import ConfigurationError, StorageError
from mssql_cdc.records.offset_files import read_offsets
from mssql_cdc.records.source_offsets import SourceOffset
from mssql_cdc.serve.committed import CommittedOffsets
from mssql_cdc.serve.control import Commit, Control, parse_command
from mssql_cdc.serve.events import Events
from mssql_cdc_tests.unit.config.samples import connector_with


def test_a_command_is_parsed_or_refused_with_what_was_expected():
    connector = connector_with({"database.names": "shop"})
    prefix = connector.topic_prefix
    offset = {"partition": {"server": prefix, "database": "shop"}, "offset": {"commit_lsn": "00000027:00000ac0:0002"}}
    committed = parse_command(json.dumps({"command": "commit", "offsets": [offset]}), connector)
    assert isinstance(committed, Commit)
    assert committed.offsets["shop"].values == offset["offset"]
    line = json.dumps({"command": "signal", "id": 7, "type": "log", "data": {"message": "x"}})
    assert parse_command(line, connector) == SignalRow("7", "log", '{"message": "x"}')
    for wrong in ("{", "[]", '{"command": "dance"}', '{"command": "signal", "type": "log"}', '{"command": "commit"}'):
        with pytest.raises(ConfigurationError, match="expected"):
            parse_command(wrong, connector)


@pytest.mark.parametrize(
    "offset",
    [
        *("x", 7, [], [["commit_lsn", "x"]], {"commit_lsn": "x"}, {"transaction_data_collection_order_a": "x"}),
        {"commit_lsn": "00000027:00000ac0:0002", "event_serial_no": float("inf")},
        {"commit_lsn": "\ud800"},
    ],
)
def test_offsets_that_are_none_are_refused_and_the_next_command_is_carried_out(
    tmp_path: Path, offset: object, capfd: pytest.CaptureFixture[str]
):
    """They ended the thread: later commits and signals were ignored while the connector went on."""
    connector = connector_with({"database.names": "shop"})
    committed, reads_writes = CommittedOffsets(tmp_path, connector), os.pipe()
    entry = {"partition": {"server": connector.topic_prefix, "database": "shop"}, "offset": offset}
    with os.fdopen(reads_writes[0]) as stream, os.fdopen(reads_writes[1], "wb", buffering=0) as commands:
        control = Control(stream, connector, Events(sys.stderr), committed=committed)
        commands.write(json.dumps({"command": "commit", "offsets": [entry]}).encode() + b"\n")
        commands.write(_commit(connector.topic_prefix, 1) + b"\n")
        control.close()
    assert control.take() == []
    assert committed.read()["shop"].serial == 1
    assert "A command was refused: " in capfd.readouterr().err


def test_a_fault_while_commands_are_read_ends_the_loop(tmp_path: Path):
    """Whatever it is: a thread that ends alone would leave every later command unread."""
    connector = connector_with({"database.names": "shop"})
    with (tmp_path / "written").open("wb") as stream:  # It cannot be read.
        control = Control(stream, connector, Events(sys.stderr), committed=CommittedOffsets(tmp_path, connector))
        control.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        control.take()


@pytest.mark.parametrize(
    "line", [b"[" * 100_000, b'{"command":' * 2000, b'{"command": "signal", "id": "\\ud800", "type": ""}']
)
def test_a_line_that_cannot_be_read_is_refused_and_the_next_one_is_carried_out(
    tmp_path: Path, line: bytes, capfd: pytest.CaptureFixture[str]
):
    connector, reads_writes = connector_with({"database.names": "shop"}), os.pipe()
    with os.fdopen(reads_writes[0]) as stream, os.fdopen(reads_writes[1], "wb", buffering=0) as commands:
        control = Control(stream, connector, Events(sys.stderr), committed=CommittedOffsets(tmp_path, connector))
        commands.write(line + b"\n" + b'{"command": "signal", "id": 7, "type": "log", "data": null}\n')
        control.close()
    assert control.take() == [SignalRow("7", "log", None)]
    assert "A command was refused: " in capfd.readouterr().err


def test_what_was_written_before_the_end_is_carried_out(tmp_path: Path):
    """Also where the line and the end come together, and where the last line has no end."""
    connector = connector_with({"database.names": "shop"})
    committed = CommittedOffsets(tmp_path, connector)
    for number in range(1, 21):
        reads, writes = os.pipe()
        with os.fdopen(reads) as stream, os.fdopen(writes, "wb", buffering=0) as commands:
            control = Control(stream, connector, Events(sys.stderr), committed=committed)
            commands.write(_commit(connector.topic_prefix, number) + b"\n")
            commands.write(b'{"command": "signal", "id": 7, "type": "log", "data": null}\n')
            control.close()
        assert committed.read()["shop"].serial == number
        assert control.take() == [SignalRow("7", "log", None)]
        reads, writes = os.pipe()
        with os.fdopen(reads) as stream:
            with os.fdopen(writes, "wb", buffering=0) as commands:
                control = Control(stream, connector, Events(sys.stderr), committed=committed)
                commands.write(_commit(connector.topic_prefix, number + 100))
            control.close()
        assert committed.read()["shop"].serial == number + 100


def test_offsets_that_cannot_be_kept_end_the_loop(tmp_path: Path):
    connector = connector_with({"database.names": "shop"})
    reads, writes = os.pipe()
    with os.fdopen(reads) as stream, os.fdopen(writes, "wb", buffering=0) as commands:
        gone = CommittedOffsets(tmp_path / "gone", connector)
        control = Control(stream, connector, Events(sys.stderr), committed=gone)
        commands.write(_commit(connector.topic_prefix, 1) + b"\n")
        control.close()
    with pytest.raises(StorageError, match=r"cannot be kept in .*: No such file"):
        control.take()


def test_what_was_committed_of_a_database_that_is_taken_out_stays_until_it_comes_back(tmp_path: Path):
    """It ended each start, and each commit."""
    both = connector_with({"database.names": "shop,b"})
    committed = {
        name: SourceOffset.of({"commit_lsn": f"00000027:00000ac0:000{serial}", "event_serial_no": serial})
        for serial, name in enumerate(("shop", "b"), 1)
    }
    CommittedOffsets(tmp_path, both).keep(committed)
    alone = CommittedOffsets(tmp_path, connector_with({"database.names": "shop"}))
    assert alone.read() == {"shop": committed["shop"]}
    alone.keep({"shop": committed["b"]})
    assert alone.read() == {"shop": committed["b"]}
    assert CommittedOffsets(tmp_path, both).read() == {"shop": committed["b"], "b": committed["b"]}


def test_committed_offsets_of_another_connector_are_refused_by_their_file(tmp_path: Path):
    offset = SourceOffset.of({"commit_lsn": "00000027:00000ac0:0002", "event_serial_no": 1})
    CommittedOffsets(tmp_path, connector_with({"database.names": "shop"})).keep({"shop": offset})
    other = CommittedOffsets(tmp_path, connector_with({"database.names": "shop", "topic.prefix": "other"}))
    for act in (other.read, lambda: other.keep({"shop": offset})):
        with pytest.raises(ConfigurationError, match=r"topic\.prefix=.*committed-offsets\.json"):
            act()


def _commit(prefix: str, serial: int) -> bytes:
    offset = {"commit_lsn": "00000027:00000ac0:0002", "change_lsn": "00000027:00000ac0:0001", "event_serial_no": serial}
    entry = {"partition": {"server": prefix, "database": "shop"}, "offset": offset}
    return json.dumps({"command": "commit", "offsets": [entry]}).encode()


def test_offsets_that_cannot_be_read_are_a_fault_of_the_configuration(tmp_path: Path):
    with pytest.raises(ConfigurationError, match=r"missing\.json cannot be read: No such file.* GET /connectors"):
        read_offsets(tmp_path / "missing.json", connector_with({"database.names": "shop"}))
