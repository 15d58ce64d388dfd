"""A driver's settings as `driver.*`, `database.*` and `odbc.*` define them: up to three properties for one setting.

`driver.py` translates them; this module finds which ones contradict each other, which one to change, and what FreeTDS
drops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mssql_cdc.config.driver import DriverSetting, OdbcSetting, Twin, is_freetds, twin_of, twin_of_keyword
from mssql_cdc.config.secret import Secret, reveal

NOT_OF_FREETDS = (
    "FreeTDS has no keyword for it and would continue without the check, the login or the decryption that it requests; "
    "use Microsoft's driver (odbc.Driver), or remove the property"
)
"""The message about properties that FreeTDS must not drop."""
_LOGIN_TIMEOUT = "logintimeout"


@dataclass(frozen=True, slots=True)
class GivenSetting:
    """One setting of the driver.

    Attributes:
        name: the property that sets it.
        value: its value, as that family writes it.
        twin: the JDBC setting and its keywords; None: it has no twin.
        keyword: the ODBC keyword, for `odbc.*`.
    """

    name: str
    value: str | Secret
    twin: Twin | None
    keyword: str | None = None

    @property
    def setting(self) -> str | None:
        """What is set, whichever family sets it; None for what only one of them can set."""
        if self.twin is not None:
            return self.twin.jdbc.lower()
        return _LOGIN_TIMEOUT if self.name.lower().endswith(f".{_LOGIN_TIMEOUT}") else None

    @property
    def meaning(self) -> str | Secret:
        """The value, in the same form for all families; a reference stands for itself."""
        if isinstance(self.value, Secret) and self.value.refers:
            return self.value
        value = reveal(self.value)
        return value if self.twin is None else self.twin.meaning(value)

    def written(self, value: str) -> str:
        """The property with a JDBC value, as its family writes it."""
        if not value:
            return self.name
        return (
            f"{self.name}={value if self.keyword is None or self.twin is None else self.twin.word(value, self.keyword)}"
        )


def given_settings(
    driver: Iterable[DriverSetting], database: Iterable[DriverSetting], odbc: Iterable[OdbcSetting]
) -> Iterator[GivenSetting]:
    """The settings of the three families.

    Args:
        driver: those of `driver.*`.
        database: those of `database.*`.
        odbc: those of `odbc.*`.
    """
    for family, settings in (("driver", driver), ("database", database)):
        for one in settings:
            yield GivenSetting(f"{family}.{one.name}", one.value, twin_of(one.name))
    for own in odbc:
        yield GivenSetting(f"odbc.{own.keyword}", own.value, twin_of_keyword(own.keyword), own.keyword)


def conflicts(given: Iterable[GivenSetting]) -> Iterator[tuple[str, str]]:
    """The properties that contradict another one, each with what is wrong."""
    first: dict[str, GivenSetting] = {}
    for one in given:
        if one.setting is None:
            continue
        known = first.setdefault(one.setting, one)
        if known.meaning != one.meaning:
            yield one.name, f"contradicts {known.name}, which sets the same with another value; keep one of them"


def advised(given: Sequence[GivenSetting], jdbc: str, value: str = "", *, otherwise: str, driver: str) -> str:
    """The properties to change so that a setting has a value, such as `driver.encrypt=false`: those that are given.

    Args:
        given: the settings of the configuration.
        jdbc: the setting.
        value: its value, as in JDBC; empty: only the properties are named.
        otherwise: the family to use when none is given.
        driver: the ODBC driver; a keyword of another driver does not change what it does.
    """
    twin = twin_of(jdbc)
    assert twin is not None, f"{jdbc} has a twin"
    own = [one for one in given if one.twin is twin]
    keyword = (twin.keyword(freetds=is_freetds(driver)) or "").lower()
    found = [one.written(value) for one in own]
    if not any(one.keyword is None or one.keyword.lower() == keyword for one in own):
        found.append(GivenSetting(f"{otherwise}.{jdbc}", value, twin).written(value))
    return " and ".join(found)


def dropped(given: Iterable[GivenSetting], driver: str) -> tuple[list[str], list[str]]:
    """The properties that FreeTDS has no keyword for: those that it must not drop, and the others.

    References are resolved (raises MissingSecretError). `odbc.*` is passed to the driver as it is.

    Args:
        given: the settings of the configuration.
        driver: the ODBC driver.
    """
    guards: list[str] = []
    others: list[str] = []
    for one in given if is_freetds(driver) else ():
        if one.keyword is None and one.twin is not None and one.twin.freetds is None:
            guarding = one.twin.guards and reveal(one.value).strip().lower() not in one.twin.harmless
            (guards if guarding else others).append(one.name)
    return guards, others
