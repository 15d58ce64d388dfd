"""The locations of all tables in the warehouse, and the app ids that own them (architecture §6).

This module handles only names and never accesses storage. Three rules convert a name to a path segment. They were
tested with tables that deltalake, Spark, pyarrow and DataFusion created, committed to, merged into, vacuumed and read
on a disk, and that deltalake and pyarrow used on a stand-in for S3:

* Letters, digits and combining marks of every script (Unicode 3.2, as in SQL Server's identifiers), `-`, `_`, `.` and
  inner spaces are kept. Every other character becomes `_xHHHH_`, its code point in hexadecimal, as in SQL Server's FOR
  XML; so do characters that some system hides, drops or reserves: a leading `_`, `.` or space, a trailing `.` or space,
  the first letter of device names such as `CON`. `%` cannot be the escape because deltalake decodes `%41` when it opens
  a path. It also truncates at `#` and converts backslashes to `/`; Spark interprets `*?[{` as patterns.
* A segment of more than 200 bytes is truncated, followed by `!` and a hash of the name: file systems allow 255 bytes,
  S3 allows 1024 for the entire key.
* Names in one database that collide on a case-insensitive file system, or under a different Unicode normalization, get
  `!` and their object id.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from mssql_cdc.errors import ConfigurationError
from mssql_cdc.schema.tables import TableId

LONGEST = 200
_DIGEST = 16
_LOOKS_ESCAPED = re.compile(r"_x[0-9a-f]{4}", re.IGNORECASE)
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)", re.IGNORECASE)
_UNUSABLE = re.compile(r"[%\\*?\[{#]")


@lru_cache(maxsize=4096)
def encode_segment(name: str) -> str:
    """`name` as one path segment, by the rules above."""
    if not name:
        raise ConfigurationError("An empty name cannot become a folder of the warehouse")
    text = "".join(c if _stays(name, place) else _escaped(c) for place, c in enumerate(name))
    if len(text.encode()) <= LONGEST:
        return text
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
    return text.encode()[: LONGEST - _DIGEST - 1].decode(errors="ignore") + f"!{digest}"


def _escaped(character: str) -> str:
    """`_xHHHH_`; eight digits beyond the first 65,536 characters."""
    number = ord(character)
    return f"_x{number:04X}_" if number < 0x10000 else f"_x{number:08X}_"


def _stays(name: str, place: int) -> bool:
    """Whether the character at this index is kept unchanged in a path."""
    character = name[place]
    if place == 0 and (character in "._ " or _DEVICES.match(name)):
        return False
    if place == len(name) - 1 and character in ". ":
        return False
    if character == "_":
        return not _LOOKS_ESCAPED.match(name, place)
    # The categories of one Unicode version: a later Python must not move a table.
    return character in "-. " or unicodedata.ucd_3_2_0.category(character)[0] in "LMN"


def _folded(folder: str) -> str:
    """Return a text that is equal for folders which some file system treats as equal."""
    return unicodedata.normalize("NFC", folder).casefold()


@dataclass(frozen=True, slots=True)
class TableHome:
    """The folder and the owner of one captured table; fixed at first capture, even through renames.

    `app_id` identifies their owner in Delta's `txn` action, alone or as the beginning of further ids (`lake/log.py`).
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


@dataclass(frozen=True, slots=True)
class Layout:
    """The tables of one database of one connector below a warehouse path or URI.

    Raises:
        ConfigurationError: the warehouse's own path contains a character that Delta's writers interpret differently.
    """

    warehouse: str
    connector: str
    database: str

    def __post_init__(self) -> None:
        found = sorted(set(_UNUSABLE.findall(self.warehouse)))
        if found:
            raise ConfigurationError(
                f"The warehouse {self.warehouse!r} holds {' '.join(found)}, which deltalake and Spark interpret "
                "differently; choose another folder (delta.warehouse, --warehouse)"
            )

    @property
    def root(self) -> str:
        """The folder of the database."""
        return "/".join([self.warehouse.rstrip("/"), encode_segment(self.connector), encode_segment(self.database)])

    def home(self, table_id: TableId, *, folder: str | None = None) -> TableHome:
        """Return a table's home: `folder` as recorded at first capture (relative to `root`), otherwise by its name."""
        relative = folder or self.folder(table_id)
        return TableHome(f"{self.root}/{relative}", f"mssql_cdc:{self.connector}:{self.database}/{relative}")

    def folder(self, table_id: TableId) -> str:
        """`schema/table`, relative to `root`."""
        return f"{encode_segment(table_id.schema)}/{encode_segment(table_id.name)}"

    def folders(self, tables: Mapping[TableId, int | None]) -> dict[TableId, str]:
        """Return the folders of tables, given with their object ids; colliding names get `!<object_id>`."""
        plain = {table_id: self.folder(table_id) for table_id in tables}
        seen = Counter(_folded(folder) for folder in plain.values())
        return {
            table_id: folder if seen[_folded(folder)] == 1 else f"{folder}!{tables[table_id]}"
            for table_id, folder in plain.items()
        }

    def own(self, name: str) -> str:
        """URI of one of the database's own tables: `offsets`, `schema_history`, `transactions`, ..."""
        return f"{self.root}/_{name}"

    def own_app_id(self, name: str) -> str:
        """App id of one of the database's own tables."""
        return f"mssql_cdc:{self.connector}:{self.database}/_{name}"
