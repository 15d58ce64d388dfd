"""Where every table lies in the warehouse, and the app ids that own them (architecture §6).

Names only: nothing here touches storage.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mssql_cdc.errors import ConfigurationError
from mssql_cdc.schema.tables import TableId

_PLAIN = re.compile(rb"[A-Za-z0-9._ -]")


def encode_segment(name: str) -> str:
    """`name` as one path segment: other bytes, a leading `_` or `.`, a trailing `.` or blank become `%XX`.

    The leading characters matter because Spark takes such files for hidden, the trailing ones because Windows
    drops them.
    """
    if not name:
        raise ConfigurationError("An empty name cannot become a folder of the warehouse")
    raw = name.encode()
    last = len(raw) - 1

    def keep(index: int) -> bool:
        byte = raw[index : index + 1]
        if not _PLAIN.fullmatch(byte):
            return False
        return not ((index == 0 and byte in b"_.") or (index == last and byte in b". "))

    return "".join(chr(byte) if keep(index) else f"%{byte:02X}" for index, byte in enumerate(raw))


@dataclass(frozen=True, slots=True)
class TableHome:
    """The folder and the owner of one captured table; fixed at first capture, also through renames.

    `app_id` is the streaming writer's, `snapshot_app_id` the snapshot writer's, on the same change log.
    """

    folder: str
    app_id: str

    @property
    def changes(self) -> str:
        """URI of the change log."""
        return f"{self.folder}/changes"

    @property
    def current(self) -> str:
        """URI of the current table."""
        return f"{self.folder}/current"

    @property
    def snapshot_app_id(self) -> str:
        """App id of snapshot commits."""
        return f"{self.app_id}:snapshot"


@dataclass(frozen=True, slots=True)
class Layout:
    """The tables of one database of one connector below a warehouse path or URI."""

    warehouse: str
    connector: str
    database: str

    @property
    def root(self) -> str:
        """The folder of the database."""
        return "/".join([self.warehouse.rstrip("/"), encode_segment(self.connector), encode_segment(self.database)])

    def home(self, table_id: TableId, *, folder: str | None = None) -> TableHome:
        """Where a table lives: `folder` as recorded at first capture (relative to `root`), else by its name."""
        relative = folder or self.folder(table_id)
        return TableHome(f"{self.root}/{relative}", f"mssql_cdc:{self.connector}:{self.database}/{relative}")

    def folder(self, table_id: TableId) -> str:
        """`schema/table`, relative to `root`."""
        return f"{encode_segment(table_id.schema)}/{encode_segment(table_id.name)}"

    def folders(self, tables: Mapping[TableId, int | None]) -> dict[TableId, str]:
        """Folders of tables (given with their object ids); names that collide without case get `~<object_id>`."""
        plain = {table_id: self.folder(table_id) for table_id in tables}
        seen: dict[str, int] = {}
        for folder in plain.values():
            seen[folder.lower()] = seen.get(folder.lower(), 0) + 1
        return {
            table_id: folder if seen[folder.lower()] == 1 else f"{folder}~{tables[table_id]}"
            for table_id, folder in plain.items()
        }

    def own(self, name: str) -> str:
        """URI of one of the database's own tables: `offsets`, `schema_history`, `transactions`, ..."""
        return f"{self.root}/_{name}"

    def own_app_id(self, name: str) -> str:
        """App id of one of the database's own tables."""
        return f"mssql_cdc:{self.connector}:{self.database}/_{name}"
