"""What a commit says about itself in `userMetadata`, where any writer may put any text.

For the meaning of the connector's own facts, see `lake/log.py` and `lake/table_restores.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast


def told_facts(info: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object in a commit's `userMetadata`; empty if there is none.

    Args:
        info: The commit's `commitInfo`, or its entry in `DeltaTable.history()`.
    """
    text = info.get("userMetadata")
    if not isinstance(text, str) or not text.startswith("{"):
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # Another writer's text: an OPTIMIZE may say `{'job': 'nightly'}`.
        return {}
    return cast("dict[str, Any]", found)
