"""How many examples hypothesis draws: a third in `make test`, at least four; all of them in `make test-all`."""

from __future__ import annotations

import os

VARIABLE = "MSSQL_CDC_EXAMPLES"
_SHARE, _LEAST = 3, 4
"""The first example of all is the simplest one, which shows little."""


def examples(all_of_them: int) -> int:
    """Of so many examples, how many are drawn now."""
    if os.environ.get(VARIABLE) == "all":
        return all_of_them
    return min(all_of_them, max(_LEAST, all_of_them // _SHARE))
