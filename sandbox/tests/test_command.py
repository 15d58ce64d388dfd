"""The command line: ready file, scripts, addresses, end."""

import signal
import stat
from pathlib import Path

import pytest

from mssql_sandbox.command import main
from mssql_sandbox.process import sandbox_process
from mssql_sandbox.server import SandboxServer, serve_in_thread
from tests.tds.raw_client import raw_client


def test_ready_file_tells_how_to_connect_and_only_its_owner(tmp_path: Path) -> None:
    with sandbox_process(tmp_path) as server:
        assert stat.S_IMODE((tmp_path / "ready.json").stat().st_mode) == 0o600
        assert list(tmp_path.iterdir()) == [tmp_path / "ready.json"]
        with raw_client(server.port) as client:
            assert b"\xad" in client.log_in(server.password, user=server.user)


def test_termination_is_a_clean_end_even_with_clients(tmp_path: Path) -> None:
    with sandbox_process(tmp_path, "--password", "given") as server, raw_client(server.port) as client:
        client.log_in("given")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(20) == 0
        assert server.process.stderr is not None
        assert server.process.stderr.read() == ""


def test_scripts_run_in_order_before_clients_are_accepted(tmp_path: Path) -> None:
    for name, text in [
        ("a.sql", "CREATE DATABASE d\nGO\nUSE d\nGO\nCREATE TABLE t (a int)"),
        ("b.sql", "INSERT d.dbo.t VALUES (7)"),
    ]:
        (tmp_path / name).write_text(text, encoding="utf-8")
    options = [part for name in ("a.sql", "b.sql") for part in ("--script", str(tmp_path / name))]
    with sandbox_process(tmp_path, *options) as server, raw_client(server.port) as client:
        client.log_in(server.password)
        client.batch("SELECT a FROM d.dbo.t")
        assert b"\xd1\x04\x07\0\0\0" in client.receive()


def test_failing_script_names_file_and_line_and_nothing_listens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "bad.sql"
    script.write_text("SELECT 1\nGO\nSELECT 2\nSELECT * FROM absent\n", encoding="utf-8")
    assert main(["--script", str(script), "--ready-file", str(tmp_path / "ready")]) == 2
    assert f"{script}:4: Msg 208, Level 16, State 1: Invalid object name 'absent'." in capsys.readouterr().err
    assert not (tmp_path / "ready").exists()


@pytest.mark.parametrize(
    "options",
    [["--host", "0.0.0.0"], ["--host", "0.0.0.0", "--allow-remote"], ["--host", "db", "--password", "p"]],  # noqa: S104
)
def test_reachable_address_needs_permission_and_password(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(options) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert (
        line
        == f"{options[1]} can be reached by other machines: use a loopback address, or --allow-remote with --password"
    )


def test_script_that_is_not_there_ends_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--script", str(tmp_path / "none.sql")]) == 2
    assert "none.sql: the script cannot be read" in capsys.readouterr().err


def test_port_in_use_is_no_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with serve_in_thread() as server:
        port = server.port
        assert main(["--port", str(port)]) == 1
    assert f"127.0.0.1:{port}: " in capsys.readouterr().err


def test_random_passwords_differ() -> None:
    assert SandboxServer().password != SandboxServer().password


def test_server_can_be_started_again_after_it_has_stopped() -> None:
    for _ in range(2):
        with serve_in_thread() as server, raw_client(server.port) as client:
            assert b"\xad" in client.log_in(server.password)
