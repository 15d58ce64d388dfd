"""The recovery history of a database: a restore to an earlier point, or a failover with loss, forks it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field


@dataclass(slots=True)
class Recovery:
    """The recovery state of a database, for `sys.database_recovery_status`."""

    family: uuid.UUID = field(default_factory=uuid.uuid4)
    database: uuid.UUID = field(default_factory=uuid.uuid4)
    first_fork: uuid.UUID = field(default_factory=uuid.uuid4)
    fork: uuid.UUID = field(init=False)
    fork_point: bytes | None = None
    """LSN at which the newest fork began."""

    def __post_init__(self) -> None:
        self.fork = self.first_fork

    def fork_at(self, lsn: bytes) -> None:
        """Begin a new history after `lsn`: LSNs above it may occur again with other content."""
        self.fork, self.database, self.fork_point = uuid.uuid4(), uuid.uuid4(), lsn
