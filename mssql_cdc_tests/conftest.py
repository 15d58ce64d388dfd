"""What holds for every test."""

from __future__ import annotations

import pytest

_LONGEST = ("spark", "end_to_end", "dagster", "conformance")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The rooms whose modules take minutes come first: at the end they would keep one worker busy and the other idle.

    Inside a room the order stays random (pytest-randomly has shuffled before).
    """
    items.sort(key=lambda item: item.path.parts[-2] not in _LONGEST)
