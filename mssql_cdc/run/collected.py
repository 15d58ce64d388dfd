"""The errors of several tables or databases, each of which is processed even if others fail."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mssql_cdc.errors import LoginRefusedError, MssqlCdcError, StorageError, TaskError
from mssql_cdc.run.interrupts import require_uninterrupted
from mssql_cdc.spark.tasks import described


@dataclass
class Collected:
    """Errors by the name of what failed, kept until everything is done; then the worst is raised with all texts.

    Attributes:
        errors: What has failed, and why.
    """

    errors: dict[str, MssqlCdcError] = field(default_factory=dict[str, MssqlCdcError])
    _tried: set[str] = field(default_factory=set[str])

    @contextmanager
    def of(self, name: str) -> Generator[None]:
        """Keep the block's error under `name`; convert an error that is not one of the project's to one that is.

        Raises:
            LoginRefusedError: The server refuses the login: another attempt may lock the account.
            KeyboardInterrupt: Ctrl+C ended a call to a driver or to Spark: nothing is wrong, and nothing continues.
        """
        self._tried.add(name)
        try:
            yield
        except LoginRefusedError:
            raise
        except MssqlCdcError as error:
            require_uninterrupted()
            self.errors[name] = error
        except Exception as error:  # noqa: BLE001 (any: the others do not depend on it)
            require_uninterrupted()
            known = StorageError if isinstance(error, OSError) else TaskError
            self.errors[name] = known(described(error))
            self.errors[name].__cause__ = error

    def raise_worst(self) -> None:
        """Raise the error with the highest exit code, with the texts of all.

        Raises:
            MssqlCdcError: There was an error.
        """
        if not self.errors:
            return
        worst = max(self.errors.values(), key=lambda error: error.exit_code)
        if len(self._tried | self.errors.keys()) == 1:
            raise worst
        raise type(worst)("; ".join(f"{name}: {error}" for name, error in self.errors.items())) from worst
