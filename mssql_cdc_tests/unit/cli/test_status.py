"""How `mssql-cdc status` and the demo's table show a lag."""

from __future__ import annotations

import pytest

from mssql_cdc.cli.output import LATE
from mssql_cdc.cli.status import lag_cell


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "–"),
        (0.0, "0 s"),
        (1.26, "1.3 s"),
        (59.9, "59.9 s"),
        (60.0, ("1 min 0 s", LATE)),
        (3599.0, ("59 min 59 s", LATE)),
        (7260.0, ("2 h 1 min", LATE)),
    ],
)
def test_a_lag_is_red_from_one_minute_up(seconds: float | None, shown: object):
    assert lag_cell(seconds) == shown
    assert "red" in LATE
