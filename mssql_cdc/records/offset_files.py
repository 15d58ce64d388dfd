"""Reads the offsets that a Debezium connector left behind: Kafka Connect's JSON, or an engine's `offsets.dat`.

`FileOffsetBackingStore` writes a `HashMap<byte[], byte[]>` with Java's serialization. Both arrays are JSON: the key is
`["<name>", {"server": …, "database": …}]`, the value an offset. Only the arrays are looked for; nothing is executed.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mssql_cdc.config import Connector
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.records.source_offsets import SourceOffset, find_offsets, offset_pairs

logger = logging.getLogger("mssql_cdc")

_JAVA = b"\xac\xed\x00\x05"
# TC_ARRAY with the class [B: described at its first use, referred to afterwards; four bytes of length follow.
_ARRAY = re.compile(rb"u(?:r\x00\x02\[B.{8}\x02\x00\x00xp|q\x00~\x00.)(.{4})", re.DOTALL)


def read_offsets(
    path: Path, connector: Connector, *, log: Callable[[str], None] = logger.info
) -> dict[str, SourceOffset]:
    """Return the offsets of a connector's databases.

    The earlier connector may have had more databases: offsets of those that this one lacks are left out and reported.

    Args:
        path: What `GET /connectors/<name>/offsets` printed, or the file of `offset.storage.file.filename`.
        connector: The connector that resumes there.
        log: Receives the notice.

    Raises:
        ConfigurationError: The file cannot be read, is neither, or holds the offsets of another connector; or those of
            other databases, and not those of every database that the connector has.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}; expected what GET /connectors/<name>/offsets printed, or "
            "the file of an engine's offset.storage.file.filename"
        ) from error
    try:
        pairs = _stored(content, path) if content.startswith(_JAVA) else offset_pairs(content.decode())
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} holds neither JSON nor the offsets of an engine: {error}") from error
    found = find_offsets(pairs, connector)
    if len(found.own) < len(connector.databases):
        found.require_no_others(connector)
    if found.others:
        log(f"The offsets of other databases are left out: database.names does not have {', '.join(found.others)}")
    return found.own


def _stored(content: bytes, path: Path) -> list[tuple[Mapping[str, Any], Any]]:
    arrays = [
        content[found.end() : found.end() + int.from_bytes(found.group(1), "big")] for found in _ARRAY.finditer(content)
    ]
    try:
        values = [json.loads(one) for one in arrays]
        return [(partition, offset) for (_, partition), offset in zip(values[::2], values[1::2], strict=True)]
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"{path} is not the file of a FileOffsetBackingStore: {error}") from error
