"""Seals texts in the lake that hold key values found in no other part of it: the chunks of masked keys.

With `delta.key.secret`, a text is a Fernet token under a key derived from the secret. Bounds have to be read back, so a
hash would not do. Without the secret, texts stay as they are, and chunks that are ordered by masked columns are
refused.
"""

from __future__ import annotations

import base64
import hmac
from dataclasses import dataclass

from cryptography.fernet import Fernet, InvalidToken

from mssql_cdc.config import Connector, Secret
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.schema import TableSchema

_PREFIX = "sealed:1:"


@dataclass(frozen=True, slots=True)
class Seal:
    """Seals texts with a secret, which is resolved where it is used; without one it leaves them as they are."""

    secret: Secret | None = None

    def closed(self, text: str) -> str:
        """The sealed text."""
        if self.secret is None:
            return text
        return _PREFIX + _fernet(self.secret).encrypt(text.encode()).decode()

    def opened(self, text: str) -> str:
        """The text that was sealed; a text that was not sealed is returned as it is.

        Raises:
            ConfigurationError: it was sealed with another secret, or was changed since.
        """
        if not text.startswith(_PREFIX):
            return text
        if self.secret is not None:
            try:
                return _fernet(self.secret).decrypt(text.removeprefix(_PREFIX)).decode()
            except InvalidToken:
                pass
        raise ConfigurationError(
            "The chunks of a snapshot are sealed with another delta.key.secret than the present one; set the one that "
            "the lake was written with"
        )


def _fernet(secret: Secret) -> Fernet:
    # A separate key, so that other uses of the secret reveal nothing about it.
    key = hmac.digest(secret.read().encode(), b"mssql_cdc sealing", "sha256")
    return Fernet(base64.urlsafe_b64encode(key))


def masked_columns(connector: Connector, schema: TableSchema) -> frozenset[str]:
    """The names of a table's columns whose values a mask changes.

    Args:
        connector: The configuration.
        schema: The table.
    """
    parts = schema.table_id.parts
    rules = ((column, connector.filters.mask_for(*parts, column.name)) for column in schema.columns)
    return frozenset(column.name for column, rule in rules if rule is not None and rule.applies_to(column.type.name))


def require_sealed(connector: Connector, by: TableSchema) -> None:
    """Refuse chunks whose bounds would put values of masked columns into the lake.

    Args:
        connector: The configuration.
        by: The table, with the columns that order its chunks as its key.

    Raises:
        ConfigurationError: There is no `delta.key.secret` to seal them with.
    """
    masked = sorted(masked_columns(connector, by) & {*by.key_columns})
    if masked and connector.delta.key_secret is None:
        raise ConfigurationError(
            f"The key columns {masked} of {by.table_id} are masked; set delta.key.secret so that rows can be told "
            "apart, and chunks be ordered, without their values in the lake"
        )
