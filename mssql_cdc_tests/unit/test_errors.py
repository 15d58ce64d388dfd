"""Exit codes, and errors that tasks return by name."""

from __future__ import annotations

from mssql_cdc import errors


def test_errors_have_the_documented_exit_codes():
    codes = {
        errors.MssqlCdcError: 1,
        errors.ConfigurationError: 2,
        errors.SchemaError: 2,
        errors.SourceUnavailableError: 3,
        errors.DeadlockError: 3,
        errors.StaleReaderError: 3,
        errors.DataLostError: 4,
        errors.TamperedTableError: 4,
        errors.NotCaughtUpError: 3,
        errors.CheckDiffersError: 5,
    }
    assert {kind: kind.exit_code for kind in codes} == codes


def test_only_unavailability_errors_are_retriable():
    kinds = [v for v in vars(errors).values() if isinstance(v, type) and issubclass(v, errors.MssqlCdcError)]
    assert {kind.__name__ for kind in kinds if kind.retriable} == {
        "DeadlockError",
        "SourceUnavailableError",
        "StaleReaderError",
        "StaleStructureError",
    }


def test_error_named_finds_the_class_and_names_an_unknown_one():
    assert type(errors.error_named("FencedError", "x")) is errors.FencedError
    assert str(errors.error_named("OSError", "disk full")) == "OSError: disk full"
