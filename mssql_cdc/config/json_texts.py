"""JSON that others write: signals, and commands from standard input."""

from __future__ import annotations

import json
from typing import Any


def json_value(text: str) -> Any:
    """The value of a JSON text whose strings can be stored as UTF-8.

    Raises:
        ValueError: There is none; the message completes "it is …".
    """
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON ({error.msg} at character {error.pos})") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("JSON with half of a surrogate pair, which is no text") from None
    except ValueError as error:
        raise ValueError(f"not valid JSON ({error})") from None
    return value
