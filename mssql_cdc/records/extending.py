"""The extensions of one stream of records, loaded once: they may hold state and connections."""

from __future__ import annotations

from dataclasses import dataclass

from mssql_cdc.config import Connector
from mssql_cdc.records.custom_converters import CustomConverters
from mssql_cdc.records.post_processors import PostProcessors
from mssql_cdc.records.reselect import Reselect
from mssql_cdc.records.topics import Topics, topics_of
from mssql_cdc.records.transaction_structs import TransactionTexts, transaction_texts


@dataclass(frozen=True, slots=True)
class Extensions:
    """The extensions that take part in rendering: Debezium's own, unless properties name others.

    `reselect` and `transactions` are None unless they are configured.
    """

    topics: Topics
    converters: CustomConverters
    post_processors: PostProcessors
    reselect: Reselect | None = None
    transactions: TransactionTexts | None = None

    @classmethod
    def of(cls, connector: Connector) -> Extensions:
        """Load the connector's extensions.

        Raises:
            ConfigurationError: One is not installed, or cannot be loaded or configured.
        """
        return cls(
            topics_of(connector),
            CustomConverters.of(connector),
            PostProcessors.of(connector),
            Reselect.of(connector),
            transaction_texts(connector),
        )

    def __enter__(self) -> Extensions:
        return self

    def __exit__(self, *error: object) -> None:
        self.post_processors.close()
